"""The page docs/sql.md: `reference.md`, with its tables filled from the compiler's own tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.resources import files

from view_algebra.engines.postgres.value_texts import OF_ELEMENTS
from view_algebra.language.aggregates import (
    AGGREGATES,
    BY_BUCKETS,
    BY_EVENT_ORDER,
    DEFAULT_REGISTERS,
    REWRITES,
    SYNONYMS,
)
from view_algebra.language.functions import FUNCTIONS, KINDS, NON_DETERMINISTIC, WINDOW_FUNCTIONS, Function
from view_algebra.language.literals import LITERALS
from view_algebra.language.times import MOST_ELEMENTS, TIMED
from view_algebra.language.types import postgres_types
from view_algebra.records.parsing import PSEUDO_COLUMNS
from view_algebra.texts.cell_tables import INDEXED_BYTES
from view_algebra.typed.aggregation.calls import MOST_PANES
from view_algebra.typed.expressions.nested import LAMBDAS
from view_algebra.typed.expressions.sugar import CASTS, COMPUTED, FIELDS, MAKERS
from view_algebra.written.declarations.properties import OPTIONS_OF_FORMATS, SOURCE_PROPERTIES, VIEW_PROPERTIES

_PAGE = files(__package__) / "reference.md"


def reference() -> str:
    """The page, in Markdown."""
    tables = _tables()
    return re.sub(r"\{([a-z_]+)\}", lambda slot: tables[slot[1]], _PAGE.read_text(encoding="utf-8"))


def _tables() -> dict[str, str]:
    calls = [_row(function) for name in sorted(FUNCTIONS) for function in FUNCTIONS[name]]
    kinds = KINDS | {kind: literal.meaning for kind, literal in LITERALS.items()}
    return {
        "types": _table(("Spark", "Postgres"), sorted(postgres_types().items())),
        "indexed_bytes": f"{INDEXED_BYTES:,}",
        "pseudo_columns": _table(("column", "type"), [(name, kind.spark) for name, kind in PSEUDO_COLUMNS]),
        "format_options": _table(("option", "meaning"), [(f"`{n}`", m) for n, m in OPTIONS_OF_FORMATS.items()]),
        "source_properties": _table(("of a source", "says"), list(SOURCE_PROPERTIES.items())),
        "view_properties": _table(("of a view", "says"), list(VIEW_PROPERTIES.items())),
        "aggregates": _listed(AGGREGATES),
        "synonyms": _listed([*SYNONYMS, *BY_EVENT_ORDER, *BY_BUCKETS]),
        "registers": f"{DEFAULT_REGISTERS:,}",
        "refused_aggregates": _table(("aggregate", "instead"), sorted(REWRITES.items())),
        "most_elements": f"{MOST_ELEMENTS:,}",
        "most_panes": f"{MOST_PANES:,}",
        "window_functions": _listed(sorted(WINDOW_FUNCTIONS)),
        "kinds": _table(("kind of argument", "what it is"), [(f"`{kind}`", what) for kind, what in kinds.items()]),
        "functions": _table(("call", "above, in Postgres"), calls),
        "lambdas_above": _listed(OF_ELEMENTS),
        "lambdas_below": _listed(name for name in LAMBDAS if name not in OF_ELEMENTS),
        "written_as": _listed(MAKERS),
        "casts": _listed(CASTS),
        "units": _listed(f"{name}(MINUTE, …)" for name in sorted(TIMED)),
        "fields": _listed([*FIELDS, *COMPUTED]),
        "refused_functions": _table(
            ("function", "because it", "instead"), [(name, *why) for name, why in sorted(NON_DETERMINISTIC.items())]
        ),
    }


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _row(function: Function) -> tuple[str, str]:
    call = f"`{function.name}({', '.join(function.takes)})`"
    return call, f"`{function.above}`" if function.above else f"below only: {function.why}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    print(reference(), end="")  # noqa: T201 — the page goes where it is piped to
