"""The placement of every view of the corpus is the one that trial and error would choose.

A trial takes the SELECT of a candidate through typing, the split and the writers, and asks the placement nothing. The
first candidate reads the rows of the views in FROM. In the others, these views are written out in the author's syntax,
down to the records. The compiled view must have the texts of the first candidate that Postgres' writer accepts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from sqlglot import exp

from tests.acceptance.cases import DATA, case_of, read_cases, read_selects, source_names, view
from tests.fuzz.fuzzing import Fuzzing
from tests.fuzz.rounds import catalog_text
from tests.laws.views import SOURCE, VIEWS
from view_algebra import Refused, compile_catalog
from view_algebra.compile import _compiled, stages
from view_algebra.compiled import View
from view_algebra.passes import Placed, Symbols, Written, _cell_tables, as_texts, into_blocks, with_meaning
from view_algebra.refusals import File, Wrong, span
from view_algebra.typed.order.events import order_columns_of_table
from view_algebra.typed.order.keys import incomplete_orders
from view_algebra.written.declarations.sources_and_views import ViewDeclaration
from view_algebra.written.dialect import parse, room_for_nesting
from view_algebra.written.tables import as_view

ALGEBRA = Path(__file__).parent
EXAMPLES = ALGEBRA.parents[1] / "examples"

Files = Mapping[str, str]

AT_RANDOM, JOINED = 40, 6
"""Numbers of the fuzzer's views, without and with joins. A joined view takes a third of a second to find."""

EVERY = 12
"""One of this many views of the laws is also placed over a view of its records, which compiles it four times."""

OVER_RECORDS = 5
"""The least number of these views that read records. With fewer, the comparison would say little."""

WRITTEN_OTHERWISE = re.compile(r".* compute ([-+*/%] of FLOAT|collect_set\(\) of structs|\w+\(DISTINCT …\))")
"""Obstacles that Postgres' writer does not see: it writes a text, which has other digits or another order."""


def _of_file(path: Path) -> Callable[[], list[Files]]:
    return lambda: [{path.name: path.read_text(encoding="utf-8")}]


def _of_example(folder: Path) -> Callable[[], list[Files]]:
    files = [path for room in ("sources", "views") for path in sorted((folder / room).glob("*.sql"))]
    return lambda: [{path.name: path.read_text(encoding="utf-8") for path in files}]


def _of_laws() -> list[Files]:
    return [{"views.sql": SOURCE + VIEWS}]


def _of_cases(kind: str, file: str) -> Callable[[], list[Files]]:
    def catalogs() -> list[Files]:
        if not DATA.exists():
            pytest.skip("the cases lie next to the repository")
        cases = read_cases(kind)
        texts = list[Files]()
        for name, select in read_selects(file).items():
            case = case_of(name, cases)
            names = source_names([case])
            declared = "\n".join(source.declaration(of).replace("{topics}", "t") for source, of in names.items())
            texts.append({"case.sql": f"{declared}\n{view(name, select, case, names)}"})
        return texts

    return catalogs


def _of_fuzzer(views: int, *, joined: bool) -> Callable[[], list[Files]]:
    def catalogs() -> list[Files]:
        chosen, _ = Fuzzing(seed=1).compiling_views(random.Random(1), views, joined=joined)
        return [{"fuzz.sql": catalog_text(chosen, joined=joined)}]

    return catalogs


CORPUS: Mapping[str, Callable[[], list[Files]]] = {
    **{path.stem: _of_file(path) for path in sorted((ALGEBRA / "cases").glob("*.sql"))},
    "passes": _of_file(ALGEBRA / "passes" / "cases.sql"),
    "placement": _of_file(ALGEBRA / "placement.sql"),
    **{folder.name: _of_example(folder) for folder in sorted(EXAMPLES.iterdir()) if folder.is_dir()},
    "laws": _of_laws,
    "cases": _of_cases("B", "cases.sql"),
    "join cases": _of_cases("C", "joins.sql"),
    "fuzzer": cache(_of_fuzzer(AT_RANDOM, joined=False)),
    "joins of the fuzzer": cache(_of_fuzzer(JOINED, joined=True)),
}


@pytest.mark.parametrize("name", CORPUS)
def test_each_view_is_placed_where_trial_and_error_places_it(name: str) -> None:
    for files in CORPUS[name]():
        assert misplaced(files) == {}


@pytest.mark.parametrize("name", [name for name in CORPUS if name not in ("laws", "cases", "join cases", "fuzzer")])
def test_each_view_over_a_view_of_its_records_is_placed_where_trial_and_error_places_it(name: str) -> None:
    for files in CORPUS[name]():
        assert misplaced(over_views_of_records(files)) == {}


def test_views_of_the_laws_over_views_of_records_are_placed_where_trial_and_error_places_them() -> None:
    files = over_views_of_records(_of_laws()[0], EVERY)
    assert misplaced(files) == {}
    assert sum(placed.avoided is not None for placed in stages(files).values()) >= OVER_RECORDS


OTHERWISE = (
    "SELECT user_id, sum(price * price) AS p FROM chosen GROUP BY user_id",
    "SELECT kind, sort_array(collect_set(struct(amount, user_id))) AS s FROM chosen GROUP BY kind",
    "SELECT user_id, var_pop(DISTINCT amount) AS v FROM chosen GROUP BY user_id",
)
"""SELECTs over rows that Postgres' writer accepts, but that Postgres computes differently from Spark."""


@pytest.mark.parametrize("select", OTHERWISE)
def test_a_select_that_postgres_computes_differently_is_placed_over_records(select: str) -> None:
    [declared] = _of_file(ALGEBRA / "placement.sql")()
    with room_for_nesting():
        catalog = _compiled({**declared, "v.sql": f"CREATE VIEW v AS {select};"})
    placed = catalog.placed["v"]
    assert placed.avoided is not None
    assert WRITTEN_OTHERWISE.search(placed.avoided.reason)
    assert _written(placed.split.typed.declaration, catalog) is not None


def misplaced(files: Files) -> dict[str, str]:
    """The views whose placement differs from trial and error, each with its obstacle."""
    with room_for_nesting():
        catalog = _compiled(files)
        return {
            name: str(placed.avoided and placed.avoided.reason)
            for name, placed in catalog.placed.items()
            if _reads_views(placed.split.typed.declaration, catalog) and not _is_placed(name, catalog)
        }


def _reads_views(declared: ViewDeclaration, catalog: Symbols) -> bool:
    return any(table.name.lower() in catalog.views for table in _tables(declared.select))


def _is_placed(name: str, catalog: Symbols) -> bool:
    view, placed = catalog.views[name], catalog.placed[name]
    declared = placed.split.typed.declaration
    over_rows = _written(declared, catalog)
    if placed.avoided is None:
        return over_rows is not None and _texts(view) == _texts(over_rows)
    if over_rows is not None and not WRITTEN_OTHERWISE.search(placed.avoided.reason):
        return False
    over_records = (_written(written_out(declared, catalog, in_order=order), catalog) for order in (False, True))
    first = next((candidate for candidate in over_records if candidate is not None), None)
    return first is not None and _texts(view) == _texts(first)


def _texts(view: View) -> tuple[object, ...]:
    return view.cell_tables, view.final, view.reads, view.sources


def _written(declared: ViewDeclaration, catalog: Symbols) -> View | None:
    """The view over the rows of what it names, or None if an order is not total or a writer refuses."""
    try:
        split = into_blocks(with_meaning(Written(declared), catalog))
        if any(incomplete_orders(split.above, catalog.keys)):
            return None
        return as_texts(Placed(split, *_cell_tables(declared.name, split.leaves, catalog.sources)), catalog)
    except (Wrong, AssertionError, ValueError):  # the writer unpacks a tumbling window and gets a hopping one
        return None


def written_out(declared: ViewDeclaration, catalog: Symbols, *, in_order: bool) -> ViewDeclaration:
    """The view with a subquery for each view of records and each table in its FROM.

    in_order: the rows of tables also show the log positions of their records
    """
    whole = exp.Subquery(this=declared.select.copy())
    for table in _tables(whole.this):
        inner = _records_of(table.name.lower(), catalog, in_order=in_order)
        if inner is None or table.args.get("version"):
            continue
        names = [column.name for column in table.args["alias"].columns] if table.args.get("alias") else []
        names = names or [name for name, _ in inner.columns]
        alias = exp.TableAlias(
            this=exp.to_identifier(table.alias or table.name, quoted=True),
            columns=[exp.to_identifier(name, quoted=True) for name in names],
        )
        joined = {clause: table.args.get(clause) for clause in ("joins", "laterals")}
        table.replace(exp.Subquery(this=inner.select, alias=alias, **joined))
    return replace(declared, select=whole.this)


def _records_of(name: str, catalog: Symbols, *, in_order: bool) -> ViewDeclaration | None:
    """The declaration of a table or of a view whose rows are records, down to the streams. Otherwise None."""
    source = catalog.declared.get(name)
    if source is not None:
        passed_on = order_columns_of_table(source.order) if in_order else {}
        return as_view(source, passed_on) if source.kind == "table" else None
    if name not in catalog.placed or "retain" in catalog.placed[name].split.typed.declaration.properties:
        return None
    below = written_out(catalog.placed[name].split.typed.declaration, catalog, in_order=in_order)
    return below if _gives_records(below.select) else None


def _gives_records(select: exp.Expr) -> bool:
    """True if each row is one record: no clause and no function puts rows together, leaves some out or sorts them."""
    block = select.unnest()
    if isinstance(block, exp.Union):
        plain = not any(block.args.get(clause) for clause in ("distinct", "limit", "offset"))
        return plain and _gives_records(block.this) and _gives_records(block.expression)
    clauses = ("group", "having", "distinct", "limit", "offset", "order", "with_")
    plain = isinstance(block, exp.Select) and not any(block.args.get(clause) for clause in clauses)
    return plain and block.find(exp.AggFunc, exp.Window) is None


def _tables(select: exp.Expr) -> Iterator[exp.Table]:
    """The tables in FROM that are not CTEs."""
    ctes = {cte.alias.lower() for cte in select.root().find_all(exp.CTE)}
    yield from [table for table in select.find_all(exp.Table) if table.name.lower() not in ctes]


def over_views_of_records(files: Files, every: int = 1) -> Files:
    """The catalog with a view of each stream's records, which its views read in the stream's place.

    Left out are the views that are then refused, and all but one view of `every` so many.
    """
    compiled = compile_catalog(files)
    streams = {name for name, source in compiled.sources.items() if source.kind == "stream"}
    own = [view for name, view in compiled.views.items() if name not in compiled.sources]
    views = {view.name: _over_views(view, streams) for view in own[::every]}
    declared = [source.sql for source in compiled.sources.values()]
    declared += [f"CREATE VIEW rows_of_{name} AS SELECT * FROM {name}" for name in streams]
    while True:
        chosen = {"c.sql": ";\n".join([*declared, *views.values()])}
        try:
            compile_catalog(chosen)
        except Refused as refused:
            names = set(re.findall(r"^c\.sql:\d+: (\w+): ", str(refused), re.MULTILINE))
            if names.isdisjoint(views):
                raise
            views = {name: sql for name, sql in views.items() if name not in names}
        else:
            return chosen


def _over_views(view: View, streams: set[str]) -> str:
    """The statement of a view, with the names of streams in its FROM changed into those of the views over them."""
    [statement] = parse(File("", view.sql))
    sql = view.sql
    for table in sorted(_tables(statement.tree.expression), key=lambda table: -_place(table)[0]):
        if table.name.lower() in streams:
            start, end = _place(table)
            alias = "" if table.alias else f" AS {sql[start:end]}"
            sql = f"{sql[:start]}rows_of_{table.name.lower()}{alias}{sql[end:]}"
    return sql


def _place(table: exp.Table) -> tuple[int, int]:
    name = span(table.this)
    assert name is not None
    return name.start, name.end
