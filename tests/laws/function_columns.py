"""A source with a column of every type, and the arguments of the functions in the table."""

from __future__ import annotations

from view_algebra.language.functions import FUNCTIONS

VALUES: dict[str, tuple[str, list[object]]] = {
    "b": ("BOOLEAN", [True, False, None]),
    "ti": ("TINYINT", [0, -128, 127, None]),
    "si": ("SMALLINT", [7, -32768, None]),
    "i": ("INT", [0, 3, -7, 2**31 - 1, -(2**31), None]),
    "l": ("BIGINT", [0, 1, -1, 10, 2**63 - 1, -(2**63), None]),
    "m": ("BIGINT", [3, -1, 0, 2**62, None]),
    "d": ("DOUBLE", [0.0, 1.5, -2.5, 0.125, 1e300, -1e300, 1e-300, "NaN", "Infinity", "-Infinity", 2.675, None]),
    "e": ("DOUBLE", [0.0, 2.0, -0.5, 1e300, 5e-324, "NaN", None]),
    "c": ("DECIMAL(12,3)", [0, 1.005, -2.5, 999999999.999, -0.001, None]),
    "w": ("DECIMAL(38,10)", [3, -0.0000000001, "9999999999999999999999999999.9999999999", 0, None]),
    "s": ("STRING", ["", "a", "Zürich", " ab ", "a_b%c", "x,y", "😀b", "10", None]),
    "t": ("STRING", ["", "b", "a", "ü", "ab", None]),
    "read": ("STRING", ["2024-03-10 02:30:00.5", " 2024-02-29", "-1.5", "1e3", "12:30", "x", None]),
    "day": ("DATE", ["2024-02-29", "1969-12-31", "0001-01-01", "9999-12-31", "2023-12-31", None]),
    "day2": ("DATE", ["2024-03-01", "1970-01-01", None]),
    "ts": (
        "TIMESTAMP",
        [
            "2024-03-10T02:30:00.123456Z",
            "1969-12-31T23:59:59.999999Z",
            "0001-01-01T00:00:00Z",
            "2023-12-31T23:30:00Z",
            None,
        ],
    ),
    "ntz": ("TIMESTAMP_NTZ", ["2024-03-10 02:30:00.5", "1900-01-01 00:00:00", None]),
    "arr": ("ARRAY<STRING>", [["a", None], [], None]),
    "sts": ("ARRAY<STRUCT<x: INT, y: STRING>>", [[{"x": 1, "y": "q"}, None, {}], [{"y": "r"}], [], None]),
    "arrs": ("ARRAY<ARRAY<STRING>>", [[["a", None], []], [], [None], None]),
    "st": ("STRUCT<x: INT, y: STRING>", [{"x": 1, "y": "q"}, {}, None]),
    "map": ("MAP<STRING, INT>", [{"a": 1}, {}, None]),
    "texts": ("ARRAY<STRING>", [["b", "", "Zürich", None, "a", "b", "B"], ["a"], [], None]),
    "nums": ("ARRAY<DECIMAL(12,3)>", [[10, 2.5, None, -3, 2.5, 0.001], [7], [None], [], None]),
    "longs": ("ARRAY<BIGINT>", [[3, -1, None], [2**62, 3], [], None]),
    "days": ("ARRAY<DATE>", [["2024-02-29", "0001-01-01", "9999-12-31"], [], None]),
    "ds": ("ARRAY<DOUBLE>", [[2.5, "NaN", None, -1e300, "Infinity", 10, 5e-324, "-Infinity"], [9, 10.5], [], None]),
    "fs": ("ARRAY<FLOAT>", [[2.75, "NaN", None, -1024.5], [9, 10.5, 16777216], [], None]),
    "tss": ("ARRAY<TIMESTAMP>", [["2024-03-10T02:30:00.123456Z", None, "0001-01-01T00:00:00Z"], [], None]),
    "ntzs": ("ARRAY<TIMESTAMP_NTZ>", [["2024-03-10 02:30:00.5", "9999-12-31 23:00:00", "1900-01-01 00:00:00"], None]),
    "deep": (
        "STRUCT<a: STRUCT<B: BIGINT, at: TIMESTAMP, x: DOUBLE>, c: ARRAY<ARRAY<INT>>, `d e`: MAP<STRING, DATE>>",
        [
            {
                "a": {"B": 2**60, "at": "1969-12-31T23:59:59.999999Z", "x": "NaN"},
                "c": [[1, None], []],
                "d e": {"A": "0001-01-01", "a b": None},
            },
            {"a": {}, "c": [None, [2, 3]]},
            {"a": {"x": 1e-300}, "d e": {}},
            {},
            None,
        ],
    ),
}


ARGUMENTS = {
    "boolean": "b",
    "flag": "false",
    "scalar": "l",
    "element": "t",
    "key": "t",
    "regex": "'a(b)?'",
    "translated": "'a(b)?'",
    "unambiguous": "'(a)(b)?'",
    "replacement": "'z'",
    "format": "'yyyy'",
    "parsed": "'yyyy'",
    "zone": "'America/New_York'",
    "computed": "concat('Europe/', CASE WHEN ti = 0 THEN 'Paris' ELSE t END)",
    "path": "'$.a[0]'",
    "tinyint": "ti",
    "smallint": "si",
    "int": "i",
    "bigint": "l",
    "integral": "i",
    "numeric": "c",
    "double": "d",
    "decimal": "c",
    "string": "s",
    "text": "s",
    "any": "s",
    "common": "l",
    "ordered": "l",
    "instant": "ts",
    "listed": "arr",
    "plain": "texts",
    "doubles": "ds",
    "times": "tss",
    "scalars": "ds",
    "printed": "texts",
    "float": "CAST(ti AS FLOAT)",
    "date": "day",
    "day": "day",
    "timestamp": "ts",
    "timestamp_ntz": "ntz",
    "array": "arr",
    "comparable": "arr",
    "map": "map",
    "struct": "st",
    "literal": "'a'",
    "pattern": "'yyyy-MM-dd HH:mm:ss'",
    "arrays": "arrs",
    "texts": "arr",
    "same": "arr",
    "natural": "2",
    "whole": "-1",
    "nonzero": "-1",
    "negative": "-2",
    "character": "'a'",
    "delimiter": "'ab'",
    "separator": "'a'",
    "structs": "sts",
    "weekday": "'tue'",
    "schema": "'A INT, B ARRAY<STRING>'",
    "positive": "2",
    "unit": "'hour'",
    "dateunit": "'month'",
    "binary": "kafka_key",
}


SECOND = {"s": "t", "l": "m", "d": "e", "day": "day2", "i": "ti"}


ROWS = [row for rows in FUNCTIONS.values() for row in rows]


def source() -> str:
    """The declaration of a source `s` with these columns."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    return f"CREATE TABLE s ({columns}) USING kafka OPTIONS (topic 's', format 'json');\n"
