"""The author's dialect: Spark SQL with every function call kept under the name the author wrote.

sqlglot turns functions into its own kinds (`to_date` into a parse-or-cast, `date_add` into an interval). For a compiler
that promises one meaning in two engines this is one translation too many: here a call stays a call, and what it means
is looked up in `functions.FUNCTIONS` and `aggregates.AGGREGATES`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from view_algebra.refusals import File, Span, Wrong

_SPECIAL_FORMS = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "TRIM", "SUBSTRING", "SUBSTR")


class _Parser(SparkParser):
    """Spark's parser without its function table; what is left has a syntax of its own, as `CAST(x AS …)`."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _SPECIAL_FORMS
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }


class _Dialect(Spark):
    """Spark SQL, calls untouched."""

    Parser = _Parser


_DIALECT = _Dialect()


def parse(file: File) -> list[exp.Expr]:
    """The statements of a file; every name, literal and call remembers where it stands.

    `window(…)` directly after GROUP BY is a call, not the WINDOW clause.

    >>> [s.key for s in parse(File("a.sql", "SELECT 1 FROM s GROUP BY window(ts, '1 hour'); SELECT 2"))]
    ['select', 'select']
    """
    try:
        tokens = _DIALECT.tokenize(file.text)
        statements = _DIALECT.parser().parse(_windows_as_calls(tokens), file.text)
    except TokenError as error:
        raise Wrong(
            Span(len(file.text) - 1, len(file.text)),
            f"cannot be read: {error}",
            "Close the quote or comment that is open.",
        ) from error
    except ParseError as error:
        raise _syntax_error(file, error) from error
    return [statement for statement in statements if statement is not None and not isinstance(statement, exp.Semicolon)]


def _windows_as_calls(tokens: list[Token]) -> list[Token]:
    pairs = zip(tokens, [*tokens[1:], None], strict=True)
    return [
        Token(TokenType.VAR, token.text, line=token.line, col=token.col, start=token.start, end=token.end)
        if token.token_type == TokenType.WINDOW and after is not None and after.token_type == TokenType.L_PAREN
        else token
        for token, after in pairs
    ]


def _syntax_error(file: File, error: ParseError) -> Wrong:
    first = error.errors[0] if error.errors else {}
    line, column, found = first.get("line"), first.get("col"), first.get("highlight") or ""
    if line is None or column is None:
        return Wrong(
            Span(0, 1), f"syntax error: {error}", "Write one CREATE TABLE or CREATE VIEW statement in Spark SQL."
        )
    end = file.offset(line, column)
    return Wrong(
        Span(max(0, end - len(found)), end),
        f"syntax error at {found!r}: {str(first.get('description', '')).rstrip('.').lower()}",
        "Write it as Spark SQL reads it: https://spark.apache.org/docs/latest/sql-ref-syntax.html",
    )


def span(node: exp.Expr) -> Span | None:
    """Where a node stands in its file: its own token, else from its first to its last token."""
    meta = node.meta
    if "start" in meta:
        return Span(meta["start"], meta["end"] + 1)
    spans = [Span(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    if not spans:
        return None
    return Span(min(s.start for s in spans), max(s.end for s in spans))
