"""Output for people: data on stdout, as a table or JSON lines, and narration and errors on stderr."""

from __future__ import annotations

import itertools
import json
import logging
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.logging import RichHandler
from rich.measure import Measurement
from rich.table import Table

from interchange.json_text import interval
from serving_layer.narration import age
from view_algebra.errors import LaminaError

WIDTH_WITHOUT_TERMINAL = 160
"""Width in columns of text that goes to a pipe. A table there is as wide as its values."""

NARROWEST = 8
"""Least width of a column at a terminal. If the columns do not fit, rows are shown one by one."""

UNBOUNDED = 1_000_000


class Output:
    """Writes results. With `as_json`, every result is JSON."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json
        width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
        self.out = Console(width=width, highlight=False, soft_wrap=not sys.stdout.isatty(), emoji=False)
        self.err = Console(stderr=True, highlight=False, emoji=False)
        self.out.on_broken_pipe = _raise_broken_pipe  # type: ignore[method-assign]
        self.err.on_broken_pipe = _discard_narration  # type: ignore[method-assign]

    def tell(self, line: str) -> None:
        """Prints a line of narration."""
        self.err.print(harmless(line), style="dim", markup=False, soft_wrap=not self.err.is_terminal)

    def alarm(self, alarm: str) -> None:
        """Prints an alarm."""
        self.err.print("alarm: ", style="bold red", end="")
        self.err.print(harmless(alarm), markup=False, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Prints rows as a table, or as one JSON object per line."""
        if self.as_json:
            names = distinct_names(columns)
            for row in rows:
                self.record(dict(zip(names, row, strict=True)))
            return
        columns = [harmless(column) for column in columns]
        table = Table(box=None, pad_edge=False, header_style="bold")
        shown = [[cell(value) for value in row] for row in rows]
        for number, column in enumerate(columns):
            numeric = bool(shown) and all(_numeric(row[number]) for row in shown)
            table.add_column(column, justify="right" if numeric else "left", overflow="fold")
        for row in shown:
            table.add_row(*row)
        whole = Measurement.get(self.out, self.out.options.update(max_width=UNBOUNDED), table).maximum
        if self.out.is_terminal and whole > self.out.width and NARROWEST * len(columns) > self.out.width:
            self._one_by_one(columns, shown)
            return
        if self.out.is_terminal:
            self.out.print(table, markup=False)
            return
        self.out.width = max(whole, WIDTH_WITHOUT_TERMINAL)
        with self.out.capture() as captured:
            self.out.print(table, markup=False)
        self.out.out("\n".join(line.rstrip() for line in captured.get().splitlines()))

    def _one_by_one(self, columns: Sequence[str], shown: Sequence[Sequence[str]]) -> None:
        """Prints each row as lines of column and value, so that no column is cut off."""
        widest = max(map(len, columns))
        for number, row in enumerate(shown, 1):
            self.out.print(f"row {number}", style="bold", markup=False)
            for column, value in zip(columns, row, strict=True):
                self.out.print(f"{column:{widest}}  {value}", markup=False, soft_wrap=True)

    def text(self, text: str, **fields: Any) -> None:
        """Prints a text, or in JSON the fields."""
        if self.as_json:
            self.record(fields or {"text": text})
        else:
            self.out.print(harmless(text), markup=False, soft_wrap=True)

    def record(self, record: dict[str, Any]) -> None:
        """Prints one JSON object, for results that are not tables."""
        try:
            line = _as_json(record, allow_nan=False)
        except ValueError:
            line = _as_json(_with_texts(record))
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int | None], None]]:
        """A progress bar on stderr. It yields a function of (done, total), in which the total may be None."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        name = TextColumn("{task.description}", markup=False)
        columns = (name, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.err, transient=True, disable=not self.err.is_terminal) as bar:
            task = bar.add_task(harmless(what), total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def error(self, error: LaminaError) -> None:
        """Prints an error, its evidence and its way out."""
        if self.as_json:
            parts = {"error": error.what, "evidence": error.evidence, "way_out": error.way_out}
            print(_as_json(parts), file=sys.stderr)
            return
        self.err.print("error: ", style="bold red", end="")
        self.err.print(harmless(error.what), markup=False, soft_wrap=True)
        for part in (error.evidence, error.way_out):
            if part:
                self.err.print("\n" + harmless(part), markup=False, soft_wrap=True)


_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tabs and line ends, and characters that change the direction of text."""


def harmless(text: str) -> str:
    r"""The text with control characters escaped, so that it cannot move the cursor or change colours.

    >>> harmless("a\x1b[31mb\tc")
    'a\\x1b[31mb\tc'
    """
    return _HARMFUL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _as_json(value: Any, *, allow_nan: bool = True) -> str:
    """JSON in which control characters are escaped. JSON itself escapes only those below U+0020."""
    text = json.dumps(value, ensure_ascii=False, default=json_value, allow_nan=allow_nan)
    return _HARMFUL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _raise_broken_pipe() -> None:
    """Replaces rich's handler, which ends the process with 1."""
    raise BrokenPipeError


def _discard_narration() -> None:
    """Discards the narration once its reader is gone, as in `lamina rebuild |& head`. The command's work continues."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def distinct_names(columns: Sequence[str]) -> list[str]:
    """The columns' names, with a number added to repeated ones.

    >>> distinct_names(["count", "n", "count"])
    ['count', 'n', 'count_2']
    """
    names: list[str] = []
    for column in columns:
        others = (f"{column}_{number}" for number in itertools.count(2))
        names.append(next(name for name in (column, *itertools.islice(others, len(columns))) if name not in names))
    return names


def _with_texts(value: Any) -> Any:
    """The value with NaN and infinities as texts, since JSON has no such numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, Mapping):
        return {key: _with_texts(item) for key, item in value.items()}
    return [_with_texts(item) for item in value] if isinstance(value, list | tuple) else value


def cell(value: Any) -> str:
    """A value in a table. NULL is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="auto").replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return interval(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=json_value)
    if isinstance(value, bytes | memoryview):
        return str(json_value(value))
    # A control character in a key must not move the reader's cursor.
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in str(value))


def json_value(value: Any) -> Any:
    """A value that JSON cannot hold, as a text: decimals exactly, instants in ISO 8601."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    if isinstance(value, datetime | date):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return interval(value)
    if isinstance(value, bytes | memoryview):
        return f"\\x{bytes(value).hex()}"  # as Postgres writes bytes
    return str(value)


def _numeric(text: str) -> bool:
    return not text or text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()


class _HarmlessFormatter(logging.Formatter):
    """Formats log lines with control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        return harmless(super().format(record))


def log_to_stderr(console: Console) -> None:
    """Sends Lamina's log to stderr, one line per entry, with the time."""
    handler = RichHandler(
        console=console, show_path=False, show_level=False, log_time_format="%H:%M:%S", markup=False, highlighter=None
    )
    handler.setFormatter(_HarmlessFormatter("%(message)s"))
    logger = logging.getLogger("lamina")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False


def seconds(value: float | None) -> str:
    """An age that a person can compare at a glance.

    >>> seconds(0.734), seconds(75), seconds(90_000), seconds(None)
    ('0.7 s', '75 s', '25 h', '')
    """
    if value is None:
        return ""
    return f"{value:.1f} s" if value < 60 else age(value)
