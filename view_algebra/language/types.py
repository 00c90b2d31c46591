"""Spark's types with their Postgres names, and Spark's rules for result types (ANSI mode off)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from view_algebra.language.quoting import spark_name, words

COLLATED = "COLLATE pg_unicode_fast"
"""Text compares by its bytes in Postgres, as in Spark. lower() and ILIKE know the letters of every language."""


@dataclass(frozen=True)
class Type:
    """A Spark SQL type, under Spark's name.

    `precision` and `scale` are for DECIMAL, `fields`, `element` and `key` for nested types.
    """

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, Type], ...] = ()
    element: Type | None = None
    key: Type | None = None
    unit: str = field(default="", compare=False)
    """Microseconds of a unit, if a number in JSON is a time of this type, or an empty text."""
    session: bool = field(default=False, compare=False)
    """True for a session's window: wherever Spark groups by it, overlapping windows become one."""
    endless: bool = field(default=False, compare=False)
    """True if its times may be infinities, which are after or before every other time."""

    @property
    def spark(self) -> str:
        """The type in Spark's form, such as `DECIMAL(12,2)`."""
        match self.name:
            case "DECIMAL":
                return f"DECIMAL({self.precision},{self.scale})"
            case "STRUCT" | "WINDOW":
                return "STRUCT<" + ", ".join(f"{spark_name(name)}: {kind.spark}" for name, kind in self.fields) + ">"
            case "ARRAY":
                return f"ARRAY<{self.element.spark if self.element else ''}>"
            case "MAP":
                return f"MAP<{self.key.spark if self.key else ''}, {self.element.spark if self.element else ''}>"
        return self.name

    @property
    def postgres(self) -> str:
        """The type in Postgres' form, such as `numeric(12,2)`. Nested types are stored as jsonb."""
        if self.name == "DECIMAL":
            return f"numeric({self.precision},{self.scale})"
        return _POSTGRES[self.name]

    @property
    def stored(self) -> str:
        """The type of a column of a table: text compares by bytes, as in Spark."""
        return f"text {COLLATED}" if self.name == "STRING" else self.postgres

    @property
    def staged(self) -> str:
        """The Spark type in which a value goes to Postgres: nested values and bytes go as texts."""
        return "STRING" if self.nested or self.name == "BINARY" else self.spark

    @property
    def integral(self) -> bool:
        """True for a whole-number type."""
        return self.name in INTEGRAL

    @property
    def numeric(self) -> bool:
        """True for a numeric type."""
        return self.integral or self.name in ("FLOAT", "DOUBLE", "DECIMAL")

    @property
    def nested(self) -> bool:
        """True for a struct, an array or a map."""
        return self.name in ("STRUCT", "ARRAY", "MAP", "WINDOW")

    @property
    def length(self) -> bool:
        """True for an interval."""
        return self.name.startswith("INTERVAL")

    def __str__(self) -> str:
        return self.spark


_POSTGRES = {
    "STRING": "text",
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INT": "integer",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DATE": "date",
    "TIMESTAMP": "timestamptz",
    "TIMESTAMP_NTZ": "timestamp",
    "BINARY": "bytea",
    **dict.fromkeys(("STRUCT", "ARRAY", "MAP", "WINDOW"), "jsonb"),
    "VOID": "text",
    **dict.fromkeys(("INTERVAL", "INTERVAL DAY", "INTERVAL DAY TO SECOND"), "interval"),
}

FIRST_TIME, LAST_TIME = "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"
"""The calendar: the years that every tool between Spark and the analyst can write."""

CALENDAR = {
    "TIMESTAMP": (f"TIMESTAMP '{FIRST_TIME}'", f"TIMESTAMP '{LAST_TIME}'"),
    "TIMESTAMP_NTZ": (f"TIMESTAMP_NTZ '{FIRST_TIME}'", f"TIMESTAMP_NTZ '{LAST_TIME}'"),
    "DATE": ("DATE '0001-01-01'", "DATE '9999-12-31'"),
}
"""First and last value of the calendar, in Spark's syntax."""

FIRST_MICROSECOND = -62_135_596_800_000_000
"""FIRST_TIME in microseconds since 1970."""

INTEGRAL = ("TINYINT", "SMALLINT", "INT", "BIGINT")
BITS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}
"""Bits of a whole-number type, without the sign."""

DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
"""Digits of the decimal that holds a whole-number type (Spark's DecimalType.forType)."""

STRING = Type("STRING")
BOOLEAN = Type("BOOLEAN")
TINYINT = Type("TINYINT")
SMALLINT = Type("SMALLINT")
INT = Type("INT")
BIGINT = Type("BIGINT")
FLOAT = Type("FLOAT")
DOUBLE = Type("DOUBLE")
DATE = Type("DATE")
TIMESTAMP = Type("TIMESTAMP")
TIMESTAMP_NTZ = Type("TIMESTAMP_NTZ")
BINARY = Type("BINARY")
VOID = Type("VOID")
INTERVAL = Type("INTERVAL")
DURATION = Type("INTERVAL DAY TO SECOND")
DAYS = Type("INTERVAL DAY")
WINDOW = Type("WINDOW", fields=(("start", TIMESTAMP), ("end", TIMESTAMP)))
"""A window, which is a struct to Spark. It is NULL as a whole, never in part."""
SESSION = replace(WINDOW, session=True)

ENDLESS = replace(TIMESTAMP, endless=True)
"""A TIMESTAMP that may be an infinity."""

MAX_PRECISION = 38
"""Spark's and most engines' largest DECIMAL."""


def postgres_types() -> dict[str, str]:
    """Postgres' names of the Spark types that a column can have."""
    own = {name: kind for name, kind in _POSTGRES.items() if name not in ("VOID", "INTERVAL", "WINDOW")}
    return own | {"DECIMAL(p,s)": "numeric(p,s)"}


def decimal(precision: int, scale: int) -> Type:
    """A decimal within Spark's bounds, without the leading digits beyond them (DecimalType.bounded)."""
    return Type("DECIMAL", min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> Type:
    """A decimal whose scale shrinks, down to 6, to make room for whole digits (DecimalType.adjustPrecisionScale).

    >>> adjusted(40, 10).spark, adjusted(60, 10).spark, adjusted(20, 4).spark
    ('DECIMAL(38,8)', 'DECIMAL(38,6)', 'DECIMAL(20,4)')
    """
    if precision <= MAX_PRECISION:
        return Type("DECIMAL", precision, scale)
    whole = precision - scale
    return Type("DECIMAL", MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def arithmetic(operator: str, left: Type, right: Type) -> Type:
    """The type of `left operator right` for two decimals (Spark's DecimalPrecision).

    >>> arithmetic("/", decimal(10, 2), decimal(10, 2)).spark
    'DECIMAL(23,13)'
    """
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    match operator:
        case "+" | "-":
            scale = max(s1, s2)
            return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjusted(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return adjusted(p1 - s1 + s2 + scale, scale)
        case "%":
            scale = max(s1, s2)
            return adjusted(min(p1 - s1, p2 - s2) + scale, scale)
    raise ValueError(operator)


def as_decimal(kind: Type, literal: str | None = None) -> Type:
    """The decimal that holds a whole number, for a literal with only its own digits.

    >>> as_decimal(INT).spark, as_decimal(INT, "100").spark
    ('DECIMAL(10,0)', 'DECIMAL(3,0)')
    """
    if kind.name == "DECIMAL":
        return kind
    if literal is not None:
        return decimal(max(1, len(literal.lstrip("-").lstrip("0"))), 0)
    return decimal(DIGITS[kind.name], 0)


_RANK = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 3, "DECIMAL": 4, "FLOAT": 5, "DOUBLE": 6}


def common(left: Type, right: Type) -> Type | None:
    """The type that both values convert to without loss (Spark's findWiderTypeForTwo), or None.

    It has no rule for texts: `meeting` converts a text next to a number.
    """
    if left == right:
        return right if right.endless else left
    if left == VOID or right == VOID:
        return right if left == VOID else left
    if left.name == right.name and VOID in (left.element, right.element):  # array() and map()
        return right if left.element == VOID else left
    if left.numeric and right.numeric:
        low, high = sorted((left, right), key=lambda t: _RANK[t.name])
        if high.name == "DECIMAL":
            a, b = as_decimal(low), high
            scale = max(a.scale, b.scale)
            precision = max(a.precision - a.scale, b.precision - b.scale) + scale
            return decimal(precision, max(0, scale - max(0, precision - MAX_PRECISION)))
        if low.name == "DECIMAL":
            return DOUBLE
        return high
    times = {left.name, right.name}
    if times == {"DATE", "TIMESTAMP"}:
        return ENDLESS if left.endless or right.endless else TIMESTAMP
    if times == {"DATE", "TIMESTAMP_NTZ"}:
        return TIMESTAMP_NTZ
    if times == {"TIMESTAMP", "TIMESTAMP_NTZ"}:
        return TIMESTAMP
    return None


_READ = {
    **{kind.name: kind for kind in (BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE, TIMESTAMP, BINARY)},
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR"), STRING),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMPLTZ"), TIMESTAMP),
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
    "VARBINARY": BINARY,
}
"""Types by sqlglot's names."""

INSTEAD: dict[str, str] = {
    **dict.fromkeys(words("TEXT STR NCHAR NVARCHAR NVARCHAR2 VARCHAR2 BPCHAR CLOB UUID JSON JSONB"), "STRING"),
    **dict.fromkeys(words("VARCHAR CHAR CHARACTER TINYTEXT MEDIUMTEXT LONGTEXT"), "STRING"),
    **dict.fromkeys(words("INT8 INT64"), "BIGINT"),
    **dict.fromkeys(words("INT4 INT32 MEDIUMINT"), "INT"),
    **dict.fromkeys(words("INT2 INT16"), "SMALLINT"),
    "INT1": "TINYINT",
    "NUMBER": "DECIMAL(18, 2)",
    "FLOAT8": "DOUBLE",
    "FLOAT4": "FLOAT",
    "BOOL": "BOOLEAN",
    **dict.fromkeys(words("TIMESTAMPTZ TIMESTAMPLTZ DATETIME"), "TIMESTAMP"),
    "TIMESTAMPNTZ": "TIMESTAMP_NTZ",
    **dict.fromkeys(words("BYTEA BLOB VARBINARY"), "BINARY"),
}
"""Other systems' types that Spark does not have, or does not have without a length, with Spark's types instead."""


SIZED = words("VARCHAR CHAR CHARACTER")
"""Types that Spark has only with a length."""


def as_written(node: exp.DataType) -> str:
    """The name of a type in the author's words."""
    kind = node.args.get("kind")
    named = node.this.sql() if isinstance(node.this, exp.Expr) else node.this.value
    return str(kind.name if isinstance(kind, exp.Expr) else kind or named)


def instead(node: exp.DataType) -> str | None:
    """The type to write in place of another system's type."""
    return INSTEAD.get(as_written(node).upper().partition("(")[0])


TIMES_OF_DAY = words("TIME TIMETZ")
"""Types of a time of day, which Lamina keeps as text, whose order is the same: '09:30:00' is before '10:00:00'."""

_OF_ANOTHER_KIND: dict[str, str] = {
    **dict.fromkeys(
        TIMES_OF_DAY,
        "STRING for texts such as '09:30:00', which have the order of the times, or BIGINT for numbers since midnight,"
        " as Debezium sends them",
    ),
    **dict.fromkeys(words("SERIAL BIGSERIAL UINT32 UINTEGER"), "BIGINT"),
    **dict.fromkeys(words("UBIGINT UINT64 HUGEINT INT128 UINT128"), "DECIMAL(38, 0)"),
    **dict.fromkeys(words("UINT8 UINT16 UTINYINT USMALLINT YEAR"), "INT"),
    **dict.fromkeys(words("MONEY SMALLMONEY"), "DECIMAL(18, 2)"),
    "BIT": "BOOLEAN",
    **dict.fromkeys(words("SMALLDATETIME DATETIME2 DATETIME64 TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS"), "TIMESTAMP"),
    "DATE32": "DATE",
}
"""Other systems' types whose values have another kind here."""


def unknown(node: exp.DataType) -> tuple[str, str]:
    """The unknown type, or the unknown type inside it, in the author's words, and the type to declare instead.

    >>> import sqlglot
    >>> unknown(sqlglot.exp.DataType.build("ARRAY<BIT>", dialect="spark"))
    ('BIT', 'BOOLEAN')
    """
    inner = next((part for part in node.find_all(exp.DataType) if part is not node and read(part) is None), None)
    if inner is not None:
        return unknown(inner)
    word, sizes = as_written(node), [size.sql() for size in node.expressions if isinstance(size, exp.DataTypeParam)]
    way_out = instead(node) or _OF_ANOTHER_KIND.get(word.upper(), "a type from docs/sql.md, for example STRING")
    return (f"{word}({', '.join(sizes)})" if sizes else word), way_out


def type_named(spark: str) -> Type | None:
    """The type behind a column's `spark`, or None for a type that Lamina does not know."""
    return read(exp.DataType.build(spark, dialect="spark"))


def read(node: exp.Expr | None) -> Type | None:
    """The type of sqlglot's syntax for it, or None for a type that Lamina does not know.

    >>> import sqlglot
    >>> read(sqlglot.exp.DataType.build("STRUCT<a: INT, b: ARRAY<DECIMAL(5,1)>>", dialect="spark")).spark
    'STRUCT<a: INT, b: ARRAY<DECIMAL(5,1)>>'
    """
    if not isinstance(node, exp.DataType) or node.args.get("collate") or node.find(exp.CollateColumnConstraint):
        return None
    name = node.this.value if hasattr(node.this, "value") else str(node.this)
    if name == "DECIMAL":
        if len(node.expressions) > 2 or not all(size.name.isdecimal() for size in node.expressions):
            return None
        sizes = [int(size.name) for size in node.expressions]
        precision, scale = (sizes + [10, 0][len(sizes) :])[:2] if sizes else (10, 0)
        return Type("DECIMAL", precision, scale) if 0 <= scale <= precision <= MAX_PRECISION and precision else None
    if name == "STRUCT":
        fields = [(f.name, read(f.args.get("kind"))) for f in node.expressions]
        typed = tuple((field, kind) for field, kind in fields if kind is not None)
        return Type("STRUCT", fields=typed) if len(typed) == len(fields) else None
    if name in ("ARRAY", "MAP", "LIST"):
        inner = [read(e) for e in node.expressions]
        if None in inner or len(inner) != (2 if name == "MAP" else 1):
            return None
        return Type("MAP", key=inner[0], element=inner[1]) if name == "MAP" else Type("ARRAY", element=inner[0])
    return _READ.get(name) if name not in SIZED or node.expressions else None


def schema(text: str) -> Type | None:
    """The schema of `from_json` in a text, or None for a type that depends on the time of reading, or an unknown one.

    >>> schema("a INT, b ARRAY<STRING>").spark, schema("MAP<STRING, INT>").spark, schema("at TIMESTAMP")
    ('STRUCT<a: INT, b: ARRAY<STRING>>', 'MAP<STRING, INT>', None)
    """
    for written in (text, f"STRUCT<{text}>"):
        try:
            kind = read(exp.DataType.build(written, dialect="spark"))
        except (ParseError, TokenError, ValueError):
            continue
        if kind is not None and kind.nested:
            plain = all(part.nested or part.numeric or part in (STRING, BOOLEAN) for part in inside(kind))
            return kind if plain and not_in_json(kind) is None else None
    return None


def inside(kind: Type) -> Iterator[Type]:
    """A type and all types inside it."""
    yield kind
    for part in (*(own for _, own in kind.fields), kind.key, kind.element):
        if part is not None:
            yield from inside(part)


def rewritten_type(kind: Type, change: Callable[[Type], Type]) -> Type:
    """The type with all its parts rewritten, innermost first."""
    return change(
        replace(
            kind,
            fields=tuple((name, rewritten_type(field, change)) for name, field in kind.fields),
            element=rewritten_type(kind.element, change) if kind.element else None,
            key=rewritten_type(kind.key, change) if kind.key else None,
        )
    )


def of_scalars(kind: Type) -> bool:
    """True for a struct of scalars, or of such structs."""
    return kind.name == "STRUCT" and all(
        part.name == "STRUCT" or not (part.nested or part.name in ("BINARY", "VOID", "INTERVAL"))
        for part in inside(kind)
    )


def told_apart_as_json(kind: Type) -> bool:
    """True for a nested type whose values are equal if their JSON is, which excludes fractions and instants."""
    return kind.nested and all(
        part.name in ("STRUCT", "ARRAY", "DECIMAL") or part.integral or part in (STRING, BOOLEAN, DATE)
        for part in inside(kind)
    )


def comparable(kind: Type) -> bool:
    """True if values can be compared for equality, which excludes maps (in Spark) and bytes (in JSON)."""
    return all(part.name not in ("MAP", "BINARY", "VOID") and not part.length for part in inside(kind))


def not_in_json(kind: Type) -> str | None:
    """The reason JSON has no values of a type, or None."""
    for part in inside(kind):
        if part.name == "BINARY":
            return "bytes"
        if part.key not in (None, STRING):
            return f"keys of type {part.key}"
        if len({name.lower() for name, _ in part.fields}) < len(part.fields):
            return "two fields of one name"
        if part.name == "STRUCT" and not part.fields:
            return "a struct without fields"
    return None


SYSTEM_COLUMNS = words("tableoid xmin cmin xmax cmax ctid")
"""Columns that every Postgres table already has."""
