"""A record that an expression would compute forever ends a command, which names the view and the record."""

from __future__ import annotations

from dataclasses import replace

import pytest

from serving_layer.catalog import versions
from tests.fix_lamina import CommandLine, Deployed
from tests.speed_layer.endless import HOSTILE, idles
from tests.speed_layer.endless import impatient as impatient_speed

PATIENT = ("5", "5", "5")
"""Seconds: metrics of tasks are up to a second old, as `HEARTBEATS` are."""

HEARTBEATS = "-Dspark.executor.heartbeatInterval=1s"

SOURCE = """
    CREATE TABLE a (k STRING, a STRING) USING kafka OPTIONS (topic '{topics}_a', format 'json')
    TBLPROPERTIES ('partitions' = '1');
    CREATE VIEW counted AS SELECT count(*) AS records FROM a;
"""
MATCHING = "CREATE VIEW matching AS SELECT count(*) FILTER (WHERE {}) AS found FROM a;"

ENDLESS = "a RLIKE concat('.*foo.*bar', '.*')"


@pytest.fixture
def impatient(lamina: CommandLine, deployed: Deployed) -> CommandLine:
    """Commands with their own JVM. `deployed` has one record for which `ENDLESS` takes hours."""
    deployed.apply(a=SOURCE)
    deployed.send("a", *[{"k": "a", "a": "foo bar"}] * 3, HOSTILE, {"k": "a", "a": "foo"})
    deployed.catch_up()
    options = f"{lamina.environment['SPARK_SUBMIT_OPTS']} {HEARTBEATS}"
    return replace(
        lamina, environment={**lamina.environment, "SPARK_SUBMIT_OPTS": options}, program="tests.impatient_command"
    )


def written(deployed: Deployed, lamina: CommandLine, **files: str) -> str:
    """A folder with the deployed declarations and these."""
    for name, sql in {**deployed.files, **{f"{name}.sql": sql for name, sql in files.items()}}.items():
        (lamina.folder / name).write_text(sql)
    return str(lamina.folder)


def test_a_stalled_apply_names_view_and_record_and_delays_no_micro_batch(
    deployed: Deployed, impatient: CommandLine, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(deployed, impatient, matching=MATCHING.format(ENDLESS))
    with impatient_speed(impatient, 5, 10, 5) as speed:
        deployed.send("a", {"k": "a", "a": "foo"})
        deployed.wait_for("a")
        command = impatient.start(*PATIENT, "apply", "--catalog", folder)
        deployed.until(lambda: announced(deployed), "the version is announced")
        deployed.send("a", HOSTILE)
        deployed.wait_for("a")
        _, stderr = command.communicate(timeout=400)
        assert command.returncode == 1
        assert "matching: Spark stood still for" in stderr
        assert "partition 0, offset 3" in stderr or "partition 0, offset 6" in stderr
        assert "java.util.regex" in stderr
        deployed.send("a", {"k": "a", "a": "foo"})
        deployed.wait_for("a")
        assert idles(speed), "the prepared statement spins"
    assert "Spark is restarted" in capsys.readouterr().out
    assert deployed.rows("SELECT * FROM counted") == [(8,)]
    deployed.apply(matching=MATCHING.format(f"CASE WHEN length(a) < 10000 THEN {ENDLESS} END"))
    assert deployed.rows("SELECT * FROM matching") == [(3,)]
    assert len(deployed.check()) == 2


def announced(deployed: Deployed) -> bool:
    """True if a version is announced that the speed layer must prepare."""
    with deployed.deployment.database.begin() as connection:
        return bool(versions.unprepared_tables(connection, "a"))


def test_a_stalled_check_still_checks_every_other_view(deployed: Deployed, impatient: CommandLine) -> None:
    longest = "CREATE VIEW a_longest AS SELECT k, max(a) AS a, max({}) AS found FROM a GROUP BY k;".format(
        "CASE WHEN length(a) < 10000 THEN length(a) END"
    )
    above = f"CREATE VIEW above AS SELECT k, {ENDLESS} AS found FROM a_longest;"
    deployed.apply(longest=longest, above=above, summed="CREATE VIEW summed AS SELECT count(*) AS n FROM above;")
    ended = impatient(*PATIENT, "check", "--json", code=1, timeout=400)
    lines = {line["view"]: line for line in ended.lines()}
    assert {name: line["result"] for name, line in lines.items()} == {
        "counted": "equal",
        "a_longest": "equal",
        "above": "FAILED",
        "summed": "FAILED",
    }
    assert "above: Spark stood still" in lines["above"]["error"]
    assert "a from" in lines["above"]["error"]
