"""Sources over one topic begin at the offsets that they declare, and their log at the lowest of these."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from lamina.operations import applying
from master_log.offsets import Offsets
from tests.batch_layer.receipts import receipt, verified
from tests.fix_lamina import Deployed
from view_algebra.errors import LaminaError

BEGUN = """
    CREATE TABLE {name} (name STRING, amount BIGINT{key}) USING kafka
    OPTIONS (topic '{{topics}}_amounts', format 'json', start '{start}');
    CREATE VIEW of_{name} AS SELECT name, sum(amount) AS total, count(*) AS n FROM {name} GROUP BY name;
"""

NEW_YEAR = 1_767_225_600_000
"""The beginning of 2026 in UTC, in milliseconds."""


def begun(name: str, start: str, key: str = "") -> dict[str, str]:
    """The declaration of a source that begins there, and of its view."""
    return {name: BEGUN.format(name=name, start=start, key=key)}


@dataclass
class Amounts:
    """A topic of two partitions whose amounts add up to digits, and the expected state of the sources over it.

    totals: by source, the sum of the amounts that it counts in each partition
    begins: by source, the first offset that it counts in each partition
    """

    deployed: Deployed
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    begins: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return f"{self.deployed.prefix}_amounts"

    def send(self, partition: int, *amounts: int | None, at: int = NEW_YEAR + 9) -> None:
        """Sends a record for each amount, and one that is not JSON for None."""
        for amount in amounts:
            value = b"no JSON" if amount is None else b'{"name": "p%d", "amount": %d}' % (partition, amount)
            self.deployed.producer.send(self.topic, value, partition=partition, timestamp_ms=at)
        self.deployed.producer.flush()

    def send_before_and_after_new_year(self) -> None:
        """Sends five records to partition 0 and four to partition 1. The first ones are not JSON."""
        self.deployed.deployment.brokers.create(self.topic, 2)
        self.send(0, None, 1, 10, 100, at=NEW_YEAR - 1)
        self.send(1, None, None, 1, at=NEW_YEAR - 1)
        self.send(0, 1_000, at=NEW_YEAR)
        self.send(1, 10, at=NEW_YEAR + 5)

    def shown(self, name: str) -> dict[object, object]:
        """The totals that the view of a source shows."""
        return {row[0]: row[1] for row in self.deployed.rows(f"SELECT * FROM of_{name}")}

    def assert_shown(self) -> None:
        """Every source counts from its beginning on, and the catalog says where that is."""
        assert {name: self.shown(name) for name in self.totals} == self.totals
        listed = "array_agg(first_offset ORDER BY partition)"
        offsets = f"SELECT source, {listed} FROM lamina.offsets WHERE starts_with(view, 'of_') GROUP BY 1"
        assert {name: tuple(at) for name, at in self.deployed.rows(offsets)} == self.begins


@pytest.fixture
def amounts(deployed: Deployed) -> Amounts:
    amounts = Amounts(deployed)
    amounts.send_before_and_after_new_year()
    return amounts


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ('{"0": 6}', "offset 6 of partition 0"),
        ('{"2": 0}', "partition 2"),
        ("2999-01-01T00:00:00Z", "in the future"),
    ],
)
def test_a_beginning_that_the_topic_does_not_have_is_refused(
    deployed: Deployed, amounts: Amounts, start: str, why: str
) -> None:
    with pytest.raises(LaminaError, match=why):
        deployed.apply(**begun("wrong", start))
    with pytest.raises(LaminaError, match=why):
        applying.plan(deployed.deployment, deployed.files)


def test_sources_begin_at_their_declared_offsets_and_the_log_at_the_lowest(
    deployed: Deployed, amounts: Amounts
) -> None:
    first = count_from_the_end_of_the_topic(amounts)
    count_from_each_kind_of_beginning(amounts)
    deployed.deployment.batch.rebuild()  # the log reaches back to the first record
    assert deployed.owner("SELECT sum(differing) FROM lamina.proof") == [(0,)]
    assert_counted_from_each_beginning(amounts)
    source = deployed.deployment.deployed().sources["newest"]
    assert deployed.deployment.log().start(source) == Offsets.of(amounts.topic, {0: 0, 1: 0})
    end = deployed.deployment.brokers.latest(amounts.topic)
    assert deployed.deployment.log().records_below(source, end).count() == 11
    assert verified(deployed, first).equal


def count_from_the_end_of_the_topic(amounts: Amounts) -> str:
    """A source that begins at the topic's end counts the records that follow. Returns a receipt of its view."""
    deployed = amounts.deployed
    deployed.apply(**begun("newest", "latest"))
    amounts.send(0, 10_000)
    deployed.catch_up()
    assert amounts.shown("newest") == {"p0": 10_000}
    deployed.deployment.batch.rebuild()
    return receipt(deployed, "of_newest")


def count_from_each_kind_of_beginning(amounts: Amounts) -> None:
    """Sources that begin at the first record, at offsets or at a time count records that the log may lack."""
    deployed = amounts.deployed
    deployed.apply(
        **begun("all_of_it", "earliest"),
        **begun("some", '{"0": 2}'),
        **begun("timed", "2026-01-01T01:00:00+01:00"),
        **begun("rows", '{"0": 3, "1": 3}', ", PRIMARY KEY (name)"),
    )
    amounts.send(1, 100_000)
    deployed.catch_up()
    amounts.totals = {
        "newest": {"p0": 10_000, "p1": 100_000},
        "all_of_it": {"p0": 11_111, "p1": 100_011},
        "some": {"p0": 11_110, "p1": 100_011},
        "timed": {"p0": 11_000, "p1": 100_010},
    }
    amounts.begins = {"newest": (5, 4), "all_of_it": (0, 0), "some": (2, 0), "timed": (4, 3), "rows": (3, 3)}
    assert_counted_from_each_beginning(amounts)


def assert_counted_from_each_beginning(amounts: Amounts) -> None:
    """Views, bad records, checks and receipts all begin where their source does."""
    deployed = amounts.deployed
    amounts.assert_shown()
    assert deployed.rows("SELECT * FROM rows ORDER BY name") == [("p0", 10_000), ("p1", 100_000)]
    bad = "SELECT source, records FROM lamina.bad_records WHERE error = 'not JSON'"
    assert set(deployed.rows(bad)) == {("all_of_it", 3), ("some", 2)}
    later = {name for result in deployed.check() for name in result.begins}
    assert later == amounts.begins.keys() - {"all_of_it"}
    assert verified(deployed, receipt(deployed, "of_timed")).equal


def test_a_view_moves_to_a_source_with_another_beginning(deployed: Deployed, amounts: Amounts) -> None:
    deployed.apply(**begun("some", '{"0": 2}'))
    deployed.catch_up()
    assert amounts.shown("some") == {"p0": 1_110, "p1": 11}
    refuse_to_move_a_beginning(deployed)
    deployed.apply(some=begun("later", '{"0": 3, "1": 3}')["later"].replace("of_later", "of_some"))
    amounts.totals = {"some": {"p0": 1_100, "p1": 10}}
    amounts.begins = {"later": (3, 3)}
    amounts.assert_shown()
    amounts.send(0, 1_000_000, at=NEW_YEAR - 1)
    deployed.deployment.batch.rebuild(leap=True)
    assert amounts.shown("some") == {"p0": 1_001_100, "p1": 10}
    deployed.check()
    assert verified(deployed, receipt(deployed, "of_some")).equal


def refuse_to_move_a_beginning(deployed: Deployed) -> None:
    """A source that counts already cannot begin elsewhere."""
    [change] = [
        change
        for change in applying.plan(
            deployed.deployment,
            {**deployed.files, "some.sql": deployed.files["some.sql"].replace('{"0": 2}', '{"0": 4}')},
        )
        if change.name == "some"
    ]
    assert change.action == "refuse"
    assert "and began at" in change.effect
