"""Resolves calls to the first row of the function table that accepts the arguments, with Spark's casts.

A format of printf() or format_string() must fit its arguments, because Java raises at one that does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from view_algebra.language.calendar_bounds import KEEPS, MOVES, finite
from view_algebra.language.endless_regexes import endless
from view_algebra.language.expressions import Call, Constant, Expr, Field, Place
from view_algebra.language.functions import FOREIGN, FUNCTIONS, NON_DETERMINISTIC, UNBOUNDED, Function
from view_algebra.language.literals import LITERALS, as_literal, as_python, computed_literal, is_regex
from view_algebra.language.meeting import as_time, cast, meet, refuse_another_day
from view_algebra.language.quoting import words
from view_algebra.language.types import (
    BOOLEAN,
    CALENDAR,
    DATE,
    DOUBLE,
    INT,
    INTEGRAL,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    WINDOW,
    Type,
)
from view_algebra.refusals import Wrong, suggestion

_CONVERSION = re.compile(r"%(?P<how>[^a-zA-Z%]*)(?P<letter>[a-zA-Z%]?)")

_WIDTH = r"(0?[1-9]\d{0,2}|-[1-9]\d{0,2})?"
_HOW = {
    "s": r"(-?[1-9]\d{0,2})?(\.\d{1,3})?",
    "d": rf"[,+]?{_WIDTH}",
    "x": _WIDTH,
    "f": rf"[,+]?{_WIDTH}(\.\d{{1,2}})?",
    "e": rf"\+?{_WIDTH}(\.\d{{1,2}})?",
    "%": "",
}
"""The characters allowed between % and the letter of a conversion."""


def _takes(letter: str, kind: Type) -> bool:
    """True if Java accepts the value that Spark passes. It does not know Spark's DECIMAL."""
    if letter == "s":
        return kind.integral or kind.name in ("STRING", "BOOLEAN", "DOUBLE", "FLOAT", "VOID")
    return kind.integral if letter in "dx" else kind.name in ("DOUBLE", "FLOAT")


def refuse_format(name: str, arguments: Sequence[Expr], place: Place) -> None:
    """Raises `Wrong` for a format that could raise, because no record may stop a stream."""
    text = arguments[0].value or "" if isinstance(arguments[0], Constant) else ""
    place, values = arguments[0].place or place, list(arguments[1:])
    for conversion in _CONVERSION.finditer(text):
        letter = conversion["letter"]
        if letter not in _HOW or re.fullmatch(_HOW[letter], conversion["how"]) is None:
            way_out = "There are %s, %d, %x, %f and %e, as in '%05d' and '%.2f', and %% for %."
            raise Wrong(place, f"{name}() does not take {conversion[0]!r}", way_out)
        if letter == "%":
            continue
        if not values:
            raise Wrong(place, f"{name}() has no value for {conversion[0]!r}", "Give as many values as it has signs.")
        value = values.pop(0)
        if not _takes(letter, value.type):
            wanted = {"s": STRING, "d": "BIGINT", "x": "BIGINT"}.get(letter, "DOUBLE")
            raise Wrong(
                value.place or place,
                f"{conversion[0]!r} of {name}() does not take {value.type}",
                f"Write CAST(… AS {wanted}).",
            )


def call(name: str, arguments: Sequence[Expr], place: Place = None) -> Expr:
    """A call of the first overload that accepts the typed arguments.

    >>> from view_algebra.language.types import INT, decimal
    >>> call("round", [Constant("1.25", decimal(3, 2)), Constant("1", INT)]).type.spark
    'DECIMAL(3,1)'
    """
    name = name.lower()
    if name not in KEEPS and name not in MOVES:
        arguments = [finite(argument) if argument.type.endless else argument for argument in arguments]
    if name in NON_DETERMINISTIC:
        why, way_out = NON_DETERMINISTIC[name]
        raise Wrong(place, f"{name}() {why}", way_out)
    overloads = FUNCTIONS.get(name)
    if overloads is None:
        way_out = f"Write {FOREIGN[name]}." if name in FOREIGN else suggestion(name, FUNCTIONS)
        raise Wrong(place, f"there is no function {name}()", way_out)
    if name in _READS_TIMES and len(arguments) == 1:
        refuse_another_day(arguments[0])
    for converted, exactly in ((False, True), (False, False), (True, False)):
        for row in overloads:
            taken = _taken(row, _read_as_wanted(row, arguments) if converted else arguments, exactly, place)
            if taken is not None:
                literals = [a.value if isinstance(a, Constant) else None for a in taken]
                if name in ("regexp_replace", "regexp_extract", "regexp_extract_all"):
                    _refuse_groups(name, literals, taken[-1].place or place)
                if name in ("printf", "format_string"):
                    refuse_format(name, taken, place)
                return Call(name, taken, _result_type(row, taken, literals), place=place)
    if (computed := [*map(computed_literal, arguments)]) != [*arguments]:
        return call(name, computed, place)
    _refuse_literals(name, overloads, arguments)
    if name in UNBOUNDED and len(arguments) == len(overloads[0].takes) - 1:
        why, way_out = UNBOUNDED[name]
        raise Wrong(place, f"{name}() {why}", way_out)
    shown = ", ".join(str(a.type) for a in arguments)
    wanted = " or ".join(sorted({f"{name}({', '.join(map(_in_words, row.takes))})" for row in overloads}))
    raise Wrong(place, f"{name}({shown}) does not exist", _cast_way_out(name, wanted, arguments))


def _cast_way_out(name: str, wanted: str, arguments: Sequence[Expr]) -> str:
    """The way out for a call with arguments of wrong types."""
    if any(argument.type.name == "BINARY" for argument in arguments):
        of_any = "length(hex(x)) div 2 for the number of bytes" if "length" in name else f"{name}(hex(…))"
        return f"Write {name}(decode(…, 'UTF-8')) if the bytes are a text, or {of_any}."
    if name in _OF_DAYS and arguments and arguments[-1].type == INTERVAL:
        return f"Write d {_OF_DAYS[name]} INTERVAL 7 DAYS."
    if name in ("to_timestamp", "to_date", "date_trunc", "date_format") and any(e.type.numeric for e in arguments):
        cast_ = "timestamp_millis(n) of milliseconds, or CAST(n AS TIMESTAMP) of seconds"
        return f"There is {wanted}. A number is a time as {cast_}."
    return f"There is {wanted}. Write the cast that you mean: CAST(… AS …)."


_OF_DAYS = {"date_add": "+", "dateadd": "+", "date_sub": "-"}
"""Functions that take a number of days, with the operator for an INTERVAL instead."""


def _in_words(kind: str) -> str:
    """A kind of argument in plain words.

    >>> _in_words("plain"), _in_words("common*"), _in_words("double"), _in_words("whole?")
    ('array without maps', 'value, …', 'double', 'number?')
    """
    single = kind.rstrip("*?")
    return _WORDS.get(single, single) + (", …" if kind.endswith("*") else kind[len(single) :])


_WORDS = {
    **dict.fromkeys(("any", "common", "ordered", "scalar"), "value"),
    **{kind: "number" for kind, row in LITERALS.items() if row.type == INT},
    **dict.fromkeys(("text", "texts", "literal"), "text"),
    **dict.fromkeys(("translated", "unambiguous"), "regex"),
    "parsed": "format",
    "structs": "array of structs",
    "arrays": "array of arrays",
    **dict.fromkeys(("comparable", "plain", "printed", "doubles", "times", "scalars"), "array without maps"),
    **dict.fromkeys(("listed", "same"), "array"),
}


def _read_as_wanted(row: Function, arguments: Sequence[Expr]) -> Sequence[Expr]:
    """Converts arguments to text if a function only accepts texts, as in `upper(id)`, and texts to its other types."""
    kinds = _kinds(row, len(arguments))
    if kinds is None or row.name in _KEEPS_TYPES:
        return arguments
    read: list[Expr] = []
    for argument, kind in zip(arguments, kinds, strict=True):
        if kind in ("string", "text", "texts"):
            read.append(text_of(argument))
        else:
            read.append(cast(argument, _OF_TEXTS[kind]) if argument.type == STRING and kind in _OF_TEXTS else argument)
    return read


_OF_TEXTS = {"double": DOUBLE, "date": DATE}
"""Types that Spark converts a text to for a function. From `12:30` it would make a timestamp of the current day."""


def text_of(value: Expr) -> Expr:
    """The text that Spark makes of a number, a time or a boolean where it expects a text."""
    read = value.type.numeric or value.type in (BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return cast(value, STRING) if read else value


_KEEPS_TYPES = words(
    "md5 sha sha1 sha2 crc32 base64 unbase64 hex unhex to_date to_timestamp try_to_timestamp unix_timestamp"
    " to_unix_timestamp timestamp_seconds"
    " hour minute second get_json_object from_json json_array_length json_tuple soundex mask format_number parse_url"
)
"""Functions for which Spark does not convert a number to text, or that read texts in their own way."""


_READS_TIMES = words("to_date to_timestamp try_to_timestamp hour minute second")
"""Functions that read a text without a pattern like a cast to a time."""


def _refuse_groups(name: str, literals: Sequence[str | None], place: Place) -> None:
    """Refuses a group that the pattern does not have, such as `$2`, because it would stop a stream."""
    groups = re.compile(as_python(literals[1] or "")).groups
    third = literals[2] if len(literals) > 2 else "1"
    for number in re.findall(r"\$(\d)", third or "") if name == "regexp_replace" else [third or ""]:
        if int(number) > groups:
            what, way_out = f"${number}", "Put a group into parentheses."
            if name != "regexp_replace":
                what, way_out = f"group {number}", f"Put a group into parentheses, or write {name}(x, '…', 0)."
            raise Wrong(place, f"the pattern has no {what}", way_out)


def _refuse_literals(name: str, overloads: Sequence[Function], arguments: Sequence[Expr]) -> None:
    """Refuses the wrong literal, if the types are right."""
    for row in overloads:
        for taken, argument in zip(row.takes, arguments, strict=False):
            kind = taken.rstrip("?")
            wanted = LITERALS.get(kind)
            if wanted is None or not wanted.name:
                continue
            if argument.type != wanted.type and not (argument.type.integral and wanted.type.integral):
                continue
            if not isinstance(argument, Constant):
                what = f"{name}() takes only a literal {wanted.name}"
                raise Wrong(argument.place, what, _case_way_out(name, wanted.example, arguments, argument))
            if not wanted.instead:
                continue
            if kind == "regex":
                _refuse_endless(argument)
            if wanted.reads(argument.value or "") is None:
                reason = f"{argument.value!r} is not a {wanted.name} that Spark is sure to take"
                raise Wrong(argument.place, reason, _instead_of(kind, name, argument.value or "", arguments[0]))


def _case_way_out(name: str, literal: str, arguments: Sequence[Expr], chosen: Expr) -> str:
    """A CASE over the literals that a record may choose from, with an example as the first."""
    texts = ", ".join(literal if argument is chosen else _shown(argument) for argument in arguments)
    return f"Write CASE {_shown(chosen)} WHEN {literal} THEN {name}({texts}) END, with a WHEN for each that there is."


def _shown(argument: Expr) -> str:
    """An argument in the author's form, if it is a column or a plain literal."""
    if isinstance(argument, Field):
        return ".".join(argument.path)
    if isinstance(argument, Call) and argument.function == "cast":
        inner = _shown(argument.arguments[0])
        return inner if argument.implicit else f"CAST({inner} AS {argument.type.spark})"
    if not isinstance(argument, Constant):
        return "x"
    return f"'{argument.value}'" if argument.type == STRING else str(argument.value)


def _instead_of(kind: str, name: str, literal: str, of: Expr) -> str:
    """The way out for a literal that Spark may refuse while it runs, which would stop the stream."""
    in_spark, wanted = literal.translate(_AS_OTHERS_WRITE), LITERALS[kind]
    if kind in ("format", "parsed") and in_spark != literal and wanted.reads(in_spark) is not None:
        return f"Write '{in_spark}': M is a month, m a minute, d a day and y a year."
    if kind == "format" and "w" in literal.lower():
        return "Write concat(EXTRACT(YEAROFWEEK FROM ts), '-W', lpad(weekofyear(ts), 2, '0')) for a week of ISO's."
    rest = re.sub(r"^E+,? *", "", literal)
    if kind == "parsed" and rest != literal and wanted.reads(rest) is not None:
        written = rest.replace("'", "\\'")
        return f"Write {name}(regexp_replace({_shown(of)}, '^[A-Za-z]+,? *', ''), '{written}')."
    return wanted.instead


_AS_OTHERS_WRITE = str.maketrans({"Y": "y", "D": "d"})
"""Pattern letters of Postgres, Oracle and Snowflake that mean other fields in Spark."""


def _refuse_endless(regex: Constant) -> None:
    """Refuses a repeated group in which a long text could overflow Java's stack or take exponential time."""
    repetition = endless(regex.value or "") if is_regex(regex.value or "") else None
    if repetition is not None:
        reason = f"the group {repetition.text} repeats in many ways: a long text overflows Java's stack, or never ends"
        keeps = " It keeps what it took, so name what a round holds: [^,]* for .*, and nothing that may come next."
        raise Wrong(regex.place, reason, f"Write {repetition.instead}.{'' if repetition.instead[0] == '[' else keeps}")


def overload(expression: Call) -> Function | None:
    """The row of the function table that a call was resolved to."""
    for exactly in (True, False):
        for row in FUNCTIONS.get(expression.function, ()):
            if _taken(row, expression.arguments, exactly, None) is not None:
                return row
    return None


def _result_type(row: Function, arguments: Sequence[Expr], literals: Sequence[str | None]) -> Type:
    types = [a.type for a in arguments]
    if isinstance(row.gives, Type):
        kind = row.gives
    else:
        kind = types[0] if isinstance(row.gives, str) else row.gives(types, literals)
    kept = row.name in KEEPS and kind.name in CALENDAR and any(one.endless for one in types)
    return replace(kind, endless=True) if kept else kind


def _taken(row: Function, arguments: Sequence[Expr], exactly: bool, place: Place) -> tuple[Expr, ...] | None:
    """The arguments in the form that the row takes, or None if it does not accept them."""
    kinds = _kinds(row, len(arguments))
    if kinds is None:
        return None
    taken = (_as_kind(a, kind, exactly) for a, kind in zip(arguments, kinds, strict=True))
    result = [argument for argument in taken if argument is not None]
    if len(result) < len(kinds):
        return None
    for position, kind in enumerate(kinds):
        first = result[0].type
        wanted = {"element": first.element, "key": first.key, "same": first}.get(kind, result[position].type)
        if wanted is not None and wanted.integral and result[position].type.integral and not exactly:
            result[position] = _safely(result[position], wanted.name) or result[position]
        if result[position].type != wanted:
            return None
    shared = [i for i, kind in enumerate(kinds) if kind in ("common", "ordered")]
    if shared:
        try:
            met = meet([result[i] for i in shared], place, f"{row.name}()", texts="common" in kinds)
        except Wrong:
            return None
        for i, expression in zip(shared, met, strict=True):
            result[i] = expression
    return tuple(result)


def _kinds(row: Function, count: int) -> list[str] | None:
    """The kinds of `count` arguments, or None if the row does not accept as many."""
    kinds: list[str] = []
    for kind in row.takes:
        if kind.endswith("*"):
            kinds += [kind[:-1]] * (count - len(kinds))
        elif not kind.endswith("?") or len(kinds) < count:
            kinds.append(kind.rstrip("?"))
    return kinds if len(kinds) == count else None


def _is_list_of(kind: Type, wanted: Callable[[Type], bool]) -> bool:
    return kind.name == "ARRAY" and kind.element is not None and wanted(kind.element)


def _is_printed(kind: Type) -> bool:
    """True if both engines write its values as the same text."""
    return kind.integral or kind in (STRING, BOOLEAN, DATE)


_SHAPES: dict[str, Callable[[Type], bool]] = {
    **dict.fromkeys(("any", "common", "element", "key", "same"), lambda _: True),
    "integral": lambda kind: kind.integral,
    "ordered": lambda kind: "MAP<" not in kind.spark,
    "day": lambda kind: kind == DATE,
    "instant": lambda kind: kind == TIMESTAMP,
    "numeric": lambda kind: kind.numeric,
    "array": lambda kind: kind.name == "ARRAY",
    "comparable": lambda kind: kind.name == "ARRAY" and "MAP<" not in kind.spark,
    "listed": lambda kind: _is_list_of(kind, lambda of: not of.nested),
    "plain": lambda kind: _is_list_of(kind, lambda of: _is_printed(of) or of.name == "DECIMAL"),
    "printed": lambda kind: _is_list_of(kind, _is_printed),
    "doubles": lambda kind: _is_list_of(kind, lambda of: of.name in ("DOUBLE", "FLOAT")),
    "scalars": lambda kind: any(_SHAPES[shape](kind) for shape in ("plain", "doubles", "times")),
    "times": lambda kind: _is_list_of(kind, lambda of: of in (TIMESTAMP, TIMESTAMP_NTZ)),
    "structs": lambda kind: _is_list_of(kind, lambda of: of.name == "STRUCT"),
    "arrays": lambda kind: kind.element is not None and kind.element.name == "ARRAY",
    "map": lambda kind: kind.name == "MAP",
    "struct": lambda kind: kind.name == "STRUCT" or kind == WINDOW,
    "scalar": lambda kind: not kind.nested and not kind.length and kind != VOID,
}
"""Kinds of arguments that accept or reject a type without a cast."""


def _as_kind(argument: Expr, kind: str, exactly: bool) -> Expr | None:
    """One argument as a kind of the table, or None if it does not fit. `exactly`: without Spark's safe casts."""
    type_ = argument.type
    if kind in _SHAPES:
        return argument if _SHAPES[kind](type_) else None
    match kind:
        case "computed":
            return argument if type_ == STRING and not isinstance(argument, Constant) else None
        case _ if kind in LITERALS:
            return as_literal(argument, kind) if isinstance(argument, Constant) else None
        case "texts" if type_ == Type("ARRAY", element=STRING):
            return argument
        case "text" | "texts":
            if type_ in (STRING, VOID):
                return argument
            return cast(argument, STRING, implicit=True) if _is_printed(type_) and not exactly else None
    if type_.name == kind.upper():
        return argument
    return None if exactly else _safely(argument, kind.upper())


def _safely(argument: Expr, wanted: str) -> Expr | None:
    type_ = argument.type
    target = Type(wanted)
    if type_ == VOID:
        return cast(argument, target, implicit=True) if wanted != "DECIMAL" else None
    if type_.integral and wanted in INTEGRAL and INTEGRAL.index(type_.name) <= INTEGRAL.index(wanted):
        return cast(argument, target, implicit=True)
    if type_.numeric and wanted == "DOUBLE":
        return cast(argument, DOUBLE, implicit=True)
    if (type_ == DATE and wanted in ("TIMESTAMP", "TIMESTAMP_NTZ")) or (type_ == TIMESTAMP and wanted == "DATE"):
        return cast(argument, target, implicit=True)
    if isinstance(argument, Constant) and type_ == STRING and wanted in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        read = as_time(argument.value or "", target)
        return replace(argument, value=read, type=target) if read else None
    return None
