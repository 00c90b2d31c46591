"""Writes typed queries over cells and views as Postgres SQL, a clause per line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from view_algebra.engines.postgres.expression_texts import expression
from view_algebra.engines.postgres.value_texts import from_json, hops, length, origin
from view_algebra.engines.postgres.writer import (
    AND,
    CAST,
    Writer,
    constant,
    indented,
    is_column,
    ordering,
)
from view_algebra.language.expressions import (
    VARIABLE,
    AboveCells,
    Aggregate,
    Call,
    Cells,
    Combined,
    Constant,
    Constants,
    Exploded,
    Expr,
    Field,
    Generator,
    Hopped,
    Joined,
    Merged,
    Named,
    Nested,
    Output,
    Query,
    Read,
    Select,
    Sessions,
    Subquery,
    Windowed,
    bare_value,
    conjuncts,
)
from view_algebra.language.quoting import postgres_name
from view_algebra.language.time_windows import BEGINS, BLOCK, HOP, PANE, SESSION_START, by_bounds, hops_of
from view_algebra.language.types import BIGINT, BOOLEAN, COLLATED, DATE, DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMP_NTZ
from view_algebra.language.walks import above_cells, equates, parts, rewrite, rewritten, walk


def postgres(value: Query, tables: Sequence[str]) -> str:
    """A query over these cell tables as Postgres SQL."""
    return query(value, Writer(tables, query, expression))


def query(value: Query, writer: Writer) -> str:
    """A query as Postgres SQL, a clause per line."""
    if isinstance(value, Combined):
        return _combined(value, writer)
    if value.distinct and not {o.expression for o in value.order} <= {o.expression for o in value.outputs}:
        return query(_ordered_around(value), writer)
    from_, value = _from(value, writer)
    writer = replace(writer, grouped=value.group or ())
    lines = ["SELECT DISTINCT" if value.distinct else "SELECT"]
    lines.append(",\n".join(f"  {output(o, writer, number)}" for number, o in enumerate(value.outputs, 1)))
    if from_:
        lines.append(f"FROM {from_}")
    if value.where is not None:
        lines.append(f"WHERE {writer.text(value.where)}")
    if value.group:
        keys = (writer.text(key, CAST if isinstance(key, Constant) else 0) for key in value.group)
        lines.append(f"GROUP BY {', '.join(keys)}")
    if value.having is not None:
        lines.append(f"HAVING {writer.text(value.having)}")
    return "\n".join(lines + _ending(_order_by(value, writer), value.limit, value.offset))


def _from(value: Select, writer: Writer) -> tuple[str, Select]:
    """The relations that a block reads, and the block. Columns of a single relation need no alias in it."""
    relation = value.relation
    if relation is None:
        return "", value
    if isinstance(relation, Cells):
        table = f"cells.{postgres_name(writer.tables[relation.table])}"
        if any(isinstance(part, Subquery) and part.correlated for part in parts(value)):
            table += f" AS {writer.alias(relation.alias)}"
        text = f"(VALUES (1)) AS one (n) LEFT JOIN {table} ON true" if relation.never_empty else table
    else:
        text = _relation(above_cells(relation), writer)
    return text, _bare(value, relation.alias) if isinstance(relation, Named) else value


def _order_by(value: Select, writer: Writer) -> list[str]:
    numbered = [*enumerate(value.outputs, 1)]
    named = {o.expression: _name(o, n) for n, o in reversed(numbered) if not isinstance(o.expression, Constant)}
    shown = {o.name for o in value.outputs}
    # A bare number would be the position of a column.
    order = [key for key in by_bounds(value.order) if not isinstance(bare_value(key.expression), Constant)]
    names = [named[e] if (e := o.expression) in named else _hidden(e, writer, shown) for o in order]
    return [ordering(o, writer, name) for o, name in zip(order, names, strict=True)]


def _ordered_around(value: Select) -> Select:
    """DISTINCT rows ordered by an expression, in a subquery: Postgres orders DISTINCT rows only by their columns."""
    outputs = tuple(Output(o.name or f"column_{n}", o.expression) for n, o in enumerate(value.outputs, 1))
    fields = {o.expression: Field("", (o.name,), o.expression.type) for o in outputs}
    order = tuple(replace(o, expression=rewrite(o.expression, fields.get)) for o in value.order)
    rows = Nested(replace(value, outputs=outputs, order=(), limit=None, offset=None), "rows")
    shown = tuple(Output(o.name, Field("", (o.name,), o.expression.type)) for o in outputs)
    return Select(shown, rows, order=order, limit=value.limit, offset=value.offset, place=value.place)


def _hidden(column: Expr, writer: Writer, shown: set[str]) -> str | None:
    """The text of a column that an output of the same name would hide in ORDER BY, or None for any other column."""
    hides = isinstance(column, Field) and not column.relation and column.path in {(name,) for name in shown}
    return f"coalesce({writer.text(column)})" if hides else None


def _bare(value: Select, alias: str) -> Select:
    """A block over one relation, whose columns need no alias."""

    def strip(part: Expr) -> Expr | None:
        if isinstance(part, Field) and part.relation == alias and not part.outer:
            return replace(part, relation="")
        if isinstance(part, Subquery) and part.correlated:  # inside, the alias marks this block's columns
            return replace(part, operand=None if part.operand is None else rewrite(part.operand, strip))
        return None

    return rewritten(value, strip)


def _ending(keys: list[str], limit: int | None, offset: int | None) -> list[str]:
    lines = []
    if keys:
        lines.append("ORDER BY " + ", ".join(keys))
    if limit is not None:
        lines.append(f"LIMIT {limit}")
    if offset is not None:
        lines.append(f"OFFSET {offset}")
    return lines


def _combined(value: Combined, writer: Writer) -> str:
    if not all(isinstance(o.expression, Field) for o in value.order):  # Postgres orders it only by its columns
        rows = Nested(replace(value, order=(), limit=None, offset=None), "rows")
        outputs = tuple(Output(name, Field("", (name,), kind)) for name, kind in value.columns)
        return query(Select(outputs, rows, order=value.order, limit=value.limit, offset=value.offset), writer)
    sides = []
    for side in (value.left, value.right):
        text = query(side, writer)
        more = side is value.left and isinstance(side, Combined) and side.operator == value.operator == "UNION ALL"
        nested = (isinstance(side, Combined) and not more) or side.order or side.limit is not None
        sides.append(f"(\n{indented(text)}\n)" if nested else text)
    keys = [ordering(o, writer) for o in value.order]
    return "\n".join([sides[0], value.operator, sides[1], *_ending(keys, value.limit, value.offset)])


def output(value: Output, writer: Writer, number: int = 1) -> str:
    """A column of a SELECT with exactly Spark's type. Text compares by its bytes."""
    name, text = _name(value, number), _exactly(value.expression, writer)
    return text if isinstance(value.expression, Field) and text == name else f"{text} AS {name}"


def _name(value: Output, number: int) -> str:
    return postgres_name(value.name or f"column_{number}")


def _exactly(value: Expr, writer: Writer) -> str:
    if is_column(value):
        return writer.text(value)
    if value.type == STRING:
        null = isinstance(value, Constant) and value.value is None
        return f"{writer.text(value, CAST)}{'::text' if null else ''} {COLLATED}"
    return writer.text(value) if _is_exact(value) else f"{writer.text(value, CAST)}::{value.type.postgres}"


def _is_exact(value: Expr) -> bool:
    """True if Postgres' own type of the expression is exactly its type."""
    kind = value.type
    if kind in (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return not isinstance(value, Constant) or value.value is not None
    match value:
        case Constant(suffixed=True) | Call(function="window"):
            return True
        case Aggregate(function="count") | Windowed(function="count"):
            return True
        case Call(function="cast"):
            return not value.implicit and kind.name != "DECIMAL"
        case Call(function="/" | "average") | Aggregate(function="avg"):
            return kind == DOUBLE
        case Call(function="+" | "-" | "*" | "div") | Aggregate(function="sum") | Merged(merge="sum"):
            return kind == BIGINT
        case Windowed():
            return kind == INT and not value.arguments
    return False


def _relation(relation: AboveCells, writer: Writer) -> str:
    match relation:
        case Read():
            name, alias = postgres_name(relation.view), writer.alias(relation.alias)
            return f"analytics.{name}" + ("" if alias == name else f" AS {alias}")
        case Nested():
            lateral = "LATERAL " if relation.lateral else ""
            return f"{lateral}(\n{indented(query(relation.query, writer))}\n) AS {writer.alias(relation.alias)}"
        case Constants():
            rows = ",\n".join(f"    ({', '.join(_exactly(v, writer) for v in row)})" for row in relation.rows)
            names = ", ".join(postgres_name(name) for name, _ in relation.columns)
            return f"(\n  VALUES\n{rows}\n) AS {writer.alias(relation.alias)} ({names})"
        case Joined():
            left, right = (_relation(above_cells(side), writer) for side in (relation.left, relation.right))
            if isinstance(relation.right, (Joined, Exploded)):
                right = f"({right})"
            on = f" ON {_on(relation, writer)}" if relation.condition is not None else ""
            if relation.condition is None and relation.kind != "CROSS":
                on = " ON true"
            kind = "JOIN" if relation.kind == "INNER" else f"{relation.kind} JOIN"
            return f"{left}\n{kind} {right}{on}"
        case Hopped():
            return _hopped(relation, writer)
        case Sessions():
            return _sessions(relation, writer)
        case Exploded():
            below = _relation(above_cells(relation.relation), writer)
            return "\n".join([below, *(_exploded(g, writer) for g in relation.generators)])
        case Cells():  # as a side of a join
            return f"cells.{postgres_name(writer.tables[relation.table])} AS {writer.alias(relation.alias)}"
        case _:
            assert_never(relation)


def _exploded(generator: Generator, writer: Writer) -> str:
    """A row for each element of an array or entry of a map, which are both JSON."""
    if isinstance(generator.argument, Call) and generator.argument.function == "hops":
        ((start, _),) = generator.columns
        series = hops(generator.argument, writer)
        return f"CROSS JOIN {series} AS {writer.alias(generator.alias)} ({postgres_name(start)})"
    is_map, kind = generator.argument.type.name == "MAP", generator.argument.type.element or STRING
    names = [postgres_name(name) for name, _ in generator.columns]
    texts = ["(place - 1)::integer"] * generator.positions + [f"key {COLLATED}"] * is_map
    if generator.fields:
        texts += [from_json(f"value -> {constant(Constant(name, STRING))}", of) for name, of in kind.fields]
    else:
        texts.append(from_json("value", kind))
    columns = ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))
    rows = "jsonb_each" if is_map else "jsonb_array_elements"
    entry = f"{'key, ' * is_map}value, place"
    select = f"SELECT {columns}\nFROM {rows}({writer.text(generator.argument)}) WITH ORDINALITY AS each ({entry})"
    lateral = f"LATERAL (\n{indented(select)}\n) AS {writer.alias(generator.alias)}"
    return f"LEFT JOIN {lateral} ON true" if generator.outer else f"CROSS JOIN {lateral}"


def _hopped(relation: Hopped, writer: Writer) -> str:
    panes, windows = (f"cells.{postgres_name(writer.tables[c.table])}" for c in (relation.panes, relation.windows))
    listed, pane_ = f"{HOP}.{postgres_name(relation.windows.keys[0])}", f"{PANE}.{postgres_name(relation.pane)}"
    window = hops_of(relation.window)
    size = length(window.size)
    start, end = (f"{listed} - {size}", listed) if window.by_end else (listed, f"{listed} + {size}")
    if not relation.words:
        within = f"{pane_} >= {start} AND {pane_} < {end}"
        return f"{windows} AS {HOP}\nJOIN {panes} AS {PANE} ON {within}"
    lengths = f"{size}, {length(window.pane)}, {window.panes}, {origin(window.offset)}"
    blocks = f"spark.blocks({start}, {lengths}) AS {BLOCK}"
    bits = [f"{PANE}.{word} & {BLOCK}.seen_{number:02} <> 0" for number, word in enumerate(relation.words)]
    where = " OR ".join(bits) if len(bits) == 1 else f"({' OR '.join(bits)})"
    return f"{windows} AS {HOP}\nCROSS JOIN {blocks}\nJOIN {panes} AS {PANE} ON {pane_} = {BLOCK}.start AND {where}"


def _sessions(relation: Sessions, writer: Writer) -> str:
    first, last = postgres_name(relation.first), postgres_name(relation.last)
    group = ", ".join(map(postgres_name, relation.within))
    over = f"{f'PARTITION BY {group} ' if group else ''}ORDER BY {first}"
    end = f"max({last}) OVER ({over} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    if relation.gap:
        end += f" + {length(relation.gap)}"
    begun = (
        f"SELECT *, ({first} > {end}) IS NOT FALSE AS {BEGINS}\n"
        f"FROM cells.{postgres_name(writer.tables[relation.panes.table])}"
    )
    starts = f"max({first}) FILTER (WHERE {BEGINS}) OVER ({over})"
    inner = f"SELECT *, {starts} AS {SESSION_START}\nFROM (\n{indented(begun)}\n) AS {PANE}"
    return f"(\n{indented(inner)}\n) AS {PANE}"


def _on(join: Joined, writer: Writer) -> str:
    """The condition of a join.

    Postgres needs an equality for FULL JOIN, and `IS NOT DISTINCT FROM` is not one. Arrays of one element are equal if
    the elements are, even if they are NULL, and their lengths are always equal.
    """
    assert join.condition is not None
    if join.kind != "FULL":
        return writer.text(join.condition)
    sides = [list(_columns(above_cells(side))) for side in (join.left, join.right)]
    aliases = [{column.relation for column in side} for side in sides]
    met = [part for part in conjuncts(join.condition) if equates(part, *aliases) and not _has_lambda(part)]
    others = [part for part in conjuncts(join.condition) if part not in met]
    conditions = [*(_met(part, writer) for part in met), *(writer.text(part, AND) for part in others)]
    if others:
        left, right = (f"cardinality(ARRAY[{writer.text(columns[0])}])" for columns in sides)
        conditions.append(f"{left} = {right}")
    return " AND ".join(conditions)


def _met(part: Expr, writer: Writer) -> str:
    assert isinstance(part, Call)
    left, right = (writer.text(a, CAST) for a in part.arguments)
    kind = part.arguments[0].type.postgres
    return f"ARRAY[{left}::{kind}] = ARRAY[{right}::{kind}]" if part.function == "<=>" else f"{left} = {right}"


def _has_lambda(part: Expr) -> bool:
    """True if a condition has a lambda. An equality with one is written like any other condition."""
    return any(isinstance(inner, Field) and inner.relation == VARIABLE for inner in walk(part))


def _columns(relation: AboveCells) -> Iterator[Field]:
    match relation:
        case Joined():
            for side in (relation.left, relation.right):
                yield from _columns(above_cells(side))
        case Exploded():
            yield from _columns(above_cells(relation.relation))
            for generator in relation.generators:
                yield from (Field(generator.alias, (name,), kind) for name, kind in generator.columns)
        case Nested():
            yield from (Field(relation.alias, (name,), kind) for name, kind in relation.query.columns)
        case Read() | Constants() | Cells():
            yield from (Field(relation.alias, (name,), kind) for name, kind in relation.columns)
        case Hopped() | Sessions():
            return
        case _:
            assert_never(relation)
