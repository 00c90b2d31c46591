"""The scalar functions: one row each, as data.

A row has a function's argument and result types (Spark's rules), and its Postgres expression above the aggregation.
Below the aggregation, a call runs in Spark under its own name. If the engines differ and no translation agrees, the row
states the reason, and the function only works below. A name without a row is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from view_algebra.language.quoting import words
from view_algebra.language.types import (
    BIGINT,
    BINARY,
    BITS,
    BOOLEAN,
    DATE,
    DOUBLE,
    ENDLESS,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    VOID,
    Type,
    adjusted,
    schema,
)

KINDS = {
    "any": "a value",
    "common": "a value; all of them meet in one type",
    "ordered": "a value without a map inside; all of them meet in one type",
    "scalar": "a value that is not nested",
    "integral": "a whole number",
    "numeric": "a number",
    "text": "a text, or a value that both engines print with the same letters",
    "texts": "a text, or an array of texts",
    "day": "a date, and no time",
    "instant": "a timestamp with a time zone",
    "array": "an array",
    "comparable": "an array without a map inside",
    "listed": "an array of values that are not nested",
    "plain": "an array of whole numbers, decimals, texts, booleans or dates",
    "printed": "an array of whole numbers, texts, booleans or dates",
    "doubles": "an array of doubles or floats",
    "times": "an array of timestamps",
    "scalars": "an array of whole numbers, decimals, doubles, texts, booleans, dates or timestamps",
    "structs": "an array of structs",
    "arrays": "an array of arrays",
    "element": "a value of the type of the first argument's elements",
    "key": "a value of the type of the first argument's keys",
    "same": "a value of the first argument's type",
    "computed": "a text that is not a literal",
}
"""Kinds of arguments besides the names of types, and besides those that `literals.py` describes."""

LONGEST_SEQUENCE = 1_000_000
"""Most elements of a sequence of numbers or times: a longer one is NULL, to spare both engines' memory."""

Gives = Type | str | Callable[[Sequence[Type], Sequence[str | None]], Type]
"""A fixed type, `first` (the type of the first argument), `common` (of all), or computed from types and literals."""


@dataclass(frozen=True)
class Function:
    """One overload of a function, under one of its names.

    takes: a kind per argument, from KINDS or LITERALS, or a type's name in lower case. A last kind that ends in `*`
        repeats any number of times. One that ends in `?` may be missing
    above: Postgres' expression with `{0}`, `{1}`, … or `{all}` (comma-separated) for the arguments, `{inside}` for them
        as parts of a nested value, `{element}` for the type of the first one's elements. None: below the aggregation
        only
    why: the reason, for the author, that it only works below
    below: Spark's expression where calling the function itself could raise: no value may stop a stream, or end the
        SELECT that `lamina check` runs
    above_only: it only works above, because a record could ask for too much
    """

    name: str
    takes: tuple[str, ...]
    gives: Gives
    above: str | None = None
    why: str = ""
    below: str | None = None
    above_only: bool = False


def _whole(types: Sequence[Type], _: Sequence[str | None]) -> Type:
    """The type of floor and ceil: a whole number with as many digits."""
    kind = types[0]
    return adjusted(kind.precision - kind.scale + (1 if kind.scale else 0), 0) if kind.name == "DECIMAL" else BIGINT


def _rounded(types: Sequence[Type], literals: Sequence[str | None]) -> Type:
    """The type of round(x, d): Spark adds a whole digit, because 9.9 rounds to 10."""
    kind = types[0]
    if kind.name != "DECIMAL":
        return kind
    places = int(literals[1] or 0) if len(literals) > 1 else 0
    scale = max(0, min(kind.scale, places))
    whole = max(kind.precision - kind.scale + 1, 1 - places)
    return Type("DECIMAL", min(38, whole + scale), scale)


def _array_of(kind: Type) -> Type:
    return Type("ARRAY", element=kind)


def _element(types: Sequence[Type], _: Sequence[str | None]) -> Type:
    return types[0].element or STRING


def _entries(types: Sequence[Type], _: Sequence[str | None]) -> Type:
    return _array_of(Type("STRUCT", fields=(("key", types[0].key or STRING), ("value", types[0].element or STRING))))


_BYTES = "Postgres changes the case of some letters differently"
_PATTERNS = "Postgres and Java match this regular expression differently"
_ZONES = "the engines may know different time zone rules"
_TEXT_TO_TIME = "Postgres reads other texts as times than Spark does"
_NESTED = "to Postgres nested values are JSON, which has no such function"
_HASH = "Postgres has no such function"
_SPLIT = "CASE WHEN {0} = '' THEN '[\"\"]' ELSE to_jsonb(string_to_array({0}, nullif({1}, ''))) END"
_APART = "(CAST({1} AS DECIMAL(20, 0)) - {0})"
_NUMBERS = f"CASE WHEN abs({_APART}) < {LONGEST_SEQUENCE} THEN sequence({{0}}, {{1}}) END"
_STEPS = (
    f"CASE WHEN {_APART} * {{2}} BETWEEN 0 AND {LONGEST_SEQUENCE - 1} * CAST({{2}} AS DECIMAL(20, 0)) * {{2}}"
    " THEN sequence({0}, {1}, {2}) END"
)
_DAYS = f"CASE WHEN abs(datediff({{1}}, {{0}})) < {LONGEST_SEQUENCE} THEN sequence({{0}}, {{1}}) END"
_STEPS_OF_DAYS = (
    f"CASE WHEN datediff({{1}}, {{0}}) BETWEEN 0 AND {LONGEST_SEQUENCE - 1}L * {{2}}"
    " THEN sequence({0}, {1}, INTERVAL '{2}' DAY) END"
)
_STEPS_OF_SECONDS = (
    f"CASE WHEN unix_micros({{1}}) - unix_micros({{0}}) BETWEEN 0"
    f" AND {LONGEST_SEQUENCE - 1}000000 * CAST({{2}} AS DECIMAL(20, 0))"
    " THEN sequence({0}, {1}, INTERVAL '{2}' SECOND) END"
)


_AT_A_PATH = r"CASE WHEN NOT {1} RLIKE '\\[0*[1-9][0-9]{{18}}' THEN get_json_object({0}, {1}) END"
"""get_json_object() without the paths at which Spark raises: those with too large an index."""


def _f(
    names: str,
    takes: str,
    gives: Gives,
    above: str | None = None,
    why: str = "",
    below: str | None = None,
    *,
    above_only: bool = False,
) -> list[Function]:
    """The rows of an overload, one for each of its names, which `{name}` stands for in the templates."""
    why = why or ("" if above else "Postgres has no function that agrees")
    kinds = tuple(takes.split())
    return [
        Function(
            name,
            kinds,
            gives,
            above and above.replace("{name}", name),
            why,
            below and below.replace("{name}", name),
            above_only,
        )
        for name in names.split()
    ]


def _since_1970(per_second: int) -> str:
    """Spark SQL of the time of a number since 1970, or NULL outside of the years 1 to 9999, except for infinities."""
    first, end = -62_135_596_800 * per_second, 253_402_300_800 * per_second
    infinities = _infinities(per_second, "L", "TIMESTAMP '0000-12-31 00:00:00'", "TIMESTAMP '10000-01-01 00:00:00'")
    return f"CASE WHEN {{0}} BETWEEN {first}L AND {end - 1}L THEN {{name}}({{0}}){infinities} END"


_BEFORE, _AFTER = 9223372036832400000, 9223372036825200000
"""Debezium's microseconds for Postgres' infinite timestamps. The first is negated."""


def _infinities(per_second: int, suffix: str, before: str, after: str) -> str:
    """The branches for the two infinities, as a number of microseconds or in another unit."""

    def written(sign: str, micros: int) -> str:
        return ", ".join(f"{sign}{number}{suffix}" for number in sorted({micros, micros * per_second // 10**6}))

    return f" WHEN {{0}} IN ({written('', _AFTER)}) THEN {after} WHEN {{0}} IN ({written('-', _BEFORE)}) THEN {before}"


def _sequence(takes: str, of: Type) -> list[Function]:
    """The row of sequence() for bounds that a record may decide."""
    arguments, below = ("{0}, {1}, {2}", _STEPS) if takes.endswith("nonzero") else ("{0}, {1}", _NUMBERS)
    return _f("sequence", takes, _array_of(of), f"spark.sequence({arguments})", below=below, above_only=True)


def _of_lists(name: str, others: str, gives: Gives, above: str) -> list[list[Function]]:
    """The rows of a function of lists, for values that are equal if their JSON is. Spark's maps are never equal."""
    kind = "array" if name in ("array_append", "array_prepend", "array_compact") else "comparable"
    return [_f(name, f"plain {others}", gives, above), _f(name, f"{kind} {others}", gives, why=_NESTED)]


def _sorting(kind: str, upwards: str) -> list[list[Function]]:
    """The rows of a function that sorts a list, with NULLs at its end or beginning."""
    nulls_first = f"{upwards}({{0}}, nulls_first => true)"
    either_way = f"CASE WHEN {{1}} THEN {nulls_first} ELSE spark.reverse({nulls_first}) END"
    return [
        _f("array_max", kind, _element, f"({nulls_first} ->> -1)::{{element}}"),
        _f("array_min", kind, _element, f"({upwards}({{0}}) ->> 0)::{{element}}"),
        _f("array_sort", kind, "first", f"{upwards}({{0}})"),
        _f("sort_array", kind, "first", nulls_first),
        _f("sort_array", f"{kind} flag", "first", either_way),
    ]


def _time_field(names: str, expression: str) -> list[list[Function]]:
    """The rows of fields of a time, in UTC, for the three types of time."""
    return [
        _f(names, "date", INT, expression.replace("@", "{0}::timestamp")),
        _f(names, "timestamp_ntz", INT, expression.replace("@", "{0}")),
        _f(names, "timestamp", INT, expression.replace("@", "{0} AT TIME ZONE 'UTC'")),
    ]


def _rounding(name: str, of_decimals: str, of_doubles: str) -> list[list[Function]]:
    """The rows of rounding to places after the point, or before it if negative, by Postgres' functions."""
    return [
        _f(name, "integral natural?", "first", "{0}"),
        _f(name, "int whole", INT, f"spark.wrap_int({of_decimals}({{0}}::numeric, {{1}})::bigint)"),
        _f(name, "bigint whole", BIGINT, f"spark.wrap_bigint({of_decimals}({{0}}::numeric, {{1}}))"),
        _f(name, "integral whole", "first"),
        _f(name, "decimal", _rounded, f"{of_decimals}({{0}}, 0)"),
        _f(name, "decimal whole", _rounded, f"{of_decimals}({{0}}, {{1}})"),
        _f(name, "float whole?", FLOAT),
        _f(name, "double", DOUBLE, f"{of_doubles}({{0}}, 0)"),
        _f(name, "double whole", DOUBLE, f"{of_doubles}({{0}}, {{1}})"),
    ]


def _tried(name: str, operator: str) -> list[list[Function]]:
    """The rows of arithmetic on whole numbers that is NULL beyond their type."""
    return [
        _f(
            name,
            f"{kind.name.lower()} {kind.name.lower()}",
            kind,
            f"spark.within({{0}}::numeric {operator} {{1}}, {2 ** BITS[kind.name]}::numeric)::{kind.postgres}",
        )
        for kind in (TINYINT, SMALLINT, INT, BIGINT)
    ]


_BOTH_TIMES = "{0} AT TIME ZONE 'UTC', {1} AT TIME ZONE 'UTC'"
_MONTHS_ABOVE = "(extract(year FROM {0}) * 12 + extract(month FROM {0}) - 1)::bigint + {1} BETWEEN 12 AND 119999"
_MONTHS_BELOW = "year({0}) * 12L + month({0}) - 1 + {1} BETWEEN 12 AND 119999"
"""The condition that a date `{1}` months later is within the years 1 to 9999."""

_ENDLESS_ABOVE = ("timestamptz '-infinity'", "timestamptz 'infinity'")
_MICROS_ABOVE = (
    "CASE WHEN {0} BETWEEN -62135596800000000 AND 253402300799999999 THEN (timestamp '1970-01-01 00:00:00'"
    " + make_interval(days => ({0} / 86400000000)::integer) + ({0} % 86400000000) * interval '1 microsecond')"
    f" AT TIME ZONE 'UTC'{_infinities(10**6, '', *_ENDLESS_ABOVE)} END"
)
_SECONDS_ABOVE = (
    "CASE WHEN {0} BETWEEN -62135596800 AND 253402300799 THEN to_timestamp({0})"
    f"{_infinities(1, '', *_ENDLESS_ABOVE)} END"
)
_SECONDS_OF_CALENDAR = "{0} >= -62135596800 AND {0} < 253402300800"
_WEEKDAY = "strpos('MOTUWETHFRSASU', {1}) / 2"
_DAYS_APART = "({0} AT TIME ZONE 'UTC')::date - ({1} AT TIME ZONE 'UTC')::date"

_CONDITIONAL = [
    _f("coalesce", "common common*", "common", "coalesce({all})"),
    _f("nvl ifnull", "common common", "common", "coalesce({all})"),
    _f("nullif", "common common", "first", "nullif({0}, {1})"),
    _f("nvl2", "any common common", lambda t, _: t[1], "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END"),
    _f("if", "boolean common common", lambda t, _: t[1], "CASE WHEN {0} THEN {1} ELSE {2} END"),
    _f("greatest least", "ordered ordered ordered*", "common", "{name}({all})"),
    _f("isnull", "any", BOOLEAN, "{0} IS NULL"),
    _f("isnotnull", "any", BOOLEAN, "{0} IS NOT NULL"),
    _f("isnan", "double", BOOLEAN, "coalesce({0} = 'NaN'::double precision, false)"),
    _f("nanvl", "float float", FLOAT),
    _f("nanvl", "double double", DOUBLE, "CASE WHEN {0} = 'NaN'::double precision THEN {1} ELSE {0} END"),
    _f("equal_null", "ordered ordered", BOOLEAN, "{0} IS NOT DISTINCT FROM {1}"),
]

_MATH = [
    _f("abs", "bigint", BIGINT, "spark.absolute({0})"),
    _f("abs", "int", INT, "spark.wrap_int(abs({0}::bigint))"),
    _f("abs", "integral", "first"),
    _f("abs", "decimal", "first", "abs({0})"),
    _f("abs", "float", FLOAT),
    _f("abs", "double", DOUBLE, "abs({0})"),
    _f("positive", "numeric", "first", "{0}"),
    _f("sign signum", "double", DOUBLE, "spark.sign({0})"),
    _f("floor ceil ceiling", "integral", BIGINT, "{0}::bigint"),
    _f("floor", "decimal", _whole, "floor({0})"),
    _f("floor", "double", BIGINT, "spark.to_bigint(floor({0}))"),
    _f("ceil ceiling", "decimal", _whole, "ceil({0})"),
    _f("ceil ceiling", "double", BIGINT, "spark.to_bigint(ceil({0}))"),
    _f("floor ceil ceiling", "decimal whole", _rounded),
    *_rounding("round", "round", "spark.round"),
    *_rounding("bround", "spark.bround", "spark.bround"),
    _f("rint", "double", DOUBLE, "round({0}::double precision)"),
    _f("sqrt exp log10 sin cos tan asin acos", "double", DOUBLE, "spark.{name}({0})"),
    _f("sinh cosh tanh atan cbrt", "double", DOUBLE, "{name}({0})"),
    _f("ln log", "double", DOUBLE, "spark.ln({0})"),
    _f(
        "log",
        "double double",
        DOUBLE,
        "CASE WHEN spark.ln({0}) = 0 THEN spark.ln({1}) * 'Infinity'::double precision"
        " ELSE spark.ln({1}) / spark.ln({0}) END",
    ),
    _f("log2", "double", DOUBLE, "spark.ln({0}) / ln(2::double precision)"),
    _f("sec", "double", DOUBLE, "1 / spark.cos({0})"),
    _f("csc", "double", DOUBLE, "spark.inverse(spark.sin({0}))"),
    _f("cot", "double", DOUBLE, "spark.inverse(spark.tan({0}))"),
    _f("log1p expm1 asinh acosh atanh", "double", DOUBLE),
    _f("hypot", "double double", DOUBLE, "spark.hypot({0}, {1})"),
    _f("pow power", "double double", DOUBLE, "spark.power({0}, {1})"),
    _f("factorial", "int", BIGINT, "CASE WHEN {0} BETWEEN 0 AND 20 THEN factorial({0}::bigint)::bigint END"),
    _f("atan2", "double double", DOUBLE, "atan2({0}, {1})"),
    _f("radians", "double", DOUBLE, "spark.times({0}, pi() / 180)"),
    _f("degrees", "double", DOUBLE, "spark.times({0}, 180 / pi())"),
    _f("pi", "", DOUBLE, "pi()"),
    _f("e", "", DOUBLE, "exp(1::double precision)"),
    _f("width_bucket", "double double double positive", BIGINT, "spark.width_bucket({0}, {1}, {2}, {3})"),
    _f("shiftleft", "int int", INT, "{0}::integer << ({1} & 31)"),
    _f("shiftleft", "bigint int", BIGINT, "{0} << ({1} & 63)"),
    _f("shiftright", "int int", INT, "{0} >> ({1} & 31)"),
    _f("shiftright", "bigint int", BIGINT, "{0} >> ({1} & 63)"),
    _f("shiftrightunsigned", "int int", INT),
    _f("shiftrightunsigned", "bigint int", BIGINT),
    _f("bit_count", "bigint", INT, "bit_count({0}::bigint::bit(64))::integer"),
    _f("pmod", "tinyint tinyint", TINYINT),
    _f("pmod", "smallint smallint", SMALLINT),
    _f("pmod", "int int", INT, "spark.pmod({0}, {1})"),
    _f("pmod", "bigint bigint", BIGINT, "spark.pmod({0}, {1})"),
    *_tried("try_add", "+"),
    *_tried("try_subtract", "-"),
    *_tried("try_multiply", "*"),
    _f("bin", "bigint", STRING, "to_bin({0}::bigint)"),
    _f("conv", "text natural natural", STRING),
]

_TEXT = [
    _f("concat", "text text*", STRING, "{pipes}"),
    _f("concat_ws", "string text text*", STRING, "concat_ws({0}, {rest})"),
    _f("concat_ws", "literal printed", STRING, "coalesce(spark.array_join({1}, {0}), '')"),
    _f("concat_ws", "string texts texts*", STRING, why=_NESTED),
    _f("lower lcase", "string", STRING, "spark.lower({0})"),
    _f("upper ucase", "string", STRING, "spark.upper({0})"),
    _f("initcap", "string", STRING, why=_BYTES),
    _f("length len char_length character_length", "string", INT, "length({0})"),
    _f("octet_length bit_length", "string", INT, "{name}({0})"),
    _f("substring", "string positive", STRING, "substring({0} FROM {1})"),
    _f("substring", "string positive natural", STRING, "substring({0} FROM {1} FOR {2})"),
    _f("substring", "string natural", STRING, "substring({0} FROM greatest({1}, 1))"),
    _f("substring", "string natural natural", STRING, "substring({0} FROM greatest({1}, 1) FOR {2})"),
    _f("substring", "string negative", STRING, "right({0}, -{1})"),
    _f(
        "substring",
        "string int int?",
        STRING,
        why="a position that is negative or not a literal counts differently in Postgres",
    ),
    _f("left right", "string natural", STRING, "{name}({0}, {1})"),
    _f("left right", "string int", STRING, why="a length that is not a literal counts differently in Postgres"),
    _f("trim", "string", STRING, "btrim({0})"),
    _f("trim", "string string", STRING, "btrim({1}, {0})"),
    _f("btrim", "string string", STRING, "btrim({0}, {1})"),
    _f("ltrim rtrim", "string string", STRING, "{name}({1}, {0})"),
    _f("btrim ltrim rtrim", "string", STRING, "{name}({0})"),
    _f("replace", "string string string?", STRING, "replace({0}, {1}, {2:''})"),
    _f("reverse", "string", STRING, "reverse({0})"),
    _f("repeat", "string natural", STRING, "repeat({0}, {1})"),
    _f("lpad rpad", "string natural string", STRING, "{name}({0}, {1}, {2})"),
    _f("lpad rpad", "string natural", STRING, "{name}({0}, {1})"),
    _f("overlay", "string string positive", STRING, "overlay({0} PLACING {1} FROM {2})"),
    _f("overlay", "string string positive natural", STRING, "overlay({0} PLACING {1} FROM {2} FOR {3})"),
    _f("overlay", "string string int int?", STRING, why="a position that is not a literal differs in Postgres"),
    _f("format_number", "bigint whole", STRING, "spark.format_number({0}, {1})"),
    _f("format_number", "decimal whole", STRING, "spark.format_number({0}, {1})"),
    _f("format_number", "double whole", STRING),
    _f("instr", "string string", INT, "strpos({0}, {1})"),
    _f("locate position", "string string", INT, "strpos({1}, {0})"),
    _f("startswith", "string string", BOOLEAN, "starts_with({0}, {1})"),
    _f("endswith", "string string", BOOLEAN, "right({0}, length({1})) = {1}", ""),
    _f("contains", "string string", BOOLEAN, "strpos({0}, {1}) > 0"),
    _f("translate", "string string string", STRING, why="Postgres pairs the characters differently"),
    _f("ascii", "string", INT),
    _f("chr char", "integral", STRING),
    _f("printf format_string", "literal scalar*", STRING),
    _f("split_part", "string delimiter nonzero", STRING, "split_part({0}, {1}, {2})"),
    _f("split_part", "string string nonzero", STRING, why="an empty delimiter differs in Postgres"),
    _f(
        "substring_index",
        "string character natural",
        STRING,
        "array_to_string((string_to_array({0}, {1}))[:{2}], {1})",
    ),
    _f("substring_index", "string string whole", STRING),
    _f("find_in_set", "string string", INT),
    _f("locate", "string string int", INT),
    _f("levenshtein", "string string natural", INT),
    _f("soundex mask try_url_decode url_encode", "string", STRING),
    _f("luhn_check", "string", BOOLEAN),
    _f("space", "natural", STRING),
    _f("md5", "string", STRING, "md5({0})"),
    _f("sha1 sha", "string", STRING, why=_HASH),
    _f("sha2", "string natural", STRING, "spark.sha2({0}, {1})"),
    _f("crc32", "string", BIGINT, "crc32(convert_to({0}, 'UTF8'))"),
    _f("xxhash64", "scalar scalar*", BIGINT, why=_HASH),
    _f("hash", "scalar scalar*", INT, why=_HASH),
    _f("hex", "binary", STRING, why=_HASH),
    _f("hex", "string", STRING, "upper(encode(convert_to({0}, 'UTF8'), 'hex'))"),
    _f("hex", "bigint", STRING, "upper(to_hex({0}::bigint))"),
    _f("unhex", "string", BINARY, why=_HASH),
    _f("unbase64", "string", BINARY, why=_HASH, below="try_to_binary({0}, 'base64')"),
    _f("base64", "binary", STRING, why=_HASH),
    _f(
        "base64",
        "string",
        STRING,
        "replace(rtrim(encode(convert_to({0}, 'UTF8'), 'base64'), chr(10)), chr(10), chr(13) || chr(10))",
    ),
    _f(
        "regexp_extract",
        "string unambiguous natural?",
        STRING,
        "CASE WHEN {0} IS NOT NULL THEN coalesce(regexp_substr({0}, {1}, 1, 1, '', {2:1}), '') END",
    ),
    _f("regexp_extract", "string regex natural?", STRING, why=_PATTERNS),
    _f("regexp_replace", "string unambiguous replacement", STRING, "regexp_replace({0}, {1}, {2}, 'g')"),
    _f("regexp_replace", "string regex replacement", STRING, why=_PATTERNS),
    _f("regexp_like regexp rlike", "string translated", BOOLEAN, "{0} ~ {1}"),
    _f("regexp_like regexp rlike", "string regex", BOOLEAN, why=_PATTERNS),
    _f("regexp_count", "string unambiguous", INT, "regexp_count({0}, {1})"),
    _f("regexp_count", "string regex", INT, why=_PATTERNS),
    _f(
        "regexp_extract_all",
        "string unambiguous natural?",
        _array_of(STRING),
        "CASE WHEN {0} IS NOT NULL THEN (SELECT coalesce(jsonb_agg(coalesce(m[{2:1} + 1], '') ORDER BY n), '[]')"
        " FROM regexp_matches({0}, '(' || {1} || ')', 'g') WITH ORDINALITY AS f(m, n)) END",
    ),
    _f("regexp_extract_all", "string regex natural?", _array_of(STRING), why=_PATTERNS),
    _f("regexp_instr", "string regex", INT, why="Java counts in units of UTF-16"),
    _f("regexp_substr", "string unambiguous", STRING, "nullif(regexp_substr({0}, {1}), '')"),
    _f("regexp_substr", "string regex", STRING, why=_PATTERNS),
    _f("split", "string separator", _array_of(STRING), _SPLIT),
    _f("split", "string unambiguous", _array_of(STRING), "to_jsonb(regexp_split_to_array({0}, {1}))"),
    _f("split", "string regex integral?", _array_of(STRING), why=_PATTERNS),
    _f("parse_url", "string string string?", STRING),
    _f("get_json_object", "string path", STRING, why=_NESTED),
    _f("get_json_object", "string string", STRING, why=_NESTED, below=_AT_A_PATH),
    _f("from_json", "string schema", lambda _, literals: schema(literals[1] or "") or STRING, why=_NESTED),
    _f("json_array_length", "string", INT, why=_NESTED),
]

_TIME = [
    *_time_field("year quarter month day hour minute", "extract({name} FROM @)::integer"),
    *_time_field("dayofmonth", "extract(day FROM @)::integer"),
    *_time_field("dayofyear", "extract(doy FROM @)::integer"),
    *_time_field("dayofweek", "extract(dow FROM @)::integer + 1"),
    *_time_field("weekday", "extract(isodow FROM @)::integer - 1"),
    *_time_field("weekofyear", "extract(week FROM @)::integer"),
    *_time_field("second", "floor(extract(second FROM @))::integer"),
    _f("date_trunc", "unit timestamp", TIMESTAMP, "date_trunc({0}, {1}, 'UTC')"),
    _f("date_trunc", "unit timestamp_ntz", TIMESTAMP, "date_trunc({0}, {1} AT TIME ZONE 'UTC', 'UTC')"),
    _f("trunc", "date dateunit", DATE, "date_trunc({1}, {0}::timestamp)::date"),
    _f("to_date", "date parsed?", DATE, "{0}"),
    _f("to_date", "timestamp parsed?", DATE, "({0} AT TIME ZONE 'UTC')::date"),
    _f("to_date", "timestamp_ntz parsed?", DATE, "{0}::date"),
    _f("to_date", "string parsed?", DATE, why=_TEXT_TO_TIME),
    _f("to_timestamp", "timestamp", TIMESTAMP, "{0}"),
    _f("to_timestamp", "date", TIMESTAMP, "{0}::timestamp AT TIME ZONE 'UTC'"),
    _f("to_timestamp try_to_timestamp", "string parsed?", TIMESTAMP, why=_TEXT_TO_TIME),
    _f("date_add dateadd", "date int", DATE, "spark.date_add({0}, {1})"),
    _f("date_sub", "date int", DATE, "spark.date_add({0}, -{1}::bigint)"),
    _f("datediff date_diff", "date date", INT, "{0} - {1}"),
    _f("datediff date_diff", "timestamp timestamp", INT, _DAYS_APART),
    _f("add_months", "date whole", DATE, "spark.shifted({0}, make_interval(months => {1}))"),
    _f("last_day", "date", DATE, "(date_trunc('month', {0}::timestamp) + interval '1 month')::date - 1"),
    _f(
        "add_months",
        "date int",
        DATE,
        f"CASE WHEN {_MONTHS_ABOVE} THEN ({{0}} + make_interval(months => {{1}}))::date END",
        below=f"CASE WHEN {_MONTHS_BELOW} THEN add_months({{0}}, {{1}}) END",
    ),
    _f("months_between", "timestamp timestamp", DOUBLE, f"spark.months_between({_BOTH_TIMES})"),
    _f("months_between", "timestamp timestamp flag", DOUBLE, why="Postgres would round it to 8 digits"),
    _f(
        "next_day",
        "date weekday",
        DATE,
        f"spark.shown({{0}} + ({_WEEKDAY} - extract(isodow FROM {{0}})::integer + 7) % 7 + 1)",
    ),
    _f("dayname", "date", STRING, "to_char({0}, 'Dy')"),
    _f("monthname", "date", STRING, "to_char({0}, 'Mon')"),
    _f("make_date", "int int int", DATE, "spark.make_date({0}, {1}, {2})"),
    _f(
        "make_timestamp",
        "int int int int int double",
        TIMESTAMP,
        below="CASE WHEN {0} BETWEEN 1 AND 9999 THEN make_timestamp({0}, {1}, {2}, {3}, {4}, {5}) END",
    ),
    _f("date_format", "timestamp pattern", STRING, "to_char({0} AT TIME ZONE 'UTC', {1})"),
    _f("date_format", "timestamp_ntz pattern", STRING, "to_char({0}, {1})"),
    _f(
        "date_format",
        "timestamp format",
        STRING,
        why="this pattern has letters that Postgres' to_char writes differently",
    ),
    _f("unix_timestamp to_unix_timestamp", "timestamp", BIGINT, "trunc(extract(epoch FROM {0}))::bigint"),
    _f("unix_timestamp to_unix_timestamp", "string parsed?", BIGINT, why=_TEXT_TO_TIME),
    _f("unix_seconds", "instant", BIGINT, "floor(extract(epoch FROM {0}))::bigint"),
    _f("unix_millis", "instant", BIGINT, "floor(extract(epoch FROM {0}) * 1000)::bigint"),
    _f("unix_micros", "instant", BIGINT, "(extract(epoch FROM {0}) * 1000000)::bigint"),
    _f("unix_date", "day", INT, "{0} - date '1970-01-01'"),
    _f(
        "date_from_unix_date",
        "int",
        DATE,
        "CASE WHEN {0} BETWEEN -719162 AND 2932896 THEN date '1970-01-01' + {0} END",
        below="CASE WHEN {0} BETWEEN -719162 AND 2932896 THEN date_from_unix_date({0}) END",
    ),
    _f("from_unixtime", "bigint format?", STRING, why="there, date_format(timestamp_seconds(x), …) gives the same"),
    _f("timestamp_seconds", "bigint", ENDLESS, _SECONDS_ABOVE, below=_since_1970(1)),
    _f(
        "timestamp_seconds",
        "decimal",
        TIMESTAMP,
        below=f"CASE WHEN {_SECONDS_OF_CALENDAR} THEN timestamp_micros(CAST({{0}} * 1000000 AS BIGINT)) END",
    ),
    _f(
        "timestamp_seconds",
        "double",
        TIMESTAMP,
        below=f"CASE WHEN {_SECONDS_OF_CALENDAR} THEN timestamp_seconds({{0}}) END",
    ),
    _f("timestamp_millis", "bigint", ENDLESS, below=_since_1970(1000)),
    _f("timestamp_micros", "bigint", ENDLESS, _MICROS_ABOVE, below=_since_1970(10**6)),
    _f("from_utc_timestamp to_utc_timestamp", "timestamp zone", TIMESTAMP, why=_ZONES),
    _f(
        "from_utc_timestamp to_utc_timestamp",
        "timestamp computed",
        TIMESTAMP,
        why=_ZONES,
        below="try_add({name}({0}, {1}), INTERVAL 0 SECONDS)",  # NULL for an unknown zone, at which Spark raises
    ),
]

_NESTED_VALUES = [
    _f("to_json", "struct", STRING, why=_NESTED),
    _f("to_json", "array", STRING, why=_NESTED),
    _f("to_json", "map", STRING, why=_NESTED),
    _f("array", "", _array_of(VOID), "jsonb_build_array()"),
    _f("array", "common common*", lambda t, _: _array_of(t[0]), "jsonb_build_array({inside})"),
    _f("sequence", "natural natural", _array_of(INT), "spark.sequence({0}, {1})", below=_NUMBERS),
    _f("sequence", "day day", _array_of(DATE), "spark.days({0}, {1})", below=_DAYS),
    _f("sequence", "day day positive", _array_of(DATE), "spark.days({0}, {1}, {2})", below=_STEPS_OF_DAYS),
    _f(
        "sequence",
        "instant instant positive",
        _array_of(TIMESTAMP),
        "spark.instants({0}, {1}, {2})",
        below=_STEPS_OF_SECONDS,
        above_only=True,
    ),
    _sequence("int int", INT),
    _sequence("bigint bigint", BIGINT),
    _f("sequence", "natural natural positive", _array_of(INT), "spark.sequence({0}, {1}, {2})", below=_STEPS),
    _sequence("int int nonzero", INT),
    _sequence("bigint bigint nonzero", BIGINT),
    _f("size cardinality", "array", INT, "coalesce(jsonb_array_length({0}), -1)"),
    _f("size", "map", INT, why=_NESTED),
    _f("array_size", "array", INT, "jsonb_array_length({0})"),
    _f("array_join", "printed literal literal?", STRING, "spark.array_join({0}, {1}, {2:NULL})"),
    _f("array_join", "listed literal literal?", STRING, why=_NESTED),
    *_sorting("plain", "spark.array_sort"),
    *_sorting("doubles", "spark.array_sort_numbers"),
    *_sorting("times", "spark.array_sort_times"),
    _f("array_max array_min", "comparable", _element, why=_NESTED),
    _f("array_sort", "comparable", "first", why=_NESTED),
    _f("sort_array", "comparable flag?", "first", why=_NESTED),
    *_of_lists("array_contains", "element", BOOLEAN, "spark.array_contains({0}, to_jsonb({1}::{element}))"),
    *_of_lists("array_position", "element", BIGINT, "spark.array_position({0}, to_jsonb({1}::{element}))"),
    *_of_lists("array_distinct", "", "first", "spark.array_distinct({0})"),
    *_of_lists("array_union", "same", "first", "spark.array_distinct({0} || {1})"),
    *_of_lists("array_intersect", "same", "first", "spark.array_distinct(spark.array_among({0}, {1}, true))"),
    *_of_lists("array_except", "same", "first", "spark.array_distinct(spark.array_among({0}, {1}, false))"),
    *_of_lists("arrays_overlap", "same", BOOLEAN, "spark.arrays_overlap({0}, {1})"),
    *_of_lists("array_append", "element", "first", "{0} || jsonb_build_array({1}::{element})"),
    *_of_lists("array_prepend", "element", "first", "jsonb_build_array({1}::{element}) || {0}"),
    *_of_lists("array_remove", "element", "first", "spark.array_among({0}, '[]' || to_jsonb({1}::{element}), false)"),
    *_of_lists("array_compact", "", "first", "spark.array_among({0}, '[null]', false)"),
    _f("array_insert", "array nonzero element", "first", why=_NESTED),
    _f("array_repeat", "scalar natural", lambda t, _: _array_of(t[0]), why=_NESTED),
    _f("concat", "array same*", "first", "{pipes}"),
    _f("flatten", "arrays", _element, why=_NESTED),
    _f("reverse", "array", "first", "spark.reverse({0})"),
    _f("slice", "array nonzero natural", "first", "spark.slice({0}, {1}, {2})"),
    _f("element_at try_element_at", "scalars positive", _element, "({0} ->> {1} - 1)::{element}"),
    _f("element_at try_element_at", "scalars negative", _element, "({0} ->> {1})::{element}"),
    _f("element_at try_element_at", "structs positive", _element, "nullif({0} -> {1} - 1, 'null')"),
    _f("element_at try_element_at", "structs negative", _element, "nullif({0} -> {1}, 'null')"),
    _f("element_at try_element_at", "array nonzero", _element, why=_NESTED),
    _f("element_at try_element_at", "map key", _element, why=_NESTED),
    _f("get", "scalars natural", _element, "({0} ->> {1})::{element}"),
    _f("get", "structs natural", _element, "nullif({0} -> {1}, 'null')"),
    _f("get", "array int", _element, why=_NESTED),
    _f("map_keys", "map", lambda t, _: _array_of(t[0].key or STRING), why=_NESTED),
    _f("map_values", "map", lambda t, _: _array_of(t[0].element or STRING), why=_NESTED),
    _f("map_contains_key", "map key", BOOLEAN, why=_NESTED),
    _f("map_entries", "map", _entries, why=_NESTED),
]

_TABLE = [row for rows in (*_CONDITIONAL, *_MATH, *_TEXT, *_TIME, *_NESTED_VALUES) for row in rows]

FUNCTIONS: dict[str, tuple[Function, ...]] = {
    name: tuple(row for row in _TABLE if row.name == name) for name in dict.fromkeys(row.name for row in _TABLE)
}
"""Every function by name, with its overloads in the order of trial."""

_REFUSED = (
    (
        "changes with the moment at which it runs",
        "Write now(), or current_date(), which are those of the moment at which the view is read.",
        "current_timezone current_time getdate sysdate",
    ),
    (
        "gives another value each time it runs",
        "Use a function of the record, for example md5(event_id), kafka_offset or pmod(hash(id), 10) = 0.",
        "rand random randn uuid shuffle randstr uniform",
    ),
    (
        "depends on how Spark happens to split the records",
        "Use kafka_partition and kafka_offset.",
        "monotonically_increasing_id spark_partition_id input_file_name input_file_block_start input_file_block_length",
    ),
    (
        "depends on who runs it",
        "Write the value itself.",
        "current_user user session_user current_database current_schema current_catalog version",
    ),
    ("runs code that cannot be checked", "Use SQL functions.", "java_method reflect try_reflect"),
)

NON_DETERMINISTIC: dict[str, tuple[str, str]] = {
    name: (why, way_out) for why, way_out, names in _REFUSED for name in words(names)
}
"""Functions whose value changes over time, with the reason and the way out."""


_Row = TypeVar("_Row")


def _by_word(table: Mapping[str, _Row]) -> dict[str, _Row]:
    """A table with an entry for each word of another table's keys.

    >>> _by_word({"hop hopping": "window()"})
    {'hop': 'window()', 'hopping': 'window()'}
    """
    return {word: row for several, row in table.items() for word in several.split()}


UNBOUNDED = {
    "levenshtein": (
        "of two texts takes hours if a record holds two of megabytes",
        "Write levenshtein(a, b, 10), which stops at the bound and is then -1.",
    )
}
"""Functions that need a literal last argument to stay quick, with the reason and the way out."""

FOREIGN = _by_word(
    {
        "arg_max argmax latest": "max_by(x, y)",
        "arg_min argmin earliest": "min_by(x, y)",
        "latest_by_offset": "last(x), which goes by the order of events",
        "earliest_by_offset": "first(x), which goes by the order of events",
        "group_concat groupconcat list_agg wm_concat": "listagg(x, ',') WITHIN GROUP (ORDER BY x)",
        "count_distinct uniq uniq_exact": "count(DISTINCT x)",
        "approx_distinct hll_count_distinct approx_count ndv": "approx_count_distinct(x)",
        "time_bucket date_bin tumble tumbling tumble_start": "window(ts, '15 minutes').start",
        "hop hopping hop_start slide_start": "window(ts, '1 hour', '5 minutes').start",
        "session": "session_window(ts, '30 minutes')",
        "tumble_end": "window(ts, '15 minutes').end",
        "hop_end slide_end": "window(ts, '1 hour', '5 minutes').end",
        "session_start": "session_window(ts, '30 minutes').start",
        "session_end": "session_window(ts, '30 minutes').end",
        "split_index": "split_part(x, ',', 1), which counts from 1",
        "map_agg object_agg jsonb_object_agg": "map_from_entries(collect_list(struct(k, x)))",
        "map_from_arrays": "map_from_entries(transform(keys, (k, i) -> struct(k, get(list, i))))",
        "map_concat": "map_from_entries(concat(map_entries(a), map_entries(b)))",
        "transform_keys": "map_from_entries(transform(map_entries(m), e -> struct(upper(e.key), e.value)))",
        "map_zip_with": "map_from_entries(transform(map_entries(a), e -> struct(e.key, e.value + b[e.key])))",
        "histogram": "map_from_entries(collect_list(struct(x, n))) over a subquery that counts them by GROUP BY x",
        "quantile quantile_cont quantiles": "percentile(x, 0.9)",
        "approx_quantile approx_quantiles": "percentile_approx(x, 0.9)",
        "logical_or boolor_agg": "bool_or(x)",
        "logical_and booland_agg": "bool_and(x)",
        "arbitrary": "any_value(x)",
        "row": "struct(a, b)",
        "ratio_to_report": "x / sum(x) OVER ()",
        "conditional_change_event conditional_true_event": "sum(CASE WHEN a THEN 1 ELSE 0 END) OVER (ORDER BY ts)",
        "topk top_k": "slice(sort_array(collect_list(x), false), 1, 3)",
        "jsonb_agg json_agg group_array": "collect_list(x)",
        "string_to_array string_split": "split(x, ',')",
        "to_char to_varchar": "format_number(x, 2), or to_char(ts, 'yyyy-MM-dd') of a time",
        "strpos": "instr(text, part)",
        "collate": "lower(x), to ignore case: texts are compared by their bytes",
        "array_length": "size(x)",
        "unnest": "LATERAL VIEW explode(tags) t AS tag",
        "generate_series": "explode(sequence(1, 10))",
        "json_extract json_extract_scalar json_extract_string parse_json variant_get": "get_json_object(x, '$.a')",
        "json_extract_path_text jsonb_extract_path_text extractjsonfield": "get_json_object(x, '$.a')",
        "json_value json_query": "get_json_object(x, '$.a')",
        "json_object_keys json_keys": "map_keys(from_json(x, 'MAP<STRING, STRING>'))",
        "url_decode": "try_url_decode(x)",
        "try_parse_url url_extract_host domain": "parse_url(x, 'HOST')",
        "str_to_map": "nullif(regexp_extract(x, 'a=([^&]*)', 1), '') for one value, or for all of them"
        " map_from_entries(transform(split(x, '&'), e -> struct(split_part(e, '=', 1), split_part(e, '=', 2))))",
        "convert_timezone": "from_utc_timestamp(ts, 'Europe/Paris') of a time in UTC,"
        " or to_utc_timestamp(ts, 'Europe/Paris') of a local one",
        "make_interval make_dt_interval": "n * INTERVAL 1 SECOND, or add_months(d, n) of a date",
        "age": "a - b",
        "mz_now proctime getdate sysdate systimestamp unix_now": "now()",
        "to_timestamp_ltz": "timestamp_millis(x), or timestamp_seconds(x)",
        "stringtotimestamp stringtodate": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss'), or to_date(x)",
        "timestamptostring datetostring": "date_format(timestamp_millis(x), 'yyyy-MM-dd')",
        "strftime format_date format_timestamp format_datetime": "date_format(ts, 'yyyy-MM-dd')",
        "strptime parse_date date_parse": "to_date(x, 'yyyy-MM-dd')",
        "parse_timestamp to_timestamp_ntz": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
        "timestamp_diff datetime_diff": "timestampdiff(DAY, begin, end)",
        "timestamp_trunc datetime_trunc": "date_trunc('day', ts)",
        "to_unixtime epoch": "unix_timestamp(ts)",
        "epoch_ms": "unix_millis(ts)",
        "safe_divide div0": "try_divide(a, b)",
        "regexp_contains": "x RLIKE 'a|b'",
        "regexp_match": "regexp_extract(x, 'a(b)', 1)",
        "regexp_matches": "regexp_extract_all(x, 'a(b)', 1)",
        "truncate": "CAST(x AS BIGINT), or date_trunc('day', ts) of a time",
        "generate_date_array": "explode(sequence(DATE '2024-01-01', DATE '2024-12-31'))",
        "iif iff": "if(a, b, c)",
        "to_number try_to_number": "CAST(x AS DECIMAL(18, 2))",
        "elt": "CASE n WHEN 1 THEN a WHEN 2 THEN b END",
        "getbit bit_get": "shiftright(x, n) & 1",
        "ilike": "x ILIKE 'a%'",
        "like": "x LIKE 'a%'",
        "div": "a DIV b",
        "arrays_zip": "transform(a, (x, i) -> struct(x, get(b, i))), which is as long as a",
        "binary to_binary try_to_binary": "unbase64(x), unhex(x) or encode(x, 'UTF-8')",
        "schema_of_json schema_of_csv": "the schema as a text: from_json(x, 'a INT, b STRING')",
        "as_value": "the column under another name: k AS k2",
        "array_any any_match list_contains": "exists(x, e -> e > 1), or array_contains(x, 1)",
        "zeroifnull": "coalesce(x, 0)",
        "countif": "count_if(x)",
        "sumif": "sum(x) FILTER (WHERE a)",
    }
)
"""Functions of other systems, with their equivalents here."""

COLUMNS = _by_word(
    {
        "grouping__id": "grouping_id()",
        "window_start windowstart": "window(ts, '15 minutes').start, and group by window(ts, '15 minutes')",
        "window_end windowend": "window(ts, '15 minutes').end, and group by window(ts, '15 minutes')",
        "rowtime": "kafka_timestamp, or the column that event_time names",
        "rowkey": "decode(kafka_key, 'UTF-8')",
        "rowpartition": "kafka_partition",
        "rowoffset": "kafka_offset",
        "array": "array(a, b)",
        "map": "map('a', x)",
        "rownum rowid _row_number": "row_number() OVER (ORDER BY ts)",
    }
)
"""Pseudo-columns of other systems, with their equivalents here."""

GENERATORS = words("explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple")
"""Functions that return several rows for one. Those with `_outer` return one row for an empty value."""


WINDOWED = words("tumble hop hopping tumbling cumulate session time_bucket")
"""Other systems' functions in FROM that put records into windows."""


def instead_of_rows(name: str) -> str:
    """The way out for a function of rows in a place that does not allow it."""
    return f"Write {FOREIGN.get(name.lower(), 'LATERAL VIEW explode(tags) t AS tag')}."


@dataclass(frozen=True)
class WindowFunction:
    """A function that needs OVER (…).

    gives: the type of its result
    arguments: the fewest and the most
    frame: the only frame that Spark allows, empty for none. None: any
    """

    gives: Gives
    arguments: tuple[int, int] = (0, 0)
    frame: str | None = None


_SO_FAR = "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
WINDOW_FUNCTIONS = _by_word(
    {
        "row_number rank dense_rank": WindowFunction(INT, frame=f"ROWS {_SO_FAR}"),
        "ntile": WindowFunction(INT, (1, 1), f"ROWS {_SO_FAR}"),
        "percent_rank": WindowFunction(DOUBLE, frame=f"ROWS {_SO_FAR}"),
        "cume_dist": WindowFunction(DOUBLE, frame=f"RANGE {_SO_FAR}"),
        "lag lead": WindowFunction("first", (1, 3), ""),
        "first_value last_value": WindowFunction("first", (1, 1)),
        "nth_value": WindowFunction("first", (2, 2)),
    }
)
"""Every window function by name."""
