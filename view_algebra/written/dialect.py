"""The author's dialect: Spark SQL that keeps every function call under its own name.

sqlglot converts functions to its own node types (`to_date` to a parse-or-cast, `date_add` to an interval). For a
compiler that promises one meaning in two engines, this is one translation too many. Here a call stays a call, and its
meaning comes from `functions.FUNCTIONS` and `aggregates.AGGREGATES`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NoReturn

from sqlglot import exp, parse_one
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.hive import HiveParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from view_algebra.language.types import INSTEAD, SIZED
from view_algebra.refusals import File, Span, Wrong, span

_SPECIAL_FORMS = ("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "TRIM", "SUBSTRING", "SUBSTR")


_OF_LITERALS = (
    exp.DType.DATE,
    exp.DType.TIMESTAMP,
    exp.DType.TIMESTAMPTZ,
    exp.DType.TIMESTAMPLTZ,
    exp.DType.TIMESTAMPNTZ,
)
"""Types that Spark allows before a text, as in `DATE '2026-01-31'`."""


def _refuse_literal(_: SparkParser, literal: exp.Expr, kind: exp.DataType) -> exp.Expr:
    word = "TIME" if kind.is_type("TIME") else kind.sql(dialect="spark")
    way_out = "Keep it as a text." if word == "TIME" else f"Write CAST('…' AS {word})."
    raise Wrong(span(literal), f"Spark rejects {word} before a text", way_out)


_TOTALS: dict[TokenType, type[exp.Cube | exp.Rollup]] = {TokenType.CUBE: exp.Cube, TokenType.ROLLUP: exp.Rollup}


class _Parser(SparkParser):
    """Spark's parser without its function table, except functions with special syntax, such as `CAST(x AS …)`."""

    ADD_JOIN_ON_TRUE: ClassVar[bool] = False  # it would change LATERAL

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parse for name, parse in SparkParser.FUNCTION_PARSERS.items() if name in _SPECIAL_FORMS
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {
        kind: _refuse_literal for kind in exp.DType if kind not in _OF_LITERALS
    }
    NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}

    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self._parse_positive(),
    }

    PRIMARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **SparkParser.PRIMARY_PARSERS,
        TokenType.NULL: lambda _, token: exp.Null().update_positions(token),
    }

    def _parse_interval(self, *args: Any, **kwargs: Any) -> exp.Add | exp.Interval | None:
        """Notes the place of an INTERVAL, from its first token to its last. That of several units is one place."""
        first = self._curr
        interval = super()._parse_interval(*args, **kwargs)
        for part in () if interval is None else interval.find_all(exp.Interval, exp.Add):
            part.update_positions(first).meta["end"] = self._prev.end
        return interval

    def _build_predicate(
        self, klass: type[exp.Binary], this: exp.Expr | None, expression: exp.Expr | None, *args: Any, **kwargs: Any
    ) -> exp.Expr:
        """Only accepts IS before NULL, and adds no parentheses that Spark needs, as in `x IS NULL = true`."""
        before = self._tokens[max(self._index - 3, 0) : self._index]
        if klass is exp.Is and isinstance(expression, exp.Null) and all(t.token_type != TokenType.IS for t in before):
            way_out = "Write … IS NULL, or … IS NOT NULL."
            raise Wrong(_place_of(self._prev), f"Spark rejects {self._prev.text} after a value", way_out)
        predicate = super()._build_predicate(klass, this, expression, *args, **kwargs)
        for name, side in (("this", this), ("expression", expression)):
            if isinstance(side, (exp.Is, exp.Not)):
                predicate.set(name, side)
        return predicate

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        """Requires WHERE in FILTER, as Spark does."""
        filtered = self._match_pair(TokenType.FILTER, TokenType.L_PAREN, advance=False)
        inside = self._tokens[self._index + 2 : self._index + 3]
        if filtered and [token.token_type for token in inside] != [TokenType.WHERE]:
            raise Wrong(_place_of(self._curr), "FILTER needs WHERE", "Write FILTER (WHERE …).")
        return super()._parse_window(this, alias)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """Accepts conditions in ROLLUP and CUBE, as in ROLLUP (country, n > 3)."""
        total = next((kind for token, kind in _TOTALS.items() if self._match(token)), None)
        if total is None:
            return None
        return self.expression(
            total(expressions=[] if with_prefix else self._parse_wrapped_csv(self._parse_disjunction))
        )

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_limit(self, this: exp.Expr | None = None, *args: Any, **kwargs: Any) -> exp.Expr | None:
        """Accepts one number after LIMIT: the first of MySQL's two is the offset."""
        clause = super()._parse_limit(this, *args, **kwargs)
        if isinstance(clause, exp.Limit) and clause.args.get("offset") is not None:
            raise Wrong(_place_of(self._prev), "LIMIT takes one number", "Write LIMIT 10 OFFSET 20 for LIMIT 20, 10.")
        return clause

    def _parse_offset(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """Accepts only a number after OFFSET."""
        clause = super()._parse_offset(this)
        if clause is not this and self._prev.text.upper() in ("ROW", "ROWS"):
            raise Wrong(_place_of(self._prev), "Spark rejects OFFSET … ROWS", "Write OFFSET 10.")
        return clause

    def _parse_primary(self) -> exp.Expr | None:
        """Accepts one point in a number. sqlglot reads `. 0.5` as 0.0.5."""
        is_point = self._match(TokenType.DOT, advance=False)
        primary = super()._parse_primary()
        if is_point and primary is not None and "." in self._prev.text:
            self._refuse("This cannot be parsed", self._prev)
        return primary

    def _parse_positive(self) -> exp.Expr:
        """Reads +x as positive(x)."""
        operand = self._parse_unary()
        if operand is None:
            self._refuse("Required keyword is missing")
        return exp.Anonymous(this="positive", expressions=[operand])

    def _parse_column_constraint(self) -> exp.Expr | None:
        """Accepts no name of a constraint without the constraint."""
        constraint = super()._parse_column_constraint()
        if isinstance(constraint, exp.Identifier):
            self._refuse("Required keyword is missing")
        return constraint

    def _parse_check_constraint(self) -> exp.CheckColumnConstraint | None:
        """Accepts NOT ENFORCED after CHECK, as after UNIQUE and FOREIGN KEY."""
        check = super()._parse_check_constraint()
        if check is not None and self._match_text_seq("NOT", "ENFORCED"):
            check.set("options", ["NOT ENFORCED"])
        return check

    def _parse_types(
        self,
        check_func: bool = False,
        schema: bool = False,
        allow_identifiers: bool = True,
        with_collation: bool = False,
    ) -> exp.Expr | None:
        """Keeps a type as written: Hive's parser would turn VARCHAR into STRING."""
        return super(HiveParser, self)._parse_types(check_func, schema, allow_identifiers, with_collation)

    def _parse_statement(self) -> exp.Expr | None:
        """Refuses a lone AS, which sqlglot reads as no statement."""
        statement = super()._parse_statement()
        if statement is None and self._tokens:
            self._refuse("This cannot be parsed")
        return statement

    def _parse_as_command(self, start: Token) -> exp.Command:
        """Refuses an unreadable statement where reading ended, instead of accepting it as an opaque command."""
        self._refuse("This cannot be parsed", self._curr or self._prev or start)

    def _refuse(self, mistake: str, at: Token | None = None) -> NoReturn:
        self.raise_error(mistake, at or self._curr or self._prev)
        raise AssertionError("raise_error raises")


class _Tokenizer(Spark.Tokenizer):
    """Spark's tokenizer without other systems' type names. Since 4.1, `''` is a quote within a text."""

    STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    KEYWORDS: ClassVar[dict[str, Any]] = {
        word: kind for word, kind in Spark.Tokenizer.KEYWORDS.items() if word not in INSTEAD or word in SIZED
    }


class _Generator(SparkGenerator):
    """Spark's generator, which keeps WITH in place, because two subqueries may use one name."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        """Keeps `2L`: it is a literal to Spark, but a CAST is not."""
        letters = _SUFFIXES.get(expression.to.this)
        if letters is None or not is_suffixed(expression):
            return super().cast_sql(expression, safe_prefix)
        return f"{expression.this.name}{letters}"


_SUFFIXES = {
    exp.DataType.Type.TINYINT: "Y",
    exp.DataType.Type.SMALLINT: "S",
    exp.DataType.Type.BIGINT: "L",
    exp.DataType.Type.FLOAT: "F",
    exp.DataType.Type.DOUBLE: "D",
}


class _Dialect(Spark):
    """Spark SQL with unchanged calls. An unknown type is parsed as well, so that it can be refused as a type."""

    SUPPORTS_USER_DEFINED_TYPES = True
    Tokenizer = _Tokenizer
    Parser = _Parser
    Generator = _Generator


_DIALECT = _Dialect()


@dataclass(frozen=True)
class Statement:
    """A statement of a file: its tree, its text and, for a view, the text of its SELECT."""

    tree: exp.Expr
    sql: str
    select: str


@contextmanager
def room_for_nesting() -> Iterator[None]:
    """A higher recursion limit: each pair of parentheses takes some twenty nested calls."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, CALLS))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


CALLS = 8_000
"""The recursion limit, in nested Python calls: enough for 400 nested parentheses. Spark and Postgres accept more."""


def parse(file: File) -> list[Statement]:
    """The statements of a file. Every name, literal and call keeps its place.

    `window(…)` or `window` directly after GROUP BY is not a WINDOW clause.

    >>> [s.sql for s in parse(File("a.sql", "SELECT 1 FROM s GROUP BY window(ts, '1 hour'); SELECT 2"))]
    ["SELECT 1 FROM s GROUP BY window(ts, '1 hour')", 'SELECT 2']
    """
    try:
        tokens = _DIALECT.tokenize(file.text)
        _refuse_gaps(tokens)
        trees = _DIALECT.parser().parse(_windows_as_names(tokens), file.text)
    except TokenError as error:
        place = Span(max(0, len(file.text) - 1), len(file.text))
        raise Wrong(place, f"the file cannot be read: {error}", "Close the quote or comment that is open.") from error
    except ParseError as error:
        raise _syntax_error(file, error) from error
    written = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    for tree in written:
        _note_quotes(tree, file.text)
    return [
        Statement(tree, _text(file, chunk), _text(file, _select(chunk)))
        for tree, chunk in zip(written, _chunks(tokens), strict=True)
    ]


def _note_quotes(tree: exp.Expr, text: str) -> None:
    """Marks texts in double quotes. Refuses names in double quotes in a SELECT, which Spark reads as texts."""
    for part in tree.find_all(exp.Literal, exp.Identifier):
        sign = text[part.meta["start"]] if "start" in part.meta else ""
        names = isinstance(part, exp.Identifier) or (isinstance(part.parent, exp.Column) and part.is_string)
        if names and sign in ("'", '"') and part.find_ancestor(exp.Query) is not None:
            raise Wrong(span(part), f"Spark rejects {sign}{part.name}{sign} as a name", f"Write `{part.name}`.")
        part.meta[_DOUBLE_QUOTES] = sign == '"'


_DOUBLE_QUOTES = "lamina_double_quotes"


def in_double_quotes(literal: exp.Literal) -> bool:
    """True if the author wrote the text in double quotes, which Spark also accepts."""
    return bool(literal.meta.get(_DOUBLE_QUOTES))


def _refuse_gaps(tokens: list[Token]) -> None:
    """Raises `Wrong` for nothing next to a comma, or after a word that needs an operand, which sqlglot accepts."""
    kinds = [token.token_type for token in tokens]
    for token, before, kind, after in zip(tokens, [None, *kinds], kinds, [*kinds[1:], None], strict=False):
        ends = after in _ENDS or after is None
        if kind == TokenType.COMMA and (ends or before in _BEGINS):
            way_out = "Take the comma out, or write what is missing."
            raise Wrong(_place_of(token), f"a comma has nothing {'after' if ends else 'before'} it", way_out)
        named = kind == TokenType.OVER and before == TokenType.ALIAS
        if ends and not named and (kind in _WANTS or (kind == TokenType.DISTINCT and before == TokenType.SELECT)):
            way_out = "Name a column." if kind != TokenType.OVER else "Write OVER (…), or OVER () for all rows."
            raise Wrong(_place_of(token), f"{token.text.upper()} has nothing after it", way_out)


def _place_of(token: Token) -> Span:
    return Span(token.start, token.end + 1)


_ENDS = {
    *(TokenType.COMMA, TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.SEMICOLON, TokenType.ALIAS, TokenType.FROM),
    *(TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY, TokenType.ORDER_BY, TokenType.LIMIT),
    *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
}
"""Tokens that an expression cannot begin with."""

_WANTS = {TokenType.SELECT, TokenType.OVER, TokenType.PARTITION_BY, TokenType.GROUP_BY, TokenType.ORDER_BY}
"""Tokens that an expression or a part of one must follow."""

_BEGINS = {*_WANTS, TokenType.DISTINCT, TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.FROM, TokenType.WHERE}
"""Tokens that a comma cannot follow."""


def is_suffixed(node: exp.Expr) -> bool:
    """True for `2L`, which is a CAST of 2 to sqlglot. Its place covers more than the digits."""
    literal = node.this if isinstance(node, exp.Cast) else None
    if not isinstance(literal, exp.Literal) or literal.is_string or "start" not in literal.meta:
        return False
    return int(literal.meta["end"]) + 1 - int(literal.meta["start"]) > len(literal.name)


def _chunks(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement, without the semicolons between them."""
    chunks = groupby(tokens, lambda token: token.token_type == TokenType.SEMICOLON)
    return [list(chunk) for is_semicolon, chunk in chunks if not is_semicolon]


def _select(chunk: list[Token]) -> list[Token]:
    """The tokens after the first AS outside of parentheses."""
    depth = 0
    for position, token in enumerate(chunk):
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if token.token_type == TokenType.ALIAS and depth == 0:
            return chunk[position + 1 :]
    return []


def _text(file: File, tokens: list[Token]) -> str:
    return file.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def _windows_as_names(tokens: list[Token]) -> list[Token]:
    """Turns `window` into a name, except in `WINDOW w AS (…)`."""
    pairs = zip(tokens, [*tokens[2:], None, None], strict=False)
    return [
        Token(TokenType.VAR, token.text, line=token.line, col=token.col, start=token.start, end=token.end)
        if token.token_type == TokenType.WINDOW and (then is None or then.token_type != TokenType.ALIAS)
        else token
        for token, then in pairs
    ]


def _syntax_error(file: File, error: ParseError) -> Wrong:
    first = error.errors[0] if error.errors else {}
    line, column, highlight = first.get("line"), first.get("col"), first.get("highlight") or ""
    if line is None or column is None:
        return Wrong(
            Span(0, 1), f"syntax error: {error}", "Write one CREATE TABLE or CREATE VIEW statement in Spark SQL."
        )
    end = file.offset(line, column)
    before = file.text[max(0, end - 60) : end]
    return Wrong(
        Span(max(0, end - len(highlight)), end),
        f"syntax error at {highlight!r}: {_described(str(first.get('description', '')))}",
        next(
            (way_out for words, way_out in _OF_OTHERS if re.search(words, before, re.IGNORECASE)),
            "Write it as Spark SQL reads it, and a name that is a word of SQL in `backticks`: "
            "https://spark.apache.org/docs/latest/sql-ref-syntax.html",
        ),
    )


def _described(text: str) -> str:
    """The mistake in sqlglot's words, without the names of its classes."""
    if text.startswith("Required keyword"):
        return "something is missing next to it"
    return re.sub(r" but got <.*", "", text, flags=re.DOTALL).rstrip(".").lower()


_OF_OTHERS = (
    (
        r"\b(TUMBLE|HOP|CUMULATE|SESSION)\s*\(\s*(DATA\s*=>\s*)?TABLE\b",
        "Write FROM s GROUP BY window(ts, '15 minutes').",
    ),
    (r"\bWINDOW\s+(TUMBLING|HOPPING|SESSION)$", "Write GROUP BY window(ts, '15 minutes'), or session_window(…)."),
    (r"\bADD\s+(CHECK|UNIQUE|FOREIGN)$", "Give the check a name: ADD CONSTRAINT name CHECK (…)."),
    (r"\bEMIT$", "Leave EMIT out: a view always shows what is known."),
    (r"\bTOP\s+\d+$", "Write ORDER BY … LIMIT 10."),
    (r"\b(FLOOR|CEIL)\s*\([^()]*\bTO$", "Write date_trunc('hour', ts)."),
    (r"\bRETURNING$", "Write CAST(get_json_object(x, '$.a') AS INT)."),
    (r"\bMATCH_RECOGNIZE\b", "Compare a row with the next by lead(x) OVER (PARTITION BY … ORDER BY …) in a subquery."),
    (
        r"\bMATCH_CONDITION$",
        "Write JOIN t FOR SYSTEM_TIME AS OF a.ts AS t ON a.k = t.k, where t has a PRIMARY KEY.",
    ),
    (r"\{\{", "Write the name alone: FROM orders. A catalog takes no templates."),
    (r"\bROW$", "Write STRUCT<a: INT, b: STRING>."),
    (r"\bWATERMARK\s+FOR$", "Leave it out, and name the column: TBLPROPERTIES ('event_time' = 'ts')."),
    (r"\bMETADATA$", "Leave the column out: every source has kafka_timestamp, kafka_key and so on."),
    (r"\bCREATE\s+(STREAM|SOURCE\s+\w+)$", "Write CREATE TABLE … USING kafka OPTIONS (topic '…', format 'json')."),
    (r"\w\s*:\s*\w+\s*\.$", "Write get_json_object(x, '$.a.b')."),
    (r"\w\s*[!~]$", "Write x RLIKE '^a', or NOT x RLIKE '^a'."),
    (r"@>?$", "Write array_contains(x, 'a')."),
)
"""Patterns of other systems' SQL up to the point where Spark's parser stops, with the way out."""


def text_of(node: exp.Expr) -> str:
    """A node as Spark SQL."""
    return str(node.sql(dialect=_DIALECT))


def readable(node: exp.Expr) -> str:
    """A node as Spark SQL for its author, with functions in their original case."""
    return str(node.sql(dialect=_DIALECT, normalize_functions=False))


def parsed(text: str) -> exp.Expr:
    """The syntax tree of an expression in Spark SQL."""
    return parse_one(text, dialect=_DIALECT)
