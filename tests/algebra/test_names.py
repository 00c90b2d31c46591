"""A column may have any name that Spark accepts. An author cannot use the compiler's own names."""

from __future__ import annotations

import pytest
from sqlglot.dialects.spark import Spark

from view_algebra import Refused, compile_catalog

READERS = (Spark.Tokenizer.KEYWORDS, Spark.Parser.FUNCTIONS, Spark.Parser.FUNCTION_PARSERS)
WORDS = sorted({word.lower() for words in READERS for word in words if word.replace("_", "").isalpha()})
"""Every keyword and function of sqlglot's Spark dialect."""


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_any_word_may_be_the_name_of_a_column(key: str) -> None:
    columns = ", ".join(f"`{word}` INT" for word in WORDS)
    largest = ", ".join(f"max(`{word}`) AS `{word}`" for word in WORDS)
    least = ", ".join(f"min(t.`{word}`) AS `{word}`" for word in WORDS)
    catalog = compile_catalog(
        {
            "words.sql": f"CREATE TABLE words (id BIGINT{key}, {columns})"
            " USING kafka OPTIONS (topic 'words', format 'json');"
            f" CREATE VIEW largest AS SELECT id, {largest} FROM words GROUP BY id;"
            f" CREATE VIEW least AS SELECT id, {least} FROM words AS t GROUP BY id;"
        }
    )
    assert [column.name for column in catalog.views["largest"].columns] == ["id", *WORDS]


OF_TABLES = {
    "SELECT kafka_last(n) AS a FROM s": "no function kafka_last()",
    "SELECT k, kafka_last(n) AS a FROM t GROUP BY k": "no function kafka_last()",
    "SELECT KAFKA_LAST(n, 2) AS a FROM t": "no function kafka_last()",
    "SELECT kafka_last() AS a FROM t": "no function kafka_last()",
    "SELECT kafka_last(t.n) FILTER (WHERE t.n > 1) AS a FROM t JOIN s ON t.k = s.k": "no function kafka_last()",
    "SELECT max(`kafka_last`(t.n)) AS a FROM t AS t JOIN t AS u ON t.k = u.k": "no function kafka_last()",
    "SELECT * FROM `changes of t`": "no source or view changes of t",
    "SELECT k FROM s WHERE n IN (SELECT n FROM `Changes of t`)": "no source or view Changes of t",
}


@pytest.mark.parametrize("select", OF_TABLES)
def test_an_author_cannot_use_the_names_that_only_tables_use(select: str) -> None:
    tables = (
        "CREATE TABLE s (k STRING, n INT) USING kafka OPTIONS (topic 's', format 'json');"
        "CREATE TABLE t (k STRING PRIMARY KEY, n INT) USING kafka OPTIONS (topic 't', format 'debezium-json');"
    )
    with pytest.raises(Refused) as caught:
        compile_catalog({"a.sql": f"{tables}\nCREATE VIEW v AS {select};"})
    assert OF_TABLES[select].lower() in str(caught.value).lower()


def test_a_column_taken_from_a_source_or_view_has_its_comment() -> None:
    catalog = compile_catalog(
        {
            "a.sql": """
            CREATE TABLE s (k BIGINT, n INT COMMENT 'euro', xs ARRAY<INT>)
            USING kafka OPTIONS (topic 's', format 'json');
            CREATE TABLE t (k BIGINT PRIMARY KEY COMMENT 'a customer', n STRING COMMENT 'on the door')
            USING kafka OPTIONS (topic 't', format 'json', key_format 'json');
            CREATE VIEW grouped (price, c, m) AS SELECT n, count(*), max(n) FROM s GROUP BY n;
            CREATE VIEW above AS SELECT g.price, t.* FROM (SELECT price, c FROM grouped) g JOIN t ON t.k = g.c;
            CREATE VIEW own (price COMMENT 'of a line', n) AS SELECT price, n FROM above;
            CREATE VIEW computed AS SELECT n + 1 AS n, x FROM s LATERAL VIEW explode(xs) AS x;
            CREATE VIEW both_sides AS SELECT n FROM s UNION ALL SELECT n FROM s;
            """
        }
    )
    comments = {name: [column.comment for column in view.columns] for name, view in catalog.views.items()}
    assert comments == {
        "t": ["a customer", "on the door"],
        "grouped": ["euro", None, None],
        "above": ["euro", "a customer", "on the door"],
        "own": ["of a line", "on the door"],
        "computed": [None, None],
        "both_sides": [None],
    }
