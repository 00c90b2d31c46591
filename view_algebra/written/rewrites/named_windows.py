"""Writes the windows of WINDOW clauses into the OVER clauses that name them."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from view_algebra.refusals import Wrong, span

_OF_A_WINDOW = ("partition_by", "order", "spec")
"""The clauses of a window."""


def write_windows_out(tree: exp.Expr) -> None:
    """Writes the windows of the WINDOW clauses in a declaration into the OVER clauses that name them."""
    for block in [*tree.find_all(exp.Select)]:
        _write_windows_out(block)


def _write_windows_out(block: exp.Select) -> None:
    windows = block.args.pop("windows", None) or []
    named = {window.name.lower(): window for window in windows}
    if twice := next((w for w in windows if named[w.name.lower()] is not w), None):
        raise Wrong(span(twice), f"two windows are named {twice.name}", "Give each a name of its own.")
    for window in block.find_all(exp.Window) if named else ():
        meant = _named(_named(window, named), named)
        if meant is not None and not meant.args.get("alias") and meant is not window and window.parent_select is block:
            window.set("alias", None)
            clauses = meant.copy().args
            for clause in _OF_A_WINDOW:
                window.set(clause, clauses.get(clause))


def _named(window: exp.Expr | None, named: Mapping[str, exp.Expr]) -> exp.Expr | None:
    """The definition of a window: itself if it names no other, the named one, or None if it extends another."""
    name = None if window is None else window.args.get("alias")
    if window is None or name is None:
        return window
    return None if any(window.args.get(clause) for clause in _OF_A_WINDOW) else named.get(name.name.lower())
