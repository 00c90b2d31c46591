"""The console's first page lists each fault that needs a person, and its way out."""

from __future__ import annotations

import re
from contextlib import closing

import psycopg2
import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from lamina.reports import statuses
from serving_layer.monitoring import deployment_alarms
from tests.fix_lamina import Deployed
from tests.lamina.browsers.console_client import console, texts

FAULTS = """
CREATE TABLE {0} (id BIGINT, page STRING) USING kafka
OPTIONS (topic '{{topics}}_{0}', format 'json') TBLPROPERTIES ('partitions' = '1', 'quarantine_bytes' = '100 kB');
CREATE VIEW of_{0} TBLPROPERTIES ('on_difference' = 'hold') AS SELECT page, count(*) AS n FROM {0} GROUP BY page;
"""

AGO = "clock_timestamp() - interval"

PLANTED = {
    "dead speed layer": (
        f"""
UPDATE lamina.query SET writer = 'process 1 on a', writer_kind = 'speed layer' WHERE name = 'dead';
INSERT INTO lamina.heartbeat VALUES ('dead', {AGO} '40 s')
ON CONFLICT (query) DO UPDATE SET heard_at = excluded.heard_at
""",
        r"dead: its speed layer \(process 1 on a\) was last heard of [4-9]\d s ago: start it again \( lamina up \)",
    ),
    "full quarantine": (
        """
INSERT INTO lamina.quarantine (source, topic, partition, "offset", error, value)
SELECT 'full', 'full', 0, n, 'no JSON', decode(repeat('ff', 900), 'hex') FROM generate_series(1, 80) AS n;
INSERT INTO lamina.bad_count (source, topic, error, records) VALUES ('full', 'full', 'no JSON', 800)
""",
        r"full: more records than it keeps went to quarantine within an hour: .* \(correct the producer",
    ),
    "failed rebuild": (
        "INSERT INTO lamina.rebuild (views, step, state, error) VALUES ('{of_dead}', 'seal', 'failed', 'no memory')",
        r"rebuild \d+ failed after step seal : no memory \( lamina rebuild begins again\)",
    ),
    "lagging archive": (
        f"UPDATE lamina.query SET created_at = {AGO} '5 days', caught_up_at = now() WHERE name = 'archive'",
        r"archive: nothing was archived for 5 d, and Kafka keeps records for 7 d: run lamina archive",
    ),
    "held view": (
        """
WITH held AS (INSERT INTO lamina.rebuild (views, step, state) VALUES ('{of_full}', 'prove', 'held') RETURNING id)
INSERT INTO lamina.generation (view, version, state, rebuild)
SELECT name, version, 'live', id FROM lamina.view, held WHERE name = 'of_full'
""",
        r"of_full: its proof found a difference, .* lamina step hand-over --anyway of_full --rebuild \d+ lets the new",
    ),
    "slow reader": ("", r"a session of analyst has held a snapshot for .* SELECT pg_terminate_backend\(\d+\) ends it"),
    "differing proof": (
        """
INSERT INTO lamina.proof (view, generation, against, cells, differing, examples)
SELECT view, generation, generation, 9, 2, '[]' FROM lamina.publication WHERE view = 'of_late'
""",
        r"of_late: its newest proof found 2 of 9 cells that differ \(.* lamina check of_late compares",
    ),
    "late source": (
        f"UPDATE lamina.query SET created_at = {AGO} '80 s' WHERE name = 'late'",
        r"late: 1 record behind, and none was counted for [89]\d s: no speed layer runs \( lamina up ,",
    ),
    "mistyped field": (
        "",
        r"late: pgae is not declared, in 1 of 1 records; did you mean page\? \(correct the producer",
    ),
    "mistyped value": (
        """
UPDATE lamina.progress SET next_offset = 20 WHERE query = 'wrong';
INSERT INTO lamina.quarantine (source, topic, partition, "offset", error)
SELECT query, topic, partition, n, 'id is no BIGINT' FROM lamina.progress, generate_series(8, 19) AS n
WHERE query = 'wrong'
""",
        r"wrong: 12 of its newest 20 records went to quarantine within an hour: .* \(correct the producer",
    ),
    "full disk": ("", r"the disk of \S+ has [\d,.]+ GB left: make room before"),
}
"""By fault, the statement that plants it, and the sentence on the first page."""


def test_the_first_page_shows_each_planted_fault_and_its_way_out(
    deployed: Deployed, kafka_admin: KafkaAdminClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.apply(faults="".join(FAULTS.format(name) for name in ("dead", "full", "archive", "late", "wrong")))
    attention = r"What needs attention(.*?)Views"
    with console(deployed.deployment) as browser:
        before = texts(browser("/"))
    assert re.search(r"What needs attention ✓ Nothing else needs attention. Views", before)
    topic, week = deployed.topic("archive"), {"retention.ms": str(7 * 86_400_000)}
    kafka_admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, week)])
    deployed.until(lambda: deployed.deployment.brokers.retention(topic).milliseconds is not None, "it is kept a week")
    for source in ("archive", "late"):
        deployed.send(source, {"id": 1, "pgae" if source == "late" else "page": "shop"})
    for statement, _ in PLANTED.values():
        if statement:
            deployed.owner(statement)
    assert deployed.deployment.settings.analyst is not None
    monkeypatch.setattr(deployment_alarms, "SNAPSHOT_SECONDS", 0.0)
    monkeypatch.setattr(statuses, "LITTLE_ROOM", 10**15)
    with closing(psycopg2.connect(deployed.deployment.settings.analyst)) as reader, reader.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM analytics.of_late")
        with console(deployed.deployment) as browser:
            page = browser("/")
    [shown] = re.findall(attention, texts(page))
    for fault, (_, sentence) in PLANTED.items():
        assert re.search(sentence, shown), f"{fault}: {shown}"
    assert shown.count("▲") == len(PLANTED), "nothing is shown twice"
