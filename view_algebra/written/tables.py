"""A table as the view that it is of its changes: of every key the newest record, where that does not delete it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from view_algebra.compiled import DELETED, MOVED_FROM, changes_of
from view_algebra.language.quoting import spark_name
from view_algebra.language.types import BOOLEAN, Type
from view_algebra.written.declarations import SourceDeclaration, ViewDeclaration
from view_algebra.written.dialect import parsed, text_of

_NTH, _LEFT = "kafka_nth", "kafka_left"
"""Of the changes that a record tells: which it is, and is it about the key that the row left? No declared names."""


@dataclass(frozen=True)
class Changes:
    """The changes of a table, as SQL says them: what they are selected from, and whether one takes its row away.

    An update that moves a row to another key is two changes of one time: the row of the old key goes, that of the new
    one comes. place: what puts changes of one time in order.
    """

    from_: str
    deleted: str
    place: str
    moved: frozenset[str]

    def column(self, name: str) -> str:
        """A column of the row, or of the one that goes."""
        own = spark_name(name)
        return f"CASE WHEN {_LEFT} THEN {MOVED_FROM}.{own} ELSE {own} END" if name in self.moved else own


def changes(table: str, keys: Sequence[str], *, moves: bool) -> Changes:
    """The changes of a table; `moves`: may a record tell that a row has another key than before?"""
    records, place = spark_name(changes_of(table)), "kafka_partition, kafka_offset"
    if not moves:
        return Changes(f"{records} AS changes", DELETED, place, frozenset())
    each = f"posexplode(CASE WHEN {MOVED_FROM} IS NULL THEN array(false) ELSE array(false, true) END)"
    view = f"{records} AS changes LATERAL VIEW {each} moved AS {_NTH}, {_LEFT}"
    return Changes(view, f"({DELETED} OR {_LEFT})", f"{place}, {_NTH}", frozenset(keys))


def changing(table: SourceDeclaration) -> list[tuple[str, Type]]:
    """The columns of a table's records, beside those that are declared, and their types."""
    keys = tuple(each for each in table.columns if each[0] in table.unique)
    return [(DELETED, BOOLEAN), *([(MOVED_FROM, Type("STRUCT", fields=keys))] if table.moves else [])]


def as_view(table: SourceDeclaration, passing: Mapping[str, str] = MappingProxyType({})) -> ViewDeclaration:
    """The view that a table is; `passing`: what its rows pass on of the records that they are, by name.

    Which record is newest, the order of events says: by the time that is declared or, where a record has none, by
    Kafka's timestamp, then by partition and offset.
    """
    of = changes(table.name, table.unique, moves=table.moves)
    columns = [(name, of.column(name), spark_name(name)) for name, _ in table.columns]
    outputs = [f"{text if name in table.unique else f'last_value({text})'} AS {own}" for name, text, own in columns]
    outputs += [f"last_value({text}) AS {name}" for name, text in passing.items()]
    keys = ", ".join(of.column(name) for name in table.unique)
    select = parsed(f"SELECT {', '.join(outputs)} FROM {of.from_} GROUP BY {keys} HAVING NOT last_value({of.deleted})")
    return ViewDeclaration(
        name=table.name,
        file=table.file,
        place=table.place,
        columns=(),
        comments=table.comments,
        comment=table.comment,
        properties={},
        select=select,
        select_text=text_of(select),
        sql=table.sql,
    )
