"""The time that views take to compile: each view of the examples alone, and a catalog of two hundred of them."""

from __future__ import annotations

import re
import statistics
from time import perf_counter

import click

from benchmarks.figures import Figure, benchmark
from benchmarks.running import REPOSITORY
from lamina.terminal.render import Output
from view_algebra import compile_catalog

PER_VIEW, PER_CATALOG = 50.0, 5.0
"""Limits in milliseconds for a view, and in seconds for a catalog."""

EXAMPLE = REPOSITORY / "examples" / "clicks"


@click.command()
@click.option("--views", default=200, show_default=True)
@click.option("--turns", default=5, show_default=True)
@benchmark
def main(output: Output, views: int, turns: int) -> list[Figure]:
    """Compiling views, one at a time and as one catalog."""
    source = {path.name: path.read_text() for path in (EXAMPLE / "sources").glob("*.sql")}
    declared = {path.stem: path.read_text() for path in sorted((EXAMPLE / "views").glob("*.sql"))}
    needed = {name: [other for other in declared if re.search(rf"FROM {other}\b", declared[name])] for name in declared}
    took = {}
    for name, others in needed.items():
        files = source | {other: declared[other] for other in (name, *others)}
        milliseconds = statistics.median(_seconds(files) for _ in range(turns)) * 1000
        took[name] = milliseconds
        output.tell(f"{name}: {milliseconds:.1f} ms")
    catalog, names = dict(source), "|".join(declared)
    for number in range(-(-views // len(declared))):
        catalog |= {
            f"{name}_{number}.sql": re.sub(rf"\b(CREATE VIEW|FROM) ({names})\b", rf"\1 \2_{number}", text)
            for name, text in declared.items()
        }
    count = len(catalog) - len(source)
    seconds = statistics.median(_seconds(catalog) for _ in range(turns))
    return [
        Figure("slowest view, with what it reads", max(took.values()), "ms", at_most=PER_VIEW),
        Figure(f"a catalog of {count} views", seconds, "s", at_most=PER_CATALOG),
        Figure(f"a catalog of {count} views, per view", 1000 * seconds / count, "ms"),
    ]


def _seconds(files: dict[str, str]) -> float:
    began = perf_counter()
    compile_catalog(files)
    return perf_counter() - began


if __name__ == "__main__":
    main()
