"""The views of `views.sql`, over a source of events."""

from __future__ import annotations

from pathlib import Path

SOURCE = """CREATE TABLE events (
  event_id STRING, user_id BIGINT, kind STRING, country STRING, city STRING, amount DECIMAL(10,2), price DOUBLE,
  ts TIMESTAMP, payload STRUCT<user: STRUCT<id: BIGINT>, tags: ARRAY<STRING>>
) USING kafka OPTIONS (topic 'events', format 'json');
"""


VIEWS = (Path(__file__).parent / "views.sql").read_text(encoding="utf-8")
