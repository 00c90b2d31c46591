"""A table as the view that it is of its changes: of every key the newest record, where that does not delete it."""

from __future__ import annotations

from view_algebra.compiled import DELETED, changes_of
from view_algebra.language.quoting import spark_name
from view_algebra.written.declarations import SourceDeclaration, ViewDeclaration
from view_algebra.written.dialect import parsed, text_of


def as_view(table: SourceDeclaration) -> ViewDeclaration:
    """The view that a table is.

    Which record is newest, the order of events says: by the time that is declared or, where a record has none, by
    Kafka's timestamp, then by partition and offset.
    """
    columns = [(name, spark_name(name)) for name, _ in table.columns]
    outputs = [text if name in table.unique else f"last_value({text}) AS {text}" for name, text in columns]
    keys = ", ".join(spark_name(name) for name in table.unique)
    records = f"{spark_name(changes_of(table.name))} AS changes"
    select = parsed(f"SELECT {', '.join(outputs)} FROM {records} GROUP BY {keys} HAVING NOT last_value({DELETED})")
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
