"""A record that Spark would compute forever: its source leaves the shared run, names it and continues after a skip."""

from __future__ import annotations

from lamina.operations import topic_records
from tests.fix_lamina import CommandLine, Deployed
from tests.speed_layer.endless import HOSTILE, idles, impatient

SOURCES = """
    CREATE TABLE {0} (k STRING, a STRING, xs ARRAY<BIGINT>) USING kafka OPTIONS (topic '{{topics}}_{0}', format 'json')
    TBLPROPERTIES ('partitions' = '1');
    CREATE VIEW {0}_found AS
    SELECT count(*) AS records,
      count(*) FILTER (WHERE a RLIKE concat('.*foo.*bar', '.*')) AS found,
      count(*) FILTER (WHERE exists(xs, x -> exists(xs, y -> exists(xs, z -> x + y + z < 0)))) AS negative
    FROM {0};
"""
JVMS_TAKE = 400.0
"""Seconds. A JVM starts for each part of the range whose process was killed."""

NESTED = {"k": "a", "xs": [1] * 5_000}
"""The view adds up 125 billion triples of them."""


def stopped(deployed: Deployed, name: str) -> str:
    [(why,)] = deployed.owner(f"SELECT stopped FROM lamina.query WHERE name = '{name}'")
    return str(why)


def test_a_record_that_never_finishes_computing_delays_no_other_source_and_can_be_skipped(
    deployed: Deployed, lamina: CommandLine
) -> None:
    deployed.apply(a=SOURCES.format("a"), b=SOURCES.format("b"))
    with impatient(lamina, 5, 10, 5) as process:
        for name in ("a", "b"):
            deployed.send(name, {"k": "a", "a": "foo bar"})
        for name in ("a", "b"):
            deployed.wait_for(name)
        deployed.send("a", *[{"k": "a", "a": "foo"}] * 3, HOSTILE, {"k": "a", "a": "foo bar"})
        deployed.send("b", {"k": "a", "a": "foo bar"})
        deployed.wait_for("b")
        assert "lamina skip" not in stopped(deployed, "a"), "b does not wait until the record is found"
        deployed.until(lambda: "lamina skip a 0 4 --reason" in stopped(deployed, "a"), "the record is named", JVMS_TAKE)
        assert stopped(deployed, "b") == "None"
        deployed.send("b", {"k": "a", "a": "foo bar"})
        deployed.wait_for("b")
        source = deployed.deployment.deployed().sources["a"]
        topic_records.skip(deployed.deployment, source, 0, 4, "it takes too long")
        deployed.send("a", {"k": "a", "a": "foo"})
        deployed.wait_for("a")
        deployed.send("a", NESTED)
        deployed.until(lambda: "searching for" in stopped(deployed, "a"), "another search begins", JVMS_TAKE)
        topic_records.skip(deployed.deployment, source, 0, 7, "it takes too long as well")
        deployed.send("a", {"k": "a", "a": "foo", "xs": [1, -2]})
        deployed.wait_for("a")
        assert idles(process), "something spins"
    assert deployed.rows("SELECT * FROM a_found") == [(7, 2, 1)]
    assert deployed.rows("SELECT * FROM b_found") == [(3, 3, 0)]
    assert len(deployed.check()) == 2
