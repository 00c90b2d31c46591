"""`lamina test --watch`: after each save, runs the tests it may affect, in a Spark and a Postgres that stay up.

A test runs again if its own file, or any part of the catalog that its views use, differs from the last run. The last
results of the others still hold, because the same seed cuts the same micro-batches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NoReturn

from batch_layer.stalls import Stalled
from lamina.authoring.catalog_files import catalog_files, files_in
from lamina.spark.spark_session import forget
from lamina.terminal.failures import as_lamina_error
from lamina.testing.fixtures import ENDING, Fixture, needed, tests_of
from lamina.testing.results import Comparison
from lamina.testing.runner import Runner, engines, tell_seed
from view_algebra import compile_catalog
from view_algebra.compiled import Catalog
from view_algebra.errors import LaminaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lamina.testing.scratch import Scratch

LOOKS_EVERY = 0.1
"""Seconds between two looks at the catalog's files."""

Saved = Mapping[Path, tuple[int, int, int]]
"""The state of each file: its time of writing, its size, and its inode, which changes with a rename."""


@dataclass
class Reruns:
    """Runs tests after each save, until it is interrupted.

    `names` are prefixes of the tests' names, empty for all tests. `tell` takes narration. `show` takes the results of a
    run. `fail` takes errors that kept tests from running.
    """

    folder: Path
    names: Sequence[str]
    seed: int
    tell: Callable[[str], None]
    show: Callable[[Sequence[Comparison]], None]
    fail: Callable[[LaminaError], None]
    engines: Callable[[Callable[[str], None]], AbstractContextManager[tuple[SparkSession, Scratch]]] = engines
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)
    _seen: Saved | None = None
    _ran: dict[str, tuple[Fixture, Catalog]] = field(default_factory=dict)
    _differing: set[str] = field(default_factory=set)

    def run(self) -> NoReturn:
        """Runs all tests once, and after each save those that it may change. Only an interrupt ends it.

        Raises LaminaError if there is no catalog. An error in an existing catalog is reported through `fail`, since the
        next save may correct it.
        """
        catalog_files(self.folder)
        tests = self._next()
        while True:
            try:
                with self.engines(self.tell) as (spark, server):
                    while True:
                        self._run(tests, spark, server)
                        tests = self._next()
            except Stalled as error:  # Spark was ended
                forget()
                self.fail(error)
                tests = self._next()

    def _next(self) -> Sequence[tuple[Fixture, Catalog]]:
        """Waits for a save that may change tests. Returns these tests, each with the part of the catalog that
        it needs.
        """
        while True:
            while (now := self._saved()) == self._seen:
                self.wait(LOOKS_EVERY)
            first, self._seen = self._seen is None, now
            try:
                catalog = compile_catalog(catalog_files(self.folder))
                tests = [(test, needed(catalog, test.expect)) for test in tests_of(self.folder, catalog, self.names)]
            except LaminaError as error:
                self.fail(error)
                continue
            self._differing &= {test.name for test, _ in tests}
            touched = [test for test in tests if self._ran.get(test[0].name) != test]
            if not first:
                self.tell(f"{len(touched)} of {len(tests)} tests may be affected by the save")
            if touched:
                return touched

    def _run(self, tests: Sequence[tuple[Fixture, Catalog]], spark: SparkSession, server: Scratch) -> None:
        began, results = monotonic(), list[Comparison]()
        others = sorted(self._differing.difference(test.name for test, _ in tests))
        for test, catalog in tests:
            runner = Runner(catalog, spark.newSession(), server, self.seed)
            self._ran.pop(test.name, None)
            try:
                results += runner.run_watched(test, self.tell)
            except Stalled:
                raise
            except Exception as error:  # noqa: BLE001 (a bug is raised again)
                self.fail(as_lamina_error(error))
            else:
                self._ran[test.name] = (test, catalog)
        self._differing = {*others, *(result.test for result in results if not result.equal)}
        self.show(results)
        if others:
            self.tell(f"not rerun, and still different: {', '.join(others)}")
        tell_seed(results, self.seed, self.tell)
        self.tell(f"{monotonic() - began:.1f} s, waiting for the next save in {self.folder} (Ctrl-C ends)")

    def _saved(self) -> Saved:
        try:
            files = [*files_in(self.folder, ".sql"), *files_in(self.folder, ENDING)]
            states = {path: path.stat() for path in files}
        except (OSError, LaminaError):  # meanwhile a file was removed, or the folder
            return {}
        return {path: (state.st_mtime_ns, state.st_size, state.st_ino) for path, state in states.items()}
