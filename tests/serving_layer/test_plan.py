"""The plan of a changed catalog, without a database."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version

import pytest

from serving_layer.catalog import definitions
from serving_layer.change.catalog_changes import NOTHING, check_allowed, compare
from serving_layer.change.facts import Facts, MeasuredRebuild
from serving_layer.change.planned_change import PlannedChange
from serving_layer.change.view_change import declared_alike
from view_algebra import Catalog, compile_catalog
from view_algebra.compiled import View
from view_algebra.errors import LaminaError
from view_algebra.formats import DECODERS, Decoding

USERS = "CREATE TABLE users (id INT PRIMARY KEY, name STRING) USING kafka OPTIONS (topic 'users', format 'json');"
EVENTS = "CREATE TABLE events (k STRING, n BIGINT) USING kafka OPTIONS (topic 'events', format 'json');"
SUMS = "CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s FROM events GROUP BY k;"
TOTAL = "CREATE VIEW total AS SELECT sum(c) AS c FROM sums;"


def planned(facts: Facts | None = None, **changed: str) -> dict[str, PlannedChange]:
    """The changes by name, from a catalog of these files to one in which some files differ."""
    before = {"events.sql": EVENTS, "sums.sql": SUMS, "total.sql": TOTAL}
    after = before | {f"{name}.sql": sql for name, sql in changed.items()}
    changes = compare(compile_catalog(before), compile_catalog(after), facts or Facts(counted={"events": 1_000}))
    return {change.name: change for change in changes if change.action != "nothing"}


def test_a_view_computed_by_another_spark_stays_and_is_listed() -> None:
    [change] = planned(Facts(sparks={"sums": "3.5.0", "total": version("pyspark")})).values()
    assert (change.name, change.action) == ("sums", "keep")
    assert "its cells were computed by Spark 3.5.0, and this is Spark " in change.effect


def test_a_view_is_declared_alike_if_only_its_column_has_the_name_of_a_changed_view() -> None:
    most = "CREATE VIEW most AS SELECT k, max(c) AS total FROM sums GROUP BY k;"
    before = {"events.sql": EVENTS, "sums.sql": SUMS, "total.sql": TOTAL, "most.sql": most}
    after = before | {"total.sql": TOTAL.replace("sum(c)", "max(c)")}
    compiled = compile_catalog(before), compile_catalog(after)
    assert declared_alike("most", *compiled, set())
    assert not declared_alike("total", *compiled, set())
    assert not declared_alike("most", *compiled, {"events"})


def test_a_table_that_an_older_lamina_did_not_serve_becomes_a_view() -> None:
    catalog = compile_catalog({"users.sql": USERS})
    unread = replace(catalog.sources["users"], parse="SELECT 'as streams are read' AS it")
    changes = compare(Catalog(sources={"users": unread}, views={}), catalog, Facts())
    assert [(change.kind, change.name, change.action) for change in changes] == [
        ("source", "users", "update"),
        ("view", "users", "create"),
    ]


CLICKS = "CREATE TABLE clicks (k STRING, page INT) USING kafka OPTIONS (topic 'clicks', format 'json');"
PAGES = "CREATE VIEW pages AS SELECT page, count(*) AS c FROM clicks GROUP BY page;"
BOTH = "CREATE VIEW both AS SELECT k, sum(n) AS n, max(page) AS page FROM events JOIN clicks USING (k) GROUP BY k;"
FILES = {f"{i}.sql": sql for i, sql in enumerate((EVENTS, SUMS, TOTAL, CLICKS, PAGES, BOTH))}


def read_by_an_older_lamina(catalog: Catalog, *sources: str) -> Catalog:
    """The catalog with another parse of some sources, and with other versions of the views that they feed."""

    def view(of: View) -> View:
        return of if of.fed_by.isdisjoint(sources) else replace(of, version=f"of {of.version}")

    older = {name: replace(catalog.sources[name], parse="SELECT 'otherwise' AS it") for name in sources}
    return Catalog({**catalog.sources, **older}, {name: view(compiled) for name, compiled in catalog.views.items()})


def actions(before: Catalog, after: Catalog) -> dict[str, str]:
    counted = dict.fromkeys(before.sources, 10)
    return {f"{c.kind} {c.name}": c.action for c in compare(before, after, Facts(counted)) if c.action != "nothing"}


def test_a_source_keeps_its_deployed_parse_until_a_view_of_it_is_computed() -> None:
    older = read_by_an_older_lamina(compile_catalog(FILES), "events")
    kept = {"source events": "keep", "view sums": "keep", "view both": "keep"}
    assert actions(older, compile_catalog(FILES)) == kept
    top = "CREATE VIEW top AS SELECT * FROM sums WHERE c > 1;"  # a view over views has no cells
    assert actions(older, compile_catalog({**FILES, "top.sql": top})) == {**kept, "view top": "create"}
    busy = "CREATE VIEW busy AS SELECT count(*) AS c FROM clicks;"  # its cells are of another source
    assert actions(older, compile_catalog({**FILES, "busy.sql": busy})) == {**kept, "view busy": "reprocess"}


@pytest.mark.parametrize(
    "sql",
    [SUMS.replace("sum(n)", "max(n)"), BOTH.replace("max", "min"), "CREATE VIEW most AS SELECT max(n) FROM events;"],
    ids=["a view changes", "a view with another source changes", "a view is new"],
)
def test_one_parse_feeds_all_views_of_a_source_or_all_are_recomputed(sql: str) -> None:
    older = read_by_an_older_lamina(compile_catalog(FILES), "events")
    [name] = compile_catalog({"sources.sql": EVENTS + CLICKS, "view.sql": sql}).views
    others = {file: text for file, text in FILES.items() if not text.startswith(f"CREATE VIEW {name} ")}
    changed = actions(older, compile_catalog({**others, "view.sql": sql}))
    computed = {f"view {view}": "reprocess" for view in ("sums", "both", name)}
    assert changed == {"source events": "update", **computed}


def test_sources_that_share_a_view_are_read_again_together() -> None:
    older = read_by_an_older_lamina(compile_catalog(FILES), "events", "clicks")
    changed = actions(older, compile_catalog({**FILES, "1.sql": SUMS.replace("sum(n)", "max(n)")}))
    assert changed == {"source events": "update", "source clicks": "update"} | {
        f"view {name}": "reprocess" for name in ("sums", "both", "pages")
    }


def test_new_views_read_a_stream_with_unique_by_its_deployed_parse() -> None:
    files = {"events.sql": EVENTS.replace("n BIGINT", "n BIGINT, UNIQUE (k)"), "sums.sql": SUMS}
    older = read_by_an_older_lamina(compile_catalog(files), "events")
    commented = {**files, "events.sql": files["events.sql"].replace("n BIGINT", "n BIGINT COMMENT 'so many'")}
    for declared in (files, commented):
        changed = compile_catalog({**declared, "sums.sql": SUMS.replace("sum(n)", "max(n)")}, older.sources)
        assert changed.sources["events"].parse == older.sources["events"].parse
        assert actions(older, changed) == {"view sums": "reprocess"}
        assert changed.views["sums"].version != compile_catalog({**files, "sums.sql": SUMS}).views["sums"].version


def test_a_stream_whose_ids_an_older_lamina_stored_keeps_its_declaration() -> None:
    """Two texts would read it differently, and with one of them bad records might be good."""
    files = {"events.sql": EVENTS.replace("n BIGINT", "n BIGINT, UNIQUE (k)"), "sums.sql": SUMS}
    older = read_by_an_older_lamina(compile_catalog(files), "events")
    wider = {**files, "events.sql": files["events.sql"].replace("n BIGINT", "n BIGINT, m BIGINT")}
    assert actions(older, compile_catalog(wider, older.sources))["source events"] == "refuse"
    assert actions(compile_catalog(files), compile_catalog(wider))["source events"] == "update"


def test_new_groups_and_aggregates_are_named_with_the_records_and_the_time_that_they_take() -> None:
    wider = "CREATE VIEW sums AS SELECT k, n % 2 AS odd, count(*) AS c, max(n) AS most FROM events GROUP BY k, n % 2;"
    facts = Facts(
        counted={"events": 1_000_000}, measured=MeasuredRebuild(7, 2_000_000, 200.0), sizes={"sums": 3 * 2**20}
    )
    change = planned(facts, sums=wider)["sums"]
    assert (change.action, change.records) == ("reprocess", 1_000_000)
    assert (change.seconds, change.bytes) == (100.0, 3 * 2**20)
    assert change.effect == (
        "new cells: groups (n_2 is new), partials (max_n is new, sum_n is removed); 1,000,000 records are read,"
        " about 100 s at the rate of rebuild 7; the old version, with 3.1 MB of cells, is served meanwhile"
    )
    assert change.breaks == ("column s would be removed",)
    assert change.dependents == ("total",)
    assert "-CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s FROM events GROUP BY k" in change.diff


def test_a_change_above_the_cells_computes_no_new_cells() -> None:
    changes = planned(
        sums="CREATE VIEW sums AS SELECT k, count(*) AS c, sum(n) AS s, sum(n) + 1 AS t FROM events GROUP BY k;"
    )
    assert {name: (change.action, change.records) for name, change in changes.items()} == {"sums": ("update", None)}


def test_a_break_is_refused_by_name_until_it_is_allowed() -> None:
    changes = list(planned(sums="CREATE VIEW sums AS SELECT k, count(*) AS c FROM events GROUP BY k;").values())
    with pytest.raises(LaminaError, match="Readers would lose columns") as refused:
        check_allowed(changes, prune=False)
    assert refused.value.evidence == "sums: column s would be removed (read by total)"
    check_allowed(changes, prune=False, allow_break=True)


def test_a_source_with_another_column_makes_new_versions_of_its_views() -> None:
    changes = planned(events=EVENTS.replace("n BIGINT", "n BIGINT, device STRING"))
    assert changes["events"].effect.startswith("column device is new: every record is read again from its value")
    assert changes["sums"].action == "reprocess"
    assert changes["sums"].effect.startswith("new cells: how records are read")
    assert "total" not in changes


def test_a_stream_keeps_its_identity_of_events() -> None:
    unique = EVENTS.replace("n BIGINT", "n BIGINT, UNIQUE (k)")
    before = compile_catalog({"events.sql": unique})
    [change] = compare(before, compile_catalog({"events.sql": unique.replace("n BIGINT", "n BIGINT, d INT")}), Facts())
    assert change.action == "update"
    noted = compile_catalog({"events.sql": unique.replace("n BIGINT", "n BIGINT, note STRING")})
    [change] = compare(noted, before, Facts())
    assert change.action == "refuse", "a text that was bad by U+0000 would be good"
    [change] = compare(before, noted, Facts(reading={"events": ("dev",)}))
    assert "the preview dev reads it as it is deployed" in change.effect
    of_texts = unique.replace("n BIGINT", "n STRING")  # a number that was bad would be a good text
    of_numbers = unique.replace("k STRING", "k DECIMAL(4, 2)")  # its ids have other texts: 1.2 is '1.20'
    for other in (EVENTS, unique.replace("(k)", "(n)"), unique.replace("(k)", "(k, n)"), of_texts, of_numbers):
        [change] = compare(before, compile_catalog({"events.sql": other}), Facts())
        assert change.action == "refuse", other
        assert "declare it under another name, and let the views read that" in change.effect


def test_a_changed_ask_again_option_makes_new_versions() -> None:
    events = EVENTS.replace("'json'", "'avro'")
    files = {"events.sql": events, "sums.sql": SUMS}
    again = files | {"events.sql": events.replace("'avro'", "'avro', ask_again '1'")}
    changes = compare(compile_catalog(files), compile_catalog(again), Facts(counted={"events": 5}))
    assert [(change.name, change.action) for change in changes] == [("events", "update"), ("sums", "reprocess")]
    assert changes[0].effect.startswith("ask_again is 1 and was not set: every record is read again from its value")
    unique = {name: sql.replace("n BIGINT", "n BIGINT, UNIQUE (k)") for name, sql in files.items()}
    asked = unique | {"events.sql": unique["events.sql"].replace("'avro'", "'avro', ask_again '1'")}
    [change, _] = compare(compile_catalog(unique), compile_catalog(asked), Facts(counted={"events": 5}))
    assert (change.action, "records that were bad would be good now" in change.effect) == ("refuse", True)


@pytest.mark.parametrize("options", ['schema \'{"type": "record", "name": "r", "fields": []}\'', "ask_again '3'"])
def test_the_definition_of_a_view_says_how_its_records_are_decoded(options: str) -> None:
    files = {"events.sql": EVENTS.replace("'json'", f"'avro', {options}"), "sums.sql": SUMS}
    catalog = compile_catalog(files)
    kept = definitions.of(catalog, "sums").sources["events"]
    assert Decoding.of(kept) == Decoding.of(catalog.sources["events"])


def test_a_setting_is_a_change() -> None:
    changes = planned(
        events=EVENTS.replace(");", ") TBLPROPERTIES ('quarantine_age' = '9 days');"),
        sums=SUMS.replace("VIEW sums AS", "VIEW sums TBLPROPERTIES ('keep_versions' = '2') AS"),
    )
    assert {name: (change.action, change.effect) for name, change in changes.items()} == {
        "events": ("update", "quarantine_age is 9 days"),
        "sums": ("update", "keep_versions is 2"),
    }


def test_a_view_over_only_a_new_source_reads_all_records_of_its_topic() -> None:
    once = EVENTS.replace("events (", "events_once (").replace("n BIGINT", "n BIGINT, UNIQUE (k)")
    sums = SUMS.replace("FROM events", "FROM events_once")
    change = planned(Facts(counted={"events": 600}), events=once, sums=sums)["sums"]
    assert change.effect == (
        "new cells: sources (events_once is new, events is removed); all records of topic events are read for"
        " events_once; the old version is served meanwhile; events_once is read up to its end before the move"
    )


def test_a_new_view_over_counted_records_is_computed_before_it_is_served() -> None:
    most = "CREATE VIEW most AS SELECT max(n) AS n FROM events;"
    change = planned(Facts(counted={"events": 600}, measured=MeasuredRebuild(7, 1_200, 240.0)), most=most)["most"]
    assert (change.action, change.records, change.seconds) == ("reprocess", 600, 120.0)
    assert change.effect == (
        "new cells: events has counted records; 600 records are read, about 2 min at the rate of rebuild 7"
    )
    tiny = planned(Facts(counted={"events": 4_300}, measured=MeasuredRebuild(7, 5, 8.4)), most=most)["most"]
    assert (tiny.records, tiny.seconds) == (4_300, None)
    assert tiny.effect == (
        "new cells: events has counted records; 4,300 records are read"
        " (no rebuild so far read nearly as many: how long it takes is unknown)"
    )
    at_once = planned(Facts(counted={"events": 0}), most=most)["most"]
    assert (at_once.action, at_once.effect) == ("create", "served at once")


def test_next_to_a_rename_a_new_view_waits_for_its_history_and_no_served_view_may_read_it() -> None:
    most = "CREATE VIEW most AS SELECT max(n) AS n FROM events;"
    renamed = SUMS.replace("VIEW sums", "VIEW summed TBLPROPERTIES ('renamed_from' = 'sums')")
    assert renamed != SUMS
    waits = planned(sums=renamed, most=most, total=TOTAL.replace("sums", "summed"))
    assert waits["summed"].action == "update"
    assert (waits["most"].action, waits["most"].effect) == (
        "create",
        "served after `lamina rebuild most`: a rename comes first",
    )
    read = "CREATE VIEW total AS SELECT sum(c) AS c, max(m.n) AS n FROM summed, most m;"
    assert planned(sums=renamed, most=most, total=read)["summed"].action == "refuse"


def test_a_return_to_a_kept_version_takes_effect_at_once() -> None:
    other = SUMS.replace("sum(n)", "max(n)")
    version = compile_catalog({"events.sql": EVENTS, "sums.sql": other}).views["sums"].version
    change = planned(Facts(counted={"events": 5}, kept={("sums", version): 7}), sums=other)["sums"]
    assert (change.action, change.effect) == ("update", "this version of its cells is kept, and live: served at once")


def test_a_view_that_other_roles_read_is_never_dropped() -> None:
    facts = Facts(others={"sums": ("public.theirs",)})
    moved = planned(facts, sums="CREATE VIEW sums AS SELECT count(*) AS c, k, sum(n) AS s FROM events GROUP BY k;")[
        "sums"
    ]
    assert (moved.action, "read by public.theirs" in moved.effect) == ("refuse", True)
    before = compile_catalog({"events.sql": EVENTS, "sums.sql": SUMS})
    assert [change.action for change in compare(before, NOTHING, facts)] == ["drop", "refuse"]


def test_plan_suggests_a_rename_for_a_view_that_returns_under_another_name() -> None:
    changes = planned(sums=SUMS.replace("VIEW sums", "VIEW added"), total=TOTAL.replace("sums", "added"))
    line = "TBLPROPERTIES ('renamed_from' = 'sums')"
    assert changes["sums"].effect.endswith(f"to keep the cells under that name, declare it with {line}")
    declared = SUMS.replace("VIEW sums", f"VIEW added {line}")
    changes = planned(sums=declared, total=TOTAL.replace("sums", "added"))
    assert "sums" not in changes
    assert (changes["added"].action, changes["added"].effect) == ("update", "renamed from sums: its cells stay")
    assert changes["added"].breaks == ("the name sums would be free",)


def test_a_rename_is_refused_if_the_cells_change_or_the_old_view_stays() -> None:
    line = "TBLPROPERTIES ('renamed_from' = 'sums')"
    added = SUMS.replace("VIEW sums", f"VIEW added {line}")
    of_new_cells = added.replace("sum(n) AS s", "max(n) AS s")
    assert planned(sums=of_new_cells, total=TOTAL.replace("sums", "added"))["added"].action == "refuse"
    assert planned(added=added)["added"].action == "refuse"
    other = "CREATE VIEW extra AS SELECT max(n) AS m FROM events;"
    both = planned(sums=added, extra=other, total=TOTAL.replace("sums", "added").replace("sum(c)", "max(c)"))
    assert both["added"].action == "update"


def test_a_column_named_like_a_postgres_function_needs_quotes() -> None:
    by_user = "CREATE VIEW by_user AS SELECT k AS user, count(*) AS c, current_date() AS day FROM events GROUP BY k;"
    table = (
        "CREATE TABLE logins (session_user STRING PRIMARY KEY, n INT) USING kafka OPTIONS (topic 'l', format 'json');"
    )
    changes = planned(by_user=by_user, logins=table)
    warning = 'readers have to quote "{}": without quotes, Postgres gives them its own value'
    assert warning.format("user") in changes["by_user"].effect
    assert warning.format("session_user") in changes["logins"].effect
    others = planned(sums=SUMS.replace("sum(n)", "max(n)"))
    assert not any("quote" in change.effect for change in others.values())


def test_a_changed_function_changes_the_views_that_call_it() -> None:
    called = SUMS.replace("sum(n)", "sum(half(n))")
    half = "CREATE FUNCTION half(x BIGINT) RETURNS BIGINT RETURN x div {};"
    before = compile_catalog({"a.sql": EVENTS + called + TOTAL, "f.sql": half.format(2)})
    after = compile_catalog({"a.sql": EVENTS + called + TOTAL, "f.sql": half.format(4)})
    changes = {change.name: change for change in compare(before, after, Facts(counted={"events": 10}))}
    assert (changes["sums"].action, changes["total"].action) == ("reprocess", "nothing")
    assert "div 4" in changes["sums"].diff.lower()


def test_a_refused_break_names_all_options_that_the_catalog_needs() -> None:
    breaks = PlannedChange("view", "sums", "update", "its text changes", breaks=("column n would be removed",))
    drops = PlannedChange("view", "pages", "drop", "it is no longer served")
    with pytest.raises(LaminaError, match="Readers would lose") as raised:
        check_allowed([breaks, drops], prune=False)
    assert "`lamina apply --allow-break --prune`, which also drops pages." in raised.value.way_out
    with pytest.raises(LaminaError) as raised:
        check_allowed([breaks, drops], prune=True)
    assert "--prune" not in raised.value.way_out


def test_a_source_whose_decoders_have_changed_is_read_again() -> None:
    files = {"events.sql": EVENTS.replace("'json'", "'avro'"), "sums.sql": SUMS}
    after = compile_catalog(files)
    old = after.sources["events"]
    assert f'"version": {DECODERS}' in old.parse
    was = replace(old, parse=old.parse.replace(f'"version": {DECODERS}', f'"version": {DECODERS - 1}'))
    sums = replace(after.views["sums"], version="as it was read then")
    before = replace(after, sources={"events": was}, views={"sums": sums})
    changes = compare(before, after, Facts(counted={"events": 1_000}))
    assert {change.name: change.action for change in changes} == {"events": "update", "sums": "reprocess"}
