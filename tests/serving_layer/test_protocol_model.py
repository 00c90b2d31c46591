"""The protocol keeps the promise in every interleaving of its steps. Without any one rule, it does not."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.serving_layer.protocol_model import Model, Rules, World, explore

STREAM = "one stream, a gap in it, two micro-batches ahead, two takeovers"
TAKEOVER = "a rebuild while the writer is taken over"
NIGHTS = "two rebuilds, two micro-batches ahead"
ARCHIVE = "two archive runs at once while the log grows"
TWO_STREAMS = "a view of two streams"
JOIN = "a join of two streams, one of which is taken over"
TABLE = "a table whose row is deleted, and is late, rebuilt while the writer is taken over"
JOIN_OF_A_TABLE = "a join of a stream and a table"
LEAP_OF_A_TABLE = "a leap of a table next to a restarted writer"
CHANGE = "views registered and dropped"
LEAP = "a leap next to a rebuild and a restarted writer"
LEAP_OF_ONE = "a leap of one of the two streams of a view"
VERSIONS = "a view that moves to another version and back, next to a rebuild"
LEAP_OF_VERSIONS = "a leap next to a view that moves to another version"
LEAP_AND_CHANGE = "a leap while views are registered and dropped"

GAP, SHORT = ("rx", "r"), ("r",)
ONE, TWO = {"V": "A", "W": "A"}, {"V": "A", "W": "AB"}

WORLDS = {
    STREAM: World({"A": GAP}, {"V": "A"}, log_grows=True, flight=2, takeovers={"A": 2}, archivers=0),
    TAKEOVER: World({"A": GAP}, {"V": "A"}, takeovers={"A": 1}, rebuilds=1),
    NIGHTS: World({"A": GAP}, {"V": "A"}, flight=2, rebuilds=2),
    ARCHIVE: World({"A": GAP}, {"V": "A"}, log_grows=True, rebuilds=1, archivers=2),
    TWO_STREAMS: World({"A": ("rr",), "B": SHORT}, TWO, rebuilds=1),
    JOIN: World({"A": SHORT, "B": SHORT}, {"J": "AB"}, rebuilds=1, takeovers={"B": 1}),
    TABLE: World({"T": ("21", "3")}, {"V": "T"}, takeovers={"T": 1}, rebuilds=1),
    JOIN_OF_A_TABLE: World({"A": SHORT, "T": ("21",)}, {"J": "AT"}, rebuilds=1),
    LEAP_OF_A_TABLE: World({"T": ("21",)}, {"V": "T"}, rebuilds=1, takeovers={"T": 2}, leaps="T"),
    CHANGE: World({"A": ("r", "r")}, ONE, later=("W",), dropped=("V",), flight=2, rebuilds=1),
    VERSIONS: World({"A": ("r", "r")}, {"V": "A", "V'": "A"}, changed="V'", flight=2, rebuilds=2),
    LEAP_OF_VERSIONS: World(
        {"A": SHORT}, {"V": "A", "V'": "A"}, changed="V'", rebuilds=2, takeovers={"A": 1}, leaps="A"
    ),
    LEAP: World({"A": ("rr",)}, {"V": "A"}, rebuilds=2, takeovers={"A": 2}, leaps="A"),
    LEAP_OF_ONE: World({"A": SHORT, "B": SHORT}, TWO, rebuilds=1, takeovers={"A": 1}, leaps="A"),
    LEAP_AND_CHANGE: World(
        {"A": SHORT}, ONE, later=("W",), dropped=("V",), rebuilds=1, archivers=2, takeovers={"A": 1}, leaps="A"
    ),
}

STATES = {
    STREAM: 45_962,
    TAKEOVER: 24_686,
    NIGHTS: 7_055,
    ARCHIVE: 28_567,
    TWO_STREAMS: 30_917,
    JOIN: 8_118,
    CHANGE: 19_075,
    LEAP: 58_016,
    VERSIONS: 11_042,
    LEAP_OF_VERSIONS: 7_163,
    LEAP_OF_ONE: 38_542,
    LEAP_AND_CHANGE: 19_586,
    TABLE: 26_774,
    JOIN_OF_A_TABLE: 5_802,
    LEAP_OF_A_TABLE: 11_047,
}
"""The least number of states of each world: a model that lost an action would hold for nothing."""

BREAKS_IN = {
    "range_starts_at_progress": STREAM,
    "fence_is_checked": LEAP,
    "versions_are_checked_under_the_lock": CHANGE,
    "generations_are_listed_under_the_lock": NIGHTS,
    "progress_is_written_with_the_data": STREAM,
    "cut_is_progress": NIGHTS,
    "cut_locks_every_query": JOIN,
    "archive_records_its_end": ARCHIVE,
    "archive_appends_at_held": ARCHIVE,
    "load_waits_for_the_archive": NIGHTS,
    "load_stops_at_the_cut": NIGHTS,
    "load_is_marked_with_the_data": NIGHTS,
    "absorbed_is_marked_with_the_data": NIGHTS,
    "go_live_waits_for_what_was_swapped": NIGHTS,
    "go_live_holds_the_lock": NIGHTS,
    "stage_is_read_under_the_lock": NIGHTS,
    "hand_over_waits_for_every_query": JOIN,
    "hand_over_is_one_transaction": LEAP_OF_ONE,
    "leap_cuts_above_progress": LEAP,
    "leap_takes_every_view": LEAP_AND_CHANGE,
    "leap_retires_older_generations": LEAP,
    "published_is_never_retired": NIGHTS,
    "every_version_is_fed": VERSIONS,
    "move_waits_until_it_is_live": VERSIONS,
    "newest_version_counts": TABLE,
    "deletion_is_remembered": TABLE,
}
"""A world in which each rule is needed."""


def test_every_interleaving_keeps_a_live_generation_equal_to_the_records_below_progress() -> None:
    """Together, the worlds take every action and reach every outcome of a commit."""
    happened = set[tuple[str, str]]()
    for name, world in WORLDS.items():
        explored = explore(Model(world))
        assert not explored.broken, f"{name}:\n{explored}"
        assert explored.states >= STATES[name], name
        assert explored.complete, (
            f"{name}: in no state is every record counted and what the newest rebuild built published"
        )
        happened |= explored.happened
    assert {action for action, _ in happened} == {action.__name__ for action in Model(WORLDS[STREAM]).actions()}
    assert {end for action, end in happened if action == "commit"} == {
        "applied",
        "skipped",
        "fenced, it stops",
        "versions changed, computed again",
        "not at progress, checkpoint discarded",
    }


@pytest.mark.parametrize("rule", [rule.name for rule in fields(Rules)])
def test_without_the_rule_a_trace_breaks_the_promise(rule: str) -> None:
    violation = explore(Model(WORLDS[BREAKS_IN[rule]], Rules(**{rule: False})))
    print(violation)
    assert violation.broken, f"{rule} is not needed in {BREAKS_IN[rule]}"


def test_a_trace_is_the_shortest_list_of_steps_to_the_broken_promise() -> None:
    violation = explore(Model(WORLDS[NIGHTS], Rules(go_live_holds_the_lock=False)))
    assert str(violation).splitlines()[:-1] == [
        "  1. A: writer 1 computes [0,0 → 0,1) for V",
        "  2. rebuild 2 seals 0,0",
        "  3. V2.A: loads 0x0, below 0,0",
        "  4. V2.A: realtime rest merged, joining",
        "  5. A: commit [0,0 → 0,1) of writer 1: applied",
        "  6. V2.A: is live",
    ]
    assert violation.broken == "V generation 2 is live and counts 0x0 of 0x10"


def test_a_world_without_end_is_refused() -> None:
    with pytest.raises(OverflowError, match="more than 100 states: make the world smaller"):
        explore(Model(WORLDS[STREAM]), most=100)
