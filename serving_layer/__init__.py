"""The serving layer: the only code that speaks to the views, cells and bookkeeping in Postgres.

In: cells, with the range of offsets they were computed from. Out: SQL views in schema `analytics`. The promise, after
every committed transaction: the cells of a live generation are the cells of all records below progress.

Schemas: `lamina` (bookkeeping), `cells` (a table per generation of a view version), `realtime` (realtime tables, ids
of events, notes of differing cells), `analytics` (the analysts' views), one for each preview, `spark` (functions),
`iceberg` (the master log's catalog). The rooms, from the top down: `monitoring`, `upkeep`, `change`, `promise` and
`readers`, `catalog`, `postgres`, `narration`. Imports point down.

A new alarm is a row of `monitoring/alarms.py`, and a new metric a row of `monitoring/metric_table.py`.
"""
