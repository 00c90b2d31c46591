"""What the compiler hands the layers: frozen values that hold SQL texts. Nothing else crosses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Merge = Literal[
    "sum", "min", "max", "bit_and", "bit_or", "bit_xor", "first", "last", "mean", "comoment", "third", "fourth", "keep"
]
"""How two partials of one group become one: `first` and `last` go by an order, `mean` and `comoment` (the sum of
products of deviations from two means) by a count and means, which are kept beside them, `third` and `fourth` (sums of
powers of deviations) by lower ones, too; `keep` is for rows, which never meet an equal key."""


DELETED = "kafka_deleted"
"""The column of a table's records, beside those that are declared: does it take its key's row away?"""

MOVED_FROM = "kafka_moved_from"
"""The column of the records of a table of change events: the key that an update took the row away from, or NULL."""

ROWS_OF_CHANGE = f"posexplode(CASE WHEN {MOVED_FROM} IS NULL THEN array(false) ELSE array(false, true) END)"
"""The rows that a change event changes: its own, and the one of the key that it took the row away from."""

NULLED = "counted, with NULL for a field: "
"""How the reason begins if the record counts without the fields that cannot be read."""

LOG_TIME = "kafka_log_time"
"""The column of a table's records that leads their order in the log: the greatest Kafka timestamp of the partition at
or below the record's offset. It never falls within a partition, so there the order is that of offsets."""

SOURCE_TIME = "kafka_source_time"
"""The column of a change event's commit time in its source; NULL if it names none."""

TOMBSTONE, TRUNCATES, SNAPSHOT = "kafka_tombstone", "kafka_truncates", "kafka_snapshot"
"""The columns of a change event: does the record have no value? Does it remove all rows before it? Is it a row that a
snapshot read, and no change?"""

LEFT_OUT = ""
"""The error of a record that is neither good nor bad: in a stream of changes, what Debezium sends behind a deletion."""

BAD_FIELDS = "kafka_bad_fields"
"""The column of records that count though a field cannot be read: which fields are NULL for it, and why; or NULL."""

ON_BAD_FIELD = "on_bad_field"
"""The property of a source that decides whether its records have the column BAD_FIELDS."""

ASK_AGAIN = "ask_again"
"""The option of a source whose number decides which answers of a schema registry count."""

ONLY = "only_one"
"""The column that is unique where there is no key: the cell of an aggregate without GROUP BY."""

SHORTENED = "… sha256 "
"""Between the beginning of a text and its digest, where the text itself is too long for an index."""

LONGEST_STEM = 36
"""Bytes; after them come a version, and the numbers of a table, a generation and a micro-batch."""

JSON_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""How times inside nested values are written, for Spark's to_json(): by default it drops microseconds."""


DEBEZIUM = ("debezium-json", "debezium-avro")
"""The formats of change events."""

KeyFormat = Literal["json", "string", "short", "int", "long", "float", "double", "avro", "protobuf", "none"]
"""What Kafka's key of a table's record is read as."""


@dataclass(frozen=True)
class Column:
    """A column with its type in both engines, as `DECIMAL(12,2)` and `numeric(12,2)`."""

    name: str
    spark: str
    postgres: str
    comment: str | None = None


@dataclass(frozen=True)
class Input:
    """A Spark SQL expression over a record, and the Spark type of its value.

    struct: the type of `spark`'s value where a partial of `type` is made of several: of a value `v` and its order
        `o`, or of `x` and `y`. It is NULL for a record that does not count.
    """

    spark: str
    type: str
    struct: str = ""


@dataclass(frozen=True)
class Partial:
    """A mergeable part of an aggregate: one column of a table of cells.

    noise: Postgres expression over a cell: of what size the numbers were whose rounding this one may consist of; empty
        where it is itself of that size.
    """

    column: Column
    merge: Merge
    noise: str = ""


@dataclass(frozen=True)
class Source:
    """A declared source.

    unique: of a table the columns of its PRIMARY KEY, of a stream those of UNIQUE. properties: what TBLPROPERTIES say,
    OPTIONS of its format, and `start`. format, key_format: what the value of its records, and Kafka's key of them, are
    read as.
    changing: of a table, the columns of its records that `parse` reads beside those that are declared (an older Lamina
    kept them as `moved_from`).
    `parse` is Spark SQL that reads the view `raw_records` (topic, partition, offset, timestamp, key, value,
    headers: the columns of Spark's Kafka source, and `log_time`) and gives `kafka_partition`, `kafka_offset`,
    `kafka_timestamp`, `kafka_key`, `kafka_headers`, `kafka_value`, `kafka_error` (NULL, or why the record belongs in
    quarantine), if bad fields are NULL `kafka_bad_fields` (which fields, and why), of a table `kafka_log_time` and
    `changing`, and then the declared columns. Both layers read records through this one text.
    ids, counted: of a stream with UNIQUE (else empty), Spark SQL that gives the ids of `records`, and the records that
    count of `good_records` (`texts/duplicates.py`).
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
        """The columns that `parse` gives beside those of Kafka."""
        bad = (Column(BAD_FIELDS, "STRING", "text"),) if self.counts_bad_fields else ()
        if self.kind != "table":
            return (*bad, *self.columns)
        if self.changing:
            return (*bad, *self.changing, *self.columns)
        moved = (Column(MOVED_FROM, self.moved_from, "jsonb"),) if self.moved_from else ()
        return (*bad, Column(DELETED, "BOOLEAN", "boolean"), *moved, *self.columns)

    def field(self, column: str) -> str:
        """The field in JSON that a column comes from."""
        return self.properties.get(_OF_FIELD + column, column)

    @property
    def has_changes(self) -> bool:
        """True if its records are change events of Debezium."""
        return self.format in DEBEZIUM

    @property
    def start(self) -> str:
        """Where it begins in its topic, as OPTIONS say it: see `language/starts.py`."""
        return self.properties.get("start", "earliest")

    @property
    def counts_bad_fields(self) -> bool:
        """True if a record counts whose field cannot be read, with NULL for the field."""
        return self.properties.get(ON_BAD_FIELD) == "null"

    def reads_as(self, other: Source) -> bool:
        """Do both read the same records, find the same ones good, and tell their events apart alike?"""
        mine, others = ((each.topic, each.parse, each.counted, each.ids) for each in (self, other))
        return mine == others

    @property
    def records(self) -> str:
        """What its records are called in the SELECTs that `check` runs, where a table's name means its rows."""
        return changes_of(self.name) if self.kind == "table" else self.name


_OF_FIELD = "field."


def fields_of(properties: Mapping[str, str]) -> dict[str, str]:
    """The fields in JSON of the columns that are called otherwise.

    >>> fields_of({"field.deleted": "_deleted", "event_time": "at"})
    {'deleted': '_deleted'}
    """
    return {key.removeprefix(_OF_FIELD): name for key, name in properties.items() if key.startswith(_OF_FIELD)}


def changes_of(table: str) -> str:
    """What the records of a table are called beside its rows; no author can give this name.

    >>> changes_of("users")
    'changes of users'
    """
    return f"{_CHANGES}{table}"


def source_of(records: str) -> str:
    """The source of records by what they are called.

    >>> source_of("changes of users"), source_of("clicks")
    ('users', 'clicks')
    """
    return records.removeprefix(_CHANGES)


_CHANGES = "changes of "


@dataclass(frozen=True)
class Cost:
    """What a group of a view takes in a table of cells, and what reading it takes.

    sub_keys: the keys beside the group's: a group has a cell for each of their values that came.
    at_most: of how many values, each, where that is known: of an estimate, of a BOOLEAN.
    panes: how many panes a window of the view is put together of.
    """

    sub_keys: tuple[str, ...] = ()
    at_most: int | None = None
    panes: int = 1


PLAIN = Cost()
"""A cell per group."""


@dataclass(frozen=True)
class CellTable:
    """One table of cells of one view version, fed by one stream.

    name: the table in schema `cells`, with the version in it, as `search_ctr_9f3a1c02`.
    partial: Spark SQL over the view `<source>` (good records only); its columns are the keys, then the partials.
    cells: Postgres DDL of one table of cells, with the placeholder `{table}`. Columns: `touched integer` (the newest
        generation there was when realtime last merged into it), the keys, the partials; unique on the keys, NULLS NOT
        DISTINCT.
    merge: Postgres upsert of the cells read from `{cells}` (a table or a parenthesised SELECT of keys and
        partials, no two rows with equal keys) into `{into}`; `{generation}` is what `touched` becomes; `{since}`, where
        the view retains, is the time before which no group is kept.
    retained: the column that this time is about, and for how many microseconds `longer` its cells are kept; empty, and
        0, where all are.
    cost: what a group takes in it.
    generators: LATERAL VIEW clauses of `partial`, which give a record several rows, or none.
    spread: Postgres SELECT of the keys that the keys of `{panes}` stand for, for a table of the windows that hop over
        panes; empty where a record's keys are a cell's.
    where, key_inputs, partial_inputs: what `partial` is made of, for `fuse`: the condition on a record (empty for
        none), and per key and per partial the expression over a record; a count adds up 1 and 0.
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
    """What a column is made of: `columns` as `source.column`, `aggregates` as an author writes them."""

    column: str
    columns: tuple[str, ...]
    aggregates: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """A condition that a view's rows meet before readers see them.

    counts: what `failing` has a row for: a row of the view, a key of it, or the view as a whole.
    blocks: is a generation that fails it kept from readers? If not, they are only told.
    failing: Postgres SELECT of what fails it. It reads the views to be checked as `analytics.<view>`, and those that
        are read now as `published.<view>`.
    reads: names of the views that it reads as `analytics.<view>`.
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

    version: fingerprint of the `partial`, `cells` and `merge` texts; empty for a derived view, which has no cells.
    spelled: the author's SELECT as Spark runs it: what Spark itself leaves open is spelled out in it, as by which
        order a value is the last.
    rounded: does it compute with deviations, as `stddev`? Where they are 0 both engines may leave some rounding.
    lineage: what each column is made of.
    retained: the column that says when a group was, where those of long ago are not kept; empty elsewhere.
    final: Postgres `SELECT` that is the body of the analyst's view; it reads its tables of cells as `cells.<name>`
        and other views as `analytics.<view>`.
    reads: names of the views it reads. sources: names of the sources it reads, through other views too.
    checks: what its rows are checked for; they have no part in its version. indexes: by table of cells, what follows
        USING in CREATE INDEX; neither have they.
    unique: the sets of columns by which the compiler proves that no two rows are equal (two NULLs are); of a view of
        one row, the empty set. never_null: the columns that it proves never to be NULL. additive: the columns that are
        counts or sums of records of which none is in two rows, so that rows may be added up. Each may lack
        some, and all of them in what an older Lamina deployed.
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
    """All declarations, compiled; `views` in an order in which each comes after the views it reads."""

    sources: Mapping[str, Source]
    views: Mapping[str, View]


@dataclass(frozen=True)
class Fused:
    """What several tables of cells take from a micro-batch, computed by one Spark SQL statement, staged by one COPY.

    sql: Spark SQL over the view `records` (the output of `Source.parse`, bad records included);
        gives the columns of `staged`, then `newest`, a Kafka timestamp. A row whose first column is 0 is there when
        there are bad records among `records`: `quarantined()` gives them. If `partition` names a column, there is such
        a row for each Kafka partition: `partition` is its number, `p0` how many of its records are bad.
    in_one_task: the same for records that are few and in one partition: Spark needs no shuffle for it.
    table: the name of the temporary table.
    staged: Postgres DDL of the temporary table that takes the rows of `sql` (every column in COPY's text form). It does
        nothing where the session has the table, which is named after its columns and which every commit empties.
    read: for each table of cells, by name, the parenthesised Postgres SELECT that reads its keys and partials
        back from `staged`: what its `merge` takes as `{cells}`.
    columns: the columns of `staged`, in order.
    """

    sql: str
    in_one_task: str
    table: str
    staged: str
    read: Mapping[str, str]
    columns: tuple[Column, ...]
    partition: str = ""


def stem(view: str) -> str:
    """What the names of a view's tables begin with, so that they fit Postgres' 63 bytes: its own, shortened if need be.

    >>> stem("revenue"), stem("revenue_of_each_customer_by_country_and_month")
    ('revenue', 'revenue_of_each_customer_by_fe211e6e')
    """
    digest = hashlib.sha256(view.encode()).hexdigest()[:8]
    return view if len(view) <= LONGEST_STEM else f"{view[: LONGEST_STEM - len(digest) - 1]}_{digest}"
