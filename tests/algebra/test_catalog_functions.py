"""A call of a catalog's function becomes the expression of the function. No text of a view names the function."""

from __future__ import annotations

import pytest

from view_algebra import Refused, compile_catalog

SOURCE = "CREATE TABLE s (k STRING, n BIGINT, e STRING, ts TIMESTAMP) USING kafka OPTIONS (topic 's', format 'json');\n"
FUNCTIONS = """CREATE FUNCTION next(x INT) RETURNS INT COMMENT 'one more' RETURN x + 1;
CREATE FUNCTION twice(x INT) RETURNS INT RETURN next(x) + next(x);
CREATE FUNCTION tagged(t STRING, p STRING) RETURNS STRING
RETURN array_join(transform(split(t, ','), e -> concat(p, e)), ',');
CREATE FUNCTION rate() RETURNS DECIMAL(4, 2) RETURN 1.20;
CREATE FUNCTION long(x BIGINT) RETURN x * 2L;
CREATE FUNCTION late(t TIMESTAMP) RETURNS BOOLEAN RETURN t < now() - INTERVAL 1 HOUR;
"""


def spelled(select: str) -> str:
    """The SELECT that `lamina check` runs."""
    catalog = compile_catalog({"v.sql": f"{SOURCE}CREATE VIEW v AS {select};", "z.sql": FUNCTIONS})
    view = catalog.views["v"]
    assert view.sql.startswith("CREATE VIEW v AS ")
    assert not any(f"{name}(" in view.sql.lower() for name in ("next", "twice", "tagged", "rate", "long", "late"))
    return view.spelled


@pytest.mark.parametrize(
    ("select", "as_if"),
    [
        ("SELECT next(n) AS a FROM s", "SELECT CAST((CAST(n AS INT) + 1) AS INT) AS a FROM s"),
        ("SELECT LONG(long(n)) AS a FROM s", "SELECT (CAST((CAST(n AS BIGINT) * 2L) AS BIGINT) * 2L) AS a FROM s"),
        ("SELECT k, sum(twice(n)) AS a FROM s WHERE next(n) > 3 GROUP BY k HAVING next(count(*)) > 1",
         ("SELECT k, SUM(CAST((CAST((CAST(CAST(n AS INT) AS INT) + 1) AS INT) + CAST((CAST(CAST(n AS INT) AS INT) + 1)"
         " AS INT)) AS INT)) AS a FROM s WHERE CAST((CAST(n AS INT) + 1) AS INT) > 3 GROUP BY k"
         " HAVING CAST((CAST(COUNT(*) AS INT) + 1) AS INT) > 1")),
        ("SELECT n * rate() AS a FROM s", "SELECT n * CAST((1.20) AS DECIMAL(4, 2)) AS a FROM s"),
        ("SELECT -long(n + 1) AS a FROM s", "SELECT -(CAST(n + 1 AS BIGINT) * 2L) AS a FROM s"),
        ("SELECT k FROM s WHERE late(ts)",
         ("SELECT k FROM s WHERE CAST((CAST(ts AS TIMESTAMP) < CASE WHEN system.session.lamina_now - INTERVAL '1' HOUR"
         " BETWEEN CAST('0001-01-01 00:00:00' AS TIMESTAMP) AND CAST('9999-12-31 23:59:59.999999' AS TIMESTAMP)"
         " THEN system.session.lamina_now - INTERVAL '1' HOUR END) AS BOOLEAN)")),
        ("SELECT transform(split(k, ','), x -> next(length(x))) AS a FROM s",
         "SELECT TRANSFORM(SPLIT(k, ','), x -> CAST((CAST(LENGTH(x) AS INT) + 1) AS INT)) AS a FROM s"),
    ],
)  # fmt: skip
def test_a_call_is_the_expression_of_the_function_with_its_types(select: str, as_if: str) -> None:
    assert spelled(select) == as_if


def test_a_lambda_variable_is_not_a_column_of_the_caller() -> None:
    written = spelled("SELECT tagged(k, e) AS a FROM s")
    assert "e_1 -> CONCAT(CAST(e AS STRING), e_1)" in written


ABOVE = "CREATE FUNCTION above(x INT) RETURN exists(array(1), y -> y > x);"
CAPTURES = [
    # of another function, whose variable is named as a column of the caller
    (ABOVE + "CREATE FUNCTION higher(z INT) RETURN above(z);", "higher(y)",
     "((EXISTS(ARRAY(1), y_1 -> y_1 > CAST({y} AS INT))))"),
    (ABOVE, "exists(l, y -> above(y))", "EXISTS(l, y -> (EXISTS(ARRAY(1), y_1 -> y_1 > {y})))"),
    (ABOVE, "above(s.y)", "(EXISTS(ARRAY(1), y_1 -> y_1 > CAST(s.y AS INT)))"),
    # a parameter, or the variable of a lambda inside, that has the new name
    ("CREATE FUNCTION f(x INT, y_1 INT) RETURN exists(array(x), y -> y > y_1);", "f(y, 5)",
     "(EXISTS(ARRAY({y}), y_2 -> y_2 > CAST(5 AS INT)))"),
    ("CREATE FUNCTION f(x INT) RETURN exists(array(1), y -> exists(array(2), y_1 -> y_1 > y + x));", "f(y)",
     "(EXISTS(ARRAY(1), y_2 -> EXISTS(ARRAY(2), y_1 -> y_1 > y_2 + {y})))"),
    # a variable in other letters, or in quotes, and two of one name
    ("CREATE FUNCTION f(x INT) RETURN exists(array(1), Y -> y > x);", "f(y)", "(EXISTS(ARRAY(1), y_1 -> y_1 > {y}))"),
    ("CREATE FUNCTION f(x INT) RETURN exists(array(1), `Y` -> y > x);", "f(`y`)",
     "(EXISTS(ARRAY(1), `y_1` -> y_1 > CAST(`y` AS INT)))"),
    ("CREATE FUNCTION f(x INT) RETURN exists(array(1), y -> exists(array(y), y -> y > x));", "f(y)",
     "(EXISTS(ARRAY(1), y_1 -> EXISTS(ARRAY(y_1), y_2 -> y_2 > {y})))"),
    # a variable that is named as a parameter
    ("CREATE FUNCTION f(x INT, z INT) RETURN exists(array(x), X -> x > z);", "f(1, x)",
     "(EXISTS(ARRAY(CAST(1 AS INT)), x_1 -> x_1 > CAST(x AS INT)))"),
    # fields and labels are neither variables nor parameters
    ("CREATE FUNCTION f(x INT) RETURN exists(array(struct(1 AS y)), y -> y.y > x);", "f(y)",
     "(EXISTS(ARRAY(STRUCT(1 AS y)), y_1 -> y_1.y > {y}))"),
    ("CREATE FUNCTION f(x INT) RETURN exists(array(struct(1 AS x)), E -> e.x > f.x);", "f(y)",
     "(EXISTS(ARRAY(STRUCT(1 AS x)), E -> e.x > {y}))"),
    ("CREATE FUNCTION f(x INT) RETURN to_json(struct((x), x + 1));", "f(y)", "(TO_JSON(STRUCT(({y}) AS x, {y} + 1)))"),
    ("CREATE FUNCTION f(x INT) RETURN to_json(transform(array(x), y -> struct(y)));", "f(y)",
     "(TO_JSON(TRANSFORM(ARRAY({y}), y_1 -> STRUCT(y_1 AS y))))"),
    # units of time
    ("CREATE FUNCTION f(day TIMESTAMP) RETURN timestampdiff(DAY, day, day);", "f(d)",
     "(TIMESTAMPDIFF(DAY, CAST(d AS TIMESTAMP), CAST(d AS TIMESTAMP)))"),
    # a function in its own argument
    ("CREATE FUNCTION f(x INT) RETURN reduce(array(1), 2, (y, z) -> y + x);", "f(f(1))",
     "(REDUCE(ARRAY(1), 2, (y_1, z_1) -> y_1 + CAST((REDUCE(ARRAY(1), 2, (y, z) -> y + CAST(1 AS INT))) AS INT)))"),
]  # fmt: skip


@pytest.mark.parametrize(("functions", "called", "as_if"), CAPTURES)
def test_a_name_of_the_caller_keeps_its_meaning_inside_a_function(functions: str, called: str, as_if: str) -> None:
    source = "CREATE TABLE s (x INT, y INT, d DATE, l ARRAY<INT>) USING kafka OPTIONS (topic 's', format 'json');\n"
    catalog = compile_catalog({"v.sql": f"{source}CREATE VIEW v AS SELECT {called} AS a FROM s;", "z.sql": functions})
    assert catalog.views["v"].spelled == f"SELECT {as_if.format(y='CAST(y AS INT)')} AS a FROM s"


def test_a_check_may_call_a_function() -> None:
    view = "CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k; "
    check = "ALTER VIEW v ADD CONSTRAINT some CHECK (long(n) > 1);"
    catalog = compile_catalog({"v.sql": SOURCE + view + check + FUNCTIONS})
    [compiled] = catalog.views["v"].checks
    assert compiled.sql == "ALTER VIEW v ADD CONSTRAINT some CHECK ((CAST(n AS BIGINT) * 2L) > 1)"


REFUSED = {
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN g(x); CREATE FUNCTION g(x INT) RETURNS INT RETURN f(x)": "in a circle",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN f(x)": "in a circle",
    "CREATE FUNCTION upper(x STRING) RETURNS STRING RETURN x": "a function of Spark's",
    "CREATE FUNCTION transform(x INT) RETURNS INT RETURN x": "a function of Spark's",
    "CREATE FUNCTION struct(x INT) RETURNS INT RETURN x": "a function of Spark's",
    "CREATE FUNCTION now() RETURNS INT RETURN 1": "a function of Spark's",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN y": "no parameter y",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN sum(x)": "reads several rows",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN row_number() OVER (ORDER BY x)": "reads several rows",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN (SELECT max(n) FROM s)": "f() contains a query",
    "CREATE FUNCTION f(x INT) RETURNS TABLE(a INT) RETURN SELECT x": "RETURNS TABLE",
    "CREATE FUNCTION f AS 'com.example.F' USING JAR 'f.jar'": "not an expression of SQL",
    "CREATE FUNCTION f(x INT, X INT) RETURNS INT RETURN x": "have one name",
    "CREATE FUNCTION f(x) RETURNS INT RETURN x": "has no type",
    "CREATE FUNCTION f(x INT DEFAULT 1) RETURNS INT RETURN x": "parameter x has a default",
    "CREATE FUNCTION f(x ARRAY<INT>) RETURNS INT RETURN x[0]": "a function cannot use ARRAY<INT>",
    "CREATE OR REPLACE FUNCTION f(x INT) RETURNS INT RETURN x": "OR REPLACE",
    "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x": "TEMPORARY",
    "CREATE FUNCTION f(x INT) RETURNS DATE RETURN x": "CAST of INT to DATE",
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x; CREATE FUNCTION F(y INT) RETURNS INT RETURN y": "already declared",
    "CREATE FUNCTION f0(x INT) RETURN x + 1;"
    + "".join(f"CREATE FUNCTION f{n}(x INT) RETURN f{n - 1}(x) + f{n - 1}(x);" for n in range(1, 23)): "5,000 words",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_what_cannot_be_a_function_is_refused(sql: str) -> None:
    with pytest.raises(Refused) as caught:
        compile_catalog({"v.sql": f"{SOURCE}{sql};"})
    assert REFUSED[sql] in str(caught.value)


def test_a_mistake_in_a_function_is_shown_in_its_declaration() -> None:
    wrong = "CREATE FUNCTION f(x STRING) RETURNS STRING RETURN uper(x);"
    with pytest.raises(Refused) as caught:  # once, in the function: not at each call
        compile_catalog({"f.sql": wrong, "v.sql": f"{SOURCE}CREATE VIEW v AS SELECT f(k) AS a FROM s;"})
    assert str(caught.value).startswith("f.sql:1: f: there is no function uper()")
    with pytest.raises(Refused) as caught:
        spelled("SELECT k,\n  next(n, 1) AS a FROM s")
    assert "v.sql:3: v: next() does not take 2 arguments\n\n  3 |   next(n, 1) AS a FROM s;\n        ^^^^" in str(
        caught.value
    )
    with pytest.raises(Refused) as caught:
        spelled("SELECT k, next(m) AS a FROM s")
    assert "no column m" in str(caught.value)
