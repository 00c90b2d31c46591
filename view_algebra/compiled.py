"""The compiler's result: frozen values that hold SQL texts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from view_algebra.record_columns import BAD_FIELDS, DELETED, MOVED_FROM

Merge = Literal[
    "sum", "min", "max", "bit_and", "bit_or", "bit_xor", "first", "last", "mean", "comoment", "third", "fourth", "keep"
]
"""The merge of two partials of one group.

`first` and `last` need an order. `mean` and `comoment` (the sum of products of deviations from two means) need a count
and means, which are partials too. `third` and `fourth` (sums of powers of deviations) also need the lower powers.
`keep` is for rows, which never meet an equal key."""


ON_BAD_FIELD = "on_bad_field"
"""The property of a source that decides whether its records have the column BAD_FIELDS."""

ASK_AGAIN = "ask_again"
"""The option of a source whose number is raised to make a schema registry's earlier answers invalid."""

ONLY = "only_one"
"""The unique column of a table without keys, for the one cell of an aggregate without GROUP BY."""

SHORTENED = "… sha256 "
"""The separator between the first part of a text too long for an index and its digest."""

JSON_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options for times in nested values in Spark's to_json(), which drops microseconds by default."""


DEBEZIUM = ("debezium-json", "debezium-avro")
"""The formats of change events."""

KeyFormat = Literal["json", "string", "short", "int", "long", "float", "double", "avro", "protobuf", "none"]
"""The format of Kafka's key of a table's record."""


@dataclass(frozen=True)
class Column:
    """A column with its type in both engines, such as `DECIMAL(12,2)` and `numeric(12,2)`."""

    name: str
    spark: str
    postgres: str
    comment: str | None = None


@dataclass(frozen=True)
class Input:
    """A Spark SQL expression over a record, and the Spark type of its value.

    struct: the type of `spark`'s value if a partial of `type` combines several: a value `v` and its order `o`, or `x`
        and `y`. A record that does not count has NULL
    """

    spark: str
    type: str
    struct: str = ""


@dataclass(frozen=True)
class Partial:
    """A mergeable part of an aggregate: one column of a table of cells.

    noise: Postgres expression over a cell: the magnitude of the numbers whose rounding error this partial may consist
        of, or empty if the partial has that magnitude itself
    """

    column: Column
    merge: Merge
    noise: str = ""


@dataclass(frozen=True)
class Source:
    """A declared source.

    unique: a table's PRIMARY KEY, or a stream's UNIQUE columns
    properties: TBLPROPERTIES, the OPTIONS of its format, and `start`
    parse: Spark SQL that reads the view `raw_records` and gives good and bad records. Both layers read through this
        text. `raw_records` has the columns of Spark's Kafka source (topic, partition, offset, timestamp, key, value,
        headers) and `log_time`. The result has `kafka_partition`, `kafka_offset`, `kafka_timestamp`, `kafka_key`,
        `kafka_headers`, `kafka_value`, `kafka_error` (NULL, or why the record belongs in quarantine),
        `kafka_bad_fields` if bad fields are NULL (which fields, and why), a table's `kafka_log_time` and `changing`,
        and then the declared columns
    format: the format of the records' values
    key_format: the format of Kafka's keys
    ids: Spark SQL of the ids of `records` for a stream with UNIQUE, otherwise empty
    counted: Spark SQL of the records of `good_records` that count for a stream with UNIQUE (`records/duplicates.py`),
        otherwise empty
    changing: a table's columns that `parse` reads next to the declared ones
    moved_from: the type of the column by which an older Lamina kept `changing`
    """

    name: str
    kind: Literal["stream", "table"]
    topic: str
    columns: tuple[Column, ...]
    event_time: str | None
    unique: tuple[str, ...]
    comment: str | None
    properties: Mapping[str, str]
    sql: str
    parse: str
    format: str = "json"
    key_format: KeyFormat = "none"
    ids: str = ""
    counted: str = ""
    changing: tuple[Column, ...] = ()
    moved_from: str = ""

    @property
    def read(self) -> tuple[Column, ...]:
        """The columns that `parse` gives after Kafka's."""
        bad = (Column(BAD_FIELDS, "STRING", "text"),) if self.counts_bad_fields else ()
        if self.kind != "table":
            return (*bad, *self.columns)
        if self.changing:
            return (*bad, *self.changing, *self.columns)
        moved = (Column(MOVED_FROM, self.moved_from, "jsonb"),) if self.moved_from else ()
        return (*bad, Column(DELETED, "BOOLEAN", "boolean"), *moved, *self.columns)

    def field(self, column: str) -> str:
        """The JSON field that a column is read from."""
        return self.properties.get(_FIELD_PREFIX + column, column)

    @property
    def has_changes(self) -> bool:
        """True if its records are change events of Debezium."""
        return self.format in DEBEZIUM

    @property
    def start(self) -> str:
        """The start in the topic, from OPTIONS. See `language/starts.py`."""
        return self.properties.get("start", "earliest")

    @property
    def counts_bad_fields(self) -> bool:
        """True if a record with an unreadable field counts, with NULL for the field."""
        return self.properties.get(ON_BAD_FIELD) == "null"

    def reads_as(self, other: Source) -> bool:
        """True if both sources read the same records, accept the same ones, and tell their events apart alike."""
        mine, others = ((source.topic, source.parse, source.counted, source.ids) for source in (self, other))
        return mine == others

    @property
    def records(self) -> str:
        """The name of its records in SELECTs that `check` runs, in which a table's name means its rows."""
        return changes_name(self.name) if self.kind == "table" else self.name


_FIELD_PREFIX = "field."


def renamed_fields(properties: Mapping[str, str]) -> dict[str, str]:
    """The JSON fields of the columns with another name than their field.

    >>> renamed_fields({"field.deleted": "_deleted", "event_time": "at"})
    {'deleted': '_deleted'}
    """
    return {key.removeprefix(_FIELD_PREFIX): name for key, name in properties.items() if key.startswith(_FIELD_PREFIX)}


def changes_name(table: str) -> str:
    """The internal name of a table's changes, which no author can use.

    >>> changes_name("users")
    'changes of users'
    """
    return f"{_CHANGES}{table}"


def source_name(records: str) -> str:
    """The source behind the name of its records.

    >>> source_name("changes of users"), source_name("clicks")
    ('users', 'clicks')
    """
    return records.removeprefix(_CHANGES)


_CHANGES = "changes of "


@dataclass(frozen=True)
class Cost:
    """The number of cells that a group of a view takes in a table, and that a read combines.

    sub_keys: the keys next to the group's. A group has a cell per combination of their values
    at_most: the upper bound of that number, if there is one (for an estimate or a BOOLEAN)
    panes: the number of panes in a window of the view
    """

    sub_keys: tuple[str, ...] = ()
    at_most: int | None = None
    panes: int = 1


PLAIN = Cost()
"""A cell per group."""


@dataclass(frozen=True)
class CellTable:
    """One table of cells of one view version, fed by one stream.

    name: the table in schema `cells`, with the version in it, such as `search_ctr_9f3a1c02`
    partial: Spark SQL over the view `<source>` (good records only). Its columns are the keys, then the partials
    cells: Postgres DDL of one table of cells, with the placeholder `{table}`. Columns: `touched integer` (the view's
        newest generation when realtime last merged into the cell), the keys, the partials. Unique on the keys, NULLS
        NOT DISTINCT
    merge: Postgres upsert of the cells read from `{cells}` (a table or a parenthesised SELECT of keys and partials, no
        two rows with equal keys) into `{into}`. `{generation}` is the new value of `touched`. If the view retains,
        groups before the time `{since}` are dropped
    where: the condition on a record, for `fuse`, or empty for none
    key_inputs: per key, the expression over a record, for `fuse`
    partial_inputs: per partial, the expression over a record, for `fuse`. A count adds up 1 and 0
    generators: LATERAL VIEW clauses of `partial`, which turn a record into several rows, or none
    spread: Postgres SELECT of the window keys behind the pane keys in `{panes}`, or empty if cells have the keys of
        records
    retained: the column compared with `{since}`, or empty if all cells stay
    longer: microseconds for which cells are kept beyond `{since}`
    cost: the cells that a group takes in it
    """

    name: str
    source: str
    kind: Literal["aggregate", "row"]
    keys: tuple[Column, ...]
    partials: tuple[Partial, ...]
    partial: str
    cells: str
    merge: str
    where: str
    key_inputs: tuple[Input, ...]
    partial_inputs: tuple[Input, ...]
    generators: str = ""
    spread: str = ""
    retained: str = ""
    longer: int = 0
    cost: Cost = PLAIN


@dataclass(frozen=True)
class Lineage:
    """The origin of a column.

    column: its name
    columns: the columns that it is computed from, as `source.column`
    aggregates: the aggregates on the way, in the author's syntax
    """

    column: str
    columns: tuple[str, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """A condition that a view's rows meet before readers see them.

    counts: the unit of a row of `failing`: a row of the view, a key of it, or the view as a whole
    blocks: true if a failing generation is kept from readers, otherwise the failure is only reported
    failing: Postgres SELECT of the failures. It reads the views to be checked as `analytics.<view>`, and the views that
        readers see now as `published.<view>`
    reads: names of the views that it reads as `analytics.<view>`
    """

    name: str
    sql: str
    counts: Literal["row", "key", "whole"]
    blocks: bool
    failing: str
    reads: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """A declared view, compiled.

    spelled: the author's SELECT as Spark runs it, with every choice spelled out that Spark leaves open, such as the
        order by which a value is the last
    rounded: true if it computes deviations, such as `stddev`. If they are 0, both engines may leave some rounding
        error
    lineage: the origin of each column
    version: fingerprint of the `partial`, `cells` and `merge` texts, or empty for a derived view, which has no cells
    final: Postgres `SELECT` that is the body of the analyst's view. It reads its tables of cells as `cells.<name>` and
        other views as `analytics.<view>`
    reads: names of the views it reads
    sources: names of the sources it reads, through other views too
    retained: the column with the time of a group if old groups are dropped, else empty
    checks: the checks of its rows, which are not part of its version
    indexes: by table of cells, the text after USING in CREATE INDEX. They are not part of its version either
    unique: the column sets that are provably unique (NULL equals NULL). A view of one row has the empty set
    never_null: the columns that are provably never NULL
    additive: the counts and sums over records, if no record is in two rows, so that rows may be added up

    The last three may be incomplete, and are empty in views that an older Lamina deployed.
    """

    name: str
    kind: Literal["aggregate", "row", "derived"]
    columns: tuple[Column, ...]
    comment: str | None
    properties: Mapping[str, str]
    sql: str
    select: str
    spelled: str
    rounded: bool
    lineage: tuple[Lineage, ...]
    version: str
    cell_tables: tuple[CellTable, ...]
    final: str
    reads: tuple[str, ...]
    sources: tuple[str, ...]
    retained: str = ""
    checks: tuple[Check, ...] = ()
    indexes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unique: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    never_null: tuple[str, ...] = field(default=(), compare=False)
    additive: tuple[str, ...] = field(default=(), compare=False)

    @property
    def fed_by(self) -> set[str]:
        """The queries that feed its cells."""
        return {table.source for table in self.cell_tables}


@dataclass(frozen=True)
class Catalog:
    """All declarations, compiled. Each of the `views` comes after the views that it reads."""

    sources: Mapping[str, Source]
    views: Mapping[str, View]


@dataclass(frozen=True)
class Fused:
    """The rows of a micro-batch for several tables of cells: computed by one Spark SQL statement, staged by one COPY.

    sql: Spark SQL over the view `records` (the output of `Source.parse`, bad records included). It gives the columns of
        `staged`, then `newest`, a Kafka timestamp. Bad records among `records` add a row whose first column is 0:
        `quarantined()` gives them. If `partition` is not empty, there is such a row per Kafka partition
    in_one_task: the same for a few records in one partition, for which Spark needs no shuffle
    table: the name of the temporary table
    staged: Postgres DDL of the temporary table for the rows of `sql` (every column in COPY's text form). It has no
        effect if the session has the table, which is named after its columns and emptied by every commit
    read: per table of cells, by name, the parenthesised Postgres SELECT that reads its keys and partials back from
        `staged`: the `{cells}` of its `merge`
    columns: the columns of `staged`, in order
    partition: the column with the partition's number in such a row, whose `p0` counts its bad records
    """

    sql: str
    in_one_task: str
    table: str
    staged: str
    read: Mapping[str, str]
    columns: tuple[Column, ...]
    partition: str = ""


def stem(view: str) -> str:
    """The prefix of the names of a view's tables: the view's name, shortened to fit Postgres' limit of 63 bytes.

    >>> stem("revenue"), stem("revenue_of_each_customer_by_country_and_month")
    ('revenue', 'revenue_of_each_customer_by_fe211e6e')
    """
    digest = hashlib.sha256(view.encode()).hexdigest()[:8]
    return view if len(view) <= LONGEST_STEM else f"{view[: LONGEST_STEM - len(digest) - 1]}_{digest}"


LONGEST_STEM = 36
"""Bytes of a stem, which a version and the numbers of a table, a generation and a micro-batch follow."""
