"""A record of a megabyte is read like any other, even with the worst text for each of our expressions."""

from __future__ import annotations

import re
from itertools import product

import pytest
from py4j.protocol import Py4JJavaError

from tests.laws.engines import Engines
from view_algebra import Catalog, compile_catalog
from view_algebra.engines.spark import constant
from view_algebra.formats import without_schema as csv
from view_algebra.language.calendar_bounds import TIME_ALONE
from view_algebra.language.endless_regexes import endless
from view_algebra.language.expressions import Constant
from view_algebra.language.like_patterns import ESCAPES_NOTHING
from view_algebra.language.long_numbers import (
    BARE_AND_LONG,
    EXPONENT,
    MAY_BE_LONG,
    QUOTED_AND_LONG,
    SHORT_NUMBER,
    may_be_long,
)
from view_algebra.language.quoting import spark_text
from view_algebra.language.storable import ZERO
from view_algebra.language.types import STRING
from view_algebra.records.decoding import (
    BASE64_OF_DECIMAL,
    DIGITS_ALONE,
    INFINITY,
    NOT_BASE64,
    PLAIN_DECIMAL,
    WHOLE,
    WITHOUT_ZONE,
)
from view_algebra.records.fields import PATTERNS
from view_algebra.records.reasons import (
    BEGINS_AGAIN,
    COMMA_BEFORE_END,
    CONTROL,
    HAS_COMMA,
    MAY_BE_TIME_ALONE,
    MAY_HAVE_COMMA,
)
from view_algebra.records.time_units import may_be_numbers

M = 1_000_000
QUOTED = ['"' + " " * M, '"' * M, '"' + r"\n" * (M // 2), '"9' * (M // 2), '"' + "9" * M, '"' + r"\u0039" * (M // 6)]
REPEATED = ("9", " ", "\\", "\uf8ff", "'", "[", ",", "1.5,", '"{"', '"a":')
OF_FIELDS = [
    *QUOTED,
    *(text * (M // len(text)) for text in REPEATED),
    *(begins + "9" * M for begins in (":", "\uf8ff", '"\uf8ff', '"{', "-", "9.", ".", "1e")),
    *(begins + ",234" * (M // 4) for begins in ("1", "\uf8ff1", ":")),
    *("9" + " " * M + "x", "\uf8ff9" + "\0" * M + "x", '"' + "\uf8ff9" * (M // 2)),
]
OURS = {
    MAY_BE_TIME_ALONE: QUOTED,
    TIME_ALONE: [" " * M, "\0" * M + "9", "9" * M],
    ESCAPES_NOTHING: ["\\" * M, "\\" * (M + 1) + "%", r"\%" * (M // 2)],
    ZERO: ["\\" * M, "\\" * (M + 1) + "u0000", r"\u000" * (M // 5)],
    EXPONENT: ["e" * M, "1e999" * (M // 5), "e+" * (M // 2), "9" * M],
    MAY_BE_LONG: [*QUOTED, '"' + "1e999" * (M // 5), '"1e' + "9" * M, '"' + "9" * 999 + '"9'],
    BARE_AND_LONG: [*QUOTED, "9" * M, "'\"" * (M // 2), "1e999" * (M // 5), r"\"" * (M // 2), "[" * M],
    QUOTED_AND_LONG: [*QUOTED, '"' + "9" * M + "e" + "9" * M, '"' + "9" * M + "x", '"9e9999' * (M // 6)],
    MAY_HAVE_COMMA: [*QUOTED, '",' * (M // 2), '"1.' * (M // 3), '"' + "," * M],
    HAS_COMMA: [*QUOTED, ':"1,' * (M // 4), ':"1,' + "a" * M, ',"' + "9" * M],
    BEGINS_AGAIN: ["}" * M, "}" + " " * M, "} ," * (M // 3), "},\n" * (M // 3)],
    may_be_numbers(["at"], ["ats"]): [
        '"at"' * (M // 4),
        '"at"' + " " * M,
        '"at":' * (M // 5),
        '"at":"' + "9" * M,
        '"at":"' + " " * M,
        r"\u00" * (M // 4),
    ],
    DIGITS_ALONE: [" " * M, "9" * M, "9" * M + "x", " " * M + "9" * M + " " * M + "x"],
    INFINITY: ["+" + "9" * M, "+" + "9" * M + "-", "+999999-" + "1" * M + "x", "infinity" * (M // 8)],
    WITHOUT_ZONE: ["2024-01-01T" + "1" * M + "x", "9" * M, " " * M, "2024-01-01" + " " * M + "x"],
    PLAIN_DECIMAL: ["9" * M, "9" * 100 + "." + "9" * M, "+" * M],
    NOT_BASE64: ["A" * M, "." * M],
    WHOLE: ["9" * M, "9" * M + "x"],
    BASE64_OF_DECIMAL: ["A" * M, "=" * M, "A" * 22 + "=" * M],
    COMMA_BEFORE_END: ["," * M, ", " * (M // 2), "," + " " * M],
    CONTROL: ["\n" * M],
    **dict.fromkeys(PATTERNS, OF_FIELDS),
    csv.line_pattern(3, ",", '"'): [
        '"' * M,
        '""' * (M // 2) + "x",
        "," * M,
        '"a\n' * (M // 3),
        "a" * M,
        ",," + "a" * M,
    ],
    csv.END: ["\r\n" * (M // 2), "\n" * M],
    csv.NUMBER: ["9" * M, "9." * (M // 2), "1." + "9" * M + "x", "1e" + "9" * M + "x"],
    SHORT_NUMBER: ["e" * M, "1e999" * 200, "\n" * M, "😀" * M],
}
"""Our regular expressions in Spark SQL, each with its slowest texts."""

CATALOG = """
CREATE TABLE s (
  s STRING, d DECIMAL(10,2), at TIMESTAMP, ats ARRAY<TIMESTAMP>, i INT, f FLOAT, b BOOLEAN
) USING kafka OPTIONS (topic 's', format 'json');
CREATE TABLE nulls (
  s STRING, d DECIMAL(10,2), at TIMESTAMP, ats ARRAY<TIMESTAMP>, st STRUCT<i: INT>, m MAP<STRING, INT>
)
USING kafka OPTIONS (topic 'nulls', format 'json') TBLPROPERTIES ('on_bad_field' = 'null', 'empty_as_null' = 'true');
CREATE TABLE lines (s STRING, i INT, b BOOLEAN) USING kafka OPTIONS (topic 'lines', format 'csv');
CREATE TABLE changes (after STRUCT<d: DECIMAL(10,2)>, ts_ms TIMESTAMP)
USING kafka OPTIONS (topic 'c', format 'debezium-json');
CREATE VIEW v AS SELECT
  CAST(s AS DECIMAL(10,2)) AS a, CAST(s AS TIMESTAMP) AS b, s LIKE concat(s, '%') AS c,
  array(get_json_object(s, '$.a')) AS d,
  from_json(s, 'd DECIMAL(10,2)') AS e
FROM s;
"""


def handed_to_spark(catalog: Catalog) -> set[str]:
    """The regular expressions in the Spark SQL of a catalog, as literals."""
    texts = [source.parse for source in catalog.sources.values()]
    texts += [table.partial for view in catalog.views.values() for table in view.cell_tables]
    texts += [view.spelled for view in catalog.views.values()]
    literal = r"(?:RLIKE |regexp_\w+\((?:make_valid_utf8\(.*?\)\)|[\w.]+), )('(?:[^'\\]|\\.)*')"
    return {match[1] for text in texts for match in re.finditer(literal, text)}


def test_no_regular_expression_of_ours_recurses_or_searches_without_end(engines: Engines) -> None:
    assert handed_to_spark(compile_catalog({"s.sql": CATALOG})) <= {
        constant(Constant(pattern, STRING)) for pattern in OURS
    }
    assert [pattern for pattern in OURS if endless(pattern) is not None] == []
    for texts in {id(texts): texts for texts in OURS.values()}.values():
        calls = [f"s RLIKE {constant(Constant(pattern, STRING))}" for pattern in OURS if OURS[pattern] is texts]
        engines.spark.createDataFrame([(text,) for text in texts], "s string").selectExpr(*calls).collect()


def test_the_cheap_condition_finds_every_long_number(engines: Engines) -> None:
    digits = ["1", "1.5", "9" * 999, "9" * 1001, "\u0661" * 1000, r"\u0039" * 1000]
    exponents = [
        "",
        "e999",
        "e9999",
        "E+1234",
        "e-00001",
        "e\u0661\u0662\u0663\u0664",
        r"\u0065+9999",
        r"e\u002d9999",
        r"e99\u0039\u0039",
    ]
    texts = [f"{start}{n}{e}" for start, n, e in product(['"', '{"d":', '{"d":"-', "x"], digits, exponents)]
    frame = engines.spark.createDataFrame([(text,) for text in texts], "s string")
    exactly = f"s RLIKE {spark_text(MAY_BE_LONG)}"
    rows = frame.selectExpr(f"{exactly} AS exactly", f"{may_be_long('s')} AS ours").collect()
    assert all(row.exactly == row.ours for row in rows)
    assert 60 < sum(row.exactly for row in rows) < len(texts) - 60


def test_a_stack_that_overflows_fails_the_query_and_not_the_process(engines: Engines) -> None:
    """By default, Spark would halt the JVM. Here its next query succeeds."""
    overflowing = "SELECT repeat('a', {}) RLIKE concat('^(a|', char(98 + id), ')*$') FROM range(1)"
    with pytest.raises(Py4JJavaError, match="StackOverflowError"):
        engines.spark.sql(overflowing.format(1_000_000)).collect()
    assert engines.spark.sql(overflowing.format(10_000)).collect() == [(True,)]
