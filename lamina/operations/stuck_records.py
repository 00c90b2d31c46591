"""A search, in its own process, for the record at which a command's computation stands still."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from batch_layer.stalls import LOOKS_EVERY, Finder, Found, Work
from lamina.configuration.settings import Settings
from lamina.operations.probing import ProbeProcess
from speed_layer.endless import Patience, Search

if TYPE_CHECKING:
    from speed_layer.endless import Probe
    from view_algebra.compiled import CellTable, Source

PATIENCE = Patience(per_record=1 / 20_000)
"""A range of a log may be large. Even an old core parses and computes 20,000 records of a kilobyte in a second."""

SEARCHED_WITHIN = 600.0
"""Seconds after which the search gives up, and the error names the view without the record."""


def finder(settings: Settings) -> Finder:
    """Returns a function that searches the work's sources for the record, one source after another."""

    def find(work: Work, over: threading.Event) -> Found | None:
        deadline = time.monotonic() + SEARCHED_WITHIN
        for name, (source, range) in work.reads.items():
            if not (tables := work.tables_of(name)) or range.empty:
                continue
            search = Search(partial(_begin, settings, source, tables), range, PATIENCE)
            while not search.over and not over.is_set() and time.monotonic() < deadline:
                search.await_end(LOOKS_EVERY)
            search.close()
            if search.record is not None:
                return Found(name, *search.record, PATIENCE.alone)
        return None

    return find


def _begin(settings: Settings, source: Source, tables: list[CellTable]) -> Probe:
    return ProbeProcess(settings, source, tables)
