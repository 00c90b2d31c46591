"""The sources and views that a declaration names, and declarations under another name."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from view_algebra.compiled import Source, View
from view_algebra.language.quoting import spark_name, spark_path
from view_algebra.refusals import File, Mistake, Wrong, refuse_all, span
from view_algebra.written.dialect import parse, room_for_nesting


def tables_named(select: exp.Expr) -> list[str]:
    """The names in FROM that are not CTEs in reach."""
    return [table.name.lower() for table in select.find_all(exp.Table) if not names_a_cte(table)]


def names_a_cte(table: exp.Table) -> bool:
    """True if the name is a CTE of an enclosing query. A CTE sees the CTEs before it, not itself."""
    node: exp.Expr = table
    while (around := node.parent) is not None:
        with_ = around.args.get("with_") if not isinstance(around, exp.With) else None
        ctes = with_.expressions if with_ is not None and node is not with_ else []
        if isinstance(around, exp.With):
            ctes = around.expressions[: around.expressions.index(node)]
        if any(cte.alias.lower() == table.name.lower() for cte in ctes):
            return True
        node = around
    return False


def names_in(declared: Source | View) -> frozenset[str]:
    """The sources and views that a declaration names, also views whose records are read in place of their rows.

    >>> from view_algebra import compile_catalog
    >>> from view_algebra.passes import EXAMPLE
    >>> names_in(compile_catalog({"c.sql": EXAMPLE}).views["top"])
    frozenset({'clicks'})
    """
    return _names_in(declared.sql) - {declared.name}


@lru_cache(maxsize=1024)
def _names_in(sql: str) -> frozenset[str]:
    return frozenset(tables_named(_statement(sql)))


def _statement(sql: str) -> exp.Expr:
    """The syntax of one declaration. Raises Refused if this version of Lamina cannot read it."""
    file = File("", sql)
    try:
        with room_for_nesting():
            [statement] = parse(file)
    except Wrong as wrong:
        raise refuse_all([Mistake(file, wrong.span, "", wrong.reason, wrong.way_out)]) from wrong
    return statement.tree


def under_another_name(sql: str, name: str) -> str:
    """The declaration of a view under another name.

    >>> under_another_name("CREATE VIEW v (a) AS SELECT view.a FROM view", "select")
    'CREATE VIEW `select` (a) AS SELECT view.a FROM view'
    """
    target = next(_statement(sql).find_all(exp.Table)).this
    place = span(target)
    assert place is not None, "the parser keeps the place of a name"
    return f"{sql[: place.start]}{(spark_path if target.quoted else spark_name)(name)}{sql[place.end :]}"
