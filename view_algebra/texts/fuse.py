"""Fuses all views of a micro-batch into one Spark job: one copy of a record per cell table, and one GROUP BY.

The keys and inputs of all tables share typed slots, as many of a type as the widest table needs. A slot that a table
does not use is NULL. `v` is the number of a row's table. A row with v = 0 stands for bad records, or, for the source of
a table, for a Kafka partition. UNPIVOT is Spark's syntax for its operator Expand, which copies a record without
building objects. Expressions that several tables share are computed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from view_algebra.compiled import CellTable, Column, Fused, Input, Merge, Source
from view_algebra.language.merges import MERGES
from view_algebra.language.quoting import postgres_name
from view_algebra.language.types import INTEGRAL, Type
from view_algebra.record_columns import BAD_FIELDS, CHANGED_ROWS, LEFT_OUT

_NTH = "`position 1`"
_CHANGES = f"LATERAL VIEW {CHANGED_ROWS} g1 AS {_NTH}, "

_GOOD = "kafka_error IS NULL"
_BAD = f"kafka_error <> '{LEFT_OUT}'"


@dataclass
class _Slots:
    """Typed slots, assigned to each table from the first slot of a type on."""

    prefix: str
    kinds: list[tuple[Merge, str]] = field(default_factory=list)
    used: dict[tuple[Merge, str], int] = field(default_factory=dict)

    def next_table(self) -> None:
        self.used = {}

    def take(self, kind: str, merge: Merge = "keep") -> str:
        wanted = (merge, kind)
        number = self.used.get(wanted, 0)
        self.used[wanted] = number + 1
        positions = [i for i, have in enumerate(self.kinds) if have == wanted]
        if number == len(positions):
            self.kinds.append(wanted)
            positions.append(len(self.kinds) - 1)
        return f"{self.prefix}{positions[number]}"


def fuse(source: Source, tables: Sequence[CellTable]) -> Fused:
    """Fuses the partials of a source's aggregate tables into one statement with one GROUP BY."""
    keys, partials = _Slots("k"), _Slots("p")
    bad_slot, partition = partials.take("BIGINT", "sum"), ""
    branches: _Branches = {"": [_Row(_bad(source), 0, {bad_slot: "1L"})]}
    if source.kind == "table":
        partition = keys.take("BIGINT")
        bad = {bad_slot: f"CASE WHEN {_bad(source)} THEN 1L ELSE 0L END"}
        branches = {"": [_Row("true", 0, {**bad, partition: "CAST(kafka_partition AS BIGINT)"})]}
    read_back: dict[str, list[str]] = {}
    for number, table in enumerate(tables, 1):
        _expect(table, source, "aggregate")
        keys.next_table()
        partials.next_table()
        slots = [keys.take(_kind(value)) for value in table.key_inputs]
        merges = (partial.merge for partial in table.partials)
        slots += [partials.take(_kind(value), merge) for value, merge in zip(table.partial_inputs, merges, strict=True)]
        branches.setdefault(table.generators, []).append(_Row(_condition(table), number, _values(table, slots)))
        read_back[table.name] = _read_back(table, slots)
    groups = [(f"k{i}", kind) for i, (_, kind) in enumerate(keys.kinds)]
    merged = [(f"p{i}", merge, kind) for i, (merge, kind) in enumerate(partials.kinds)]
    names = [*groups, *((name, kind) for name, _, kind in merged)]
    group = ", ".join(["v", *(name for name, _ in groups)])
    outputs = [
        group,
        *(f"{_aggregated(merge, name)} AS {name}" for name, merge, _ in merged),
        "max(kafka_timestamp) AS newest",
    ]

    def grouped(rows: str) -> str:
        return f"SELECT {', '.join(outputs)}\nFROM (\n{_indent(rows)}\n)\nWHERE v IS NOT NULL\nGROUP BY {group}"

    exploded = _exploded(branches, names)
    # Spark does not know that Expand of one partition is one partition.
    in_one = f"SELECT /*+ COALESCE(1) */ * FROM (\n{_indent(exploded)}\n)"
    columns = [Column("v", "INT", "integer")]
    columns += [Column(name, kind, _postgres(kind)) for name, kind in groups]
    merged_kinds = [(name, MERGES[merge].slot_gives(kind)) for name, merge, kind in merged]
    columns += [Column(name, kind, _postgres(kind)) for name, kind in merged_kinds]
    return _fused(grouped(exploded), grouped(in_one), columns, tables, read_back, partition)


def rows(source: Source, tables: Sequence[CellTable]) -> Fused:
    """Fuses the rows of a source's row tables into one statement. A row with v = 0 stands for a bad record."""
    slots = _Slots("c")
    branches: _Branches = {"": [_Row(_bad(source), 0, {})]}
    read_back: dict[str, list[str]] = {}
    for number, table in enumerate(tables, 1):
        _expect(table, source, "row")
        slots.next_table()
        own = [slots.take(_kind(value)) for value in (*table.key_inputs, *table.partial_inputs)]
        branches.setdefault(table.generators, []).append(_Row(_condition(table), number, _values(table, own)))
        read_back[table.name] = _read_back(table, own)
    names = [(f"c{i}", kind) for i, (_, kind) in enumerate(slots.kinds)]
    outputs = ", ".join(["v", *(name for name, _ in names), "kafka_timestamp AS newest"])
    sql = f"SELECT {outputs}\nFROM (\n{_indent(_exploded(branches, names))}\n)\nWHERE v IS NOT NULL"
    columns = [Column("v", "INT", "integer"), *(Column(n, kind, _postgres(kind)) for n, kind in names)]
    return _fused(sql, sql, columns, tables, read_back)


def _bad(source: Source) -> str:
    return f"{_BAD}{f' OR {BAD_FIELDS} IS NOT NULL' if source.counts_bad_fields else ''}"


def _expect(table: CellTable, source: Source, kind: str) -> None:
    if table.kind != kind or table.source != source.name:
        raise ValueError(f"{table.name} is a {table.kind} table of {table.source}, not a {kind} table of {source.name}")


def _condition(table: CellTable) -> str:
    return f"{_GOOD} AND ({table.where})" if table.where else _GOOD


def _kind(value: Input) -> str:
    """The type of a value's slot: whole numbers of all sizes share one type."""
    if value.struct:
        return value.struct
    return "BIGINT" if value.type in INTEGRAL else value.type


def _widened(value: Input) -> str:
    widened = value.type in INTEGRAL and value.type != "BIGINT" and not value.struct
    return f"CAST({value.spark} AS BIGINT)" if widened else value.spark


def _aggregated(merge: Merge, slot: str) -> str:
    row = MERGES[merge]
    return row.spark(*([f"{slot}.{name}" for name in row.slot] or [slot]))


def _postgres(kind: str) -> str:
    if kind.startswith("DECIMAL"):
        return kind.replace("DECIMAL", "numeric")
    stored = Type(kind).stored
    assert stored != "jsonb", f"a slot holds a scalar, not {kind}"
    return stored


def _values(table: CellTable, slots: Sequence[str]) -> dict[str, str]:
    """The expressions of a table's keys and partials over a record, by slot."""
    return dict(zip(slots, map(_widened, (*table.key_inputs, *table.partial_inputs)), strict=True))


def _read_back(table: CellTable, slots: Sequence[str]) -> list[str]:
    """The keys and partials of a table in Postgres, read from their slots."""
    columns = (*table.keys, *(partial.column for partial in table.partials))
    cast = {kind: f"::{kind}" for kind in ("smallint", "integer", "jsonb", "bytea")}
    return [
        f"{slot}{cast.get(column.postgres, '')} AS {postgres_name(column.name)}"
        for slot, column in zip(slots, columns, strict=True)
    ]


def _read(columns: Sequence[str], number: int, table: str) -> str:
    return f"(SELECT {', '.join(columns) or '1 AS one'} FROM {table} WHERE v = {number})"


@dataclass(frozen=True)
class _Row:
    """The row of a record for one table: the condition on the record, the table's number, and expressions by slot."""

    condition: str
    number: int
    values: Mapping[str, str]


_Branches = dict[str, list[_Row]]
"""The rows of tables, grouped by the tables' LATERAL VIEWs."""


def _exploded(branches: _Branches, slots: Sequence[tuple[str, str]]) -> str:
    """Spark SQL of a row per record and table, with a NULL `v` if the table does not take the record.

    Every branch of the UNION ALL parses the records. Tables without a LATERAL VIEW take the first row of a change
    event, so that change events are parsed once.
    """
    changes = next((laterals for laterals in branches if laterals.startswith(_CHANGES) and "\n" not in laterals), None)
    if changes is not None and "" in branches:
        first = [replace(row, condition=f"({row.condition}) AND {_NTH} = 0") for row in branches[""]]
        branches = {laterals: table_rows for laterals, table_rows in branches.items() if laterals}
        branches[changes] = [*first, *branches[changes]]
    return "\nUNION ALL\n".join(_unpivoted(laterals, table_rows, slots) for laterals, table_rows in branches.items())


def _unpivoted(laterals: str, table_rows: Sequence[_Row], slots: Sequence[tuple[str, str]]) -> str:
    computed: dict[str, str] = {}

    def column(expression: str) -> str:
        return computed.setdefault(expression, f"e{len(computed)}")

    tuples = []
    for row in table_rows:
        cells = [column(f"CASE WHEN {row.condition} THEN {row.number} END")]
        cells += [column(row.values.get(name, f"CAST(NULL AS {kind})")) for name, kind in slots]
        tuples.append(f"({', '.join(cells)})")
    inner = ",\n".join(f"    {expression} AS {name}" for expression, name in computed.items())
    names = ", ".join(["v", *(name for name, _ in slots)])
    listed = ",\n".join(f"  {cells}" for cells in tuples)
    source = "records" + (f"\n{_indent(laterals)}" if laterals else "")
    return f"""SELECT * FROM (
  SELECT
    kafka_timestamp,
{inner}
  FROM {source}
) UNPIVOT INCLUDE NULLS (({names}) FOR lamina_table IN (
{listed}
))"""


def _fused(
    sql: str,
    in_one_task: str,
    columns: Sequence[Column],
    tables: Sequence[CellTable],
    read_back: Mapping[str, Sequence[str]],
    partition: str = "",
) -> Fused:
    """Assembles the fused statement with its staging table.

    The staging table is named after its columns, so a session creates it once. Each commit empties it. A table per
    micro-batch would leave dead rows in Postgres' own tables.
    """
    types = ", ".join(f"{c.name} {c.postgres}" for c in columns)
    staging = f"staged_{hashlib.sha256(types.encode()).hexdigest()[:16]}"
    staged = f"CREATE TEMPORARY TABLE IF NOT EXISTS {staging} ({types}) ON COMMIT DELETE ROWS"
    read: dict[str, str] = {}
    for number, table in enumerate(tables, 1):
        cells = _read(read_back[table.name], number, staging)
        read[table.name] = f"({table.spread.format(panes=cells)})" if table.spread else cells
    return Fused(sql, in_one_task, staging, staged, read, tuple(columns), partition)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.split("\n"))
