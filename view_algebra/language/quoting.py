"""Quotes names and texts for Spark's and Postgres' SQL, if they need quotes."""

from __future__ import annotations

LONGEST_POSTGRES_NAME = 63
"""Bytes of the longest name in Postgres, which cuts off longer ones (NAMEDATALEN - 1)."""


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def spark_name(name: str) -> str:
    """A name in Spark SQL, in backquotes if necessary.

    >>> spark_name("user_id"), spark_name("user-id"), spark_name("order")
    ('user_id', '`user-id`', '`order`')
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain and name.upper() not in _WORDS else spark_path(name)


def postgres_name(name: str) -> str:
    """A name in Postgres' SQL, in double quotes if necessary.

    >>> postgres_name("user_id"), postgres_name("userId"), postgres_name("order")
    ('user_id', '"userId"', '"order"')
    """
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit() and name == name.lower()
    return name if plain and name.upper() not in _POSTGRES_WORDS else quoted(name)


def quoted(name: str) -> str:
    """A name in Postgres' SQL, always in double quotes.

    >>> quoted("user_id"), quoted('a"b')
    ('"user_id"', '"a""b"')
    """
    return '"' + name.replace('"', '""') + '"'


def spark_path(*parts: str) -> str:
    """A name of several arbitrary parts in Spark SQL.

    >>> spark_path("lamina", "log", "clicks.v1")
    '`lamina`.`log`.`clicks.v1`'
    """
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def spark_text(value: str) -> str:
    r"""A text literal in Spark SQL, on one line.

    >>> print(spark_text("it's"))
    'it\'s'
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def postgres_text(value: str) -> str:
    r"""A text literal in Postgres' SQL, on one line.

    >>> print(postgres_text("it's"))
    'it''s'
    """
    text = "'" + value.replace("'", "''") + "'"
    return "E" + text.replace("\\", "\\\\").replace("\n", "\\n") if "\n" in text else text


_SPARK_WORDS = words(
    "ALL ALTER AND ANTI ANY ARRAY AS AT AUTHORIZATION BETWEEN BOTH BY CASE CAST CHECK COLLATE COLUMN"
    " CONSTRAINT CREATE CROSS CUBE CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DELETE"
    " DESCRIBE DISTINCT DROP ELSE END ESCAPE EXCEPT EXISTS EXTRACT FALSE FETCH FILTER FOR FOREIGN FROM FULL"
    " FUNCTION GRANT GROUP GROUPING HAVING IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEADING"
    " LEFT LIKE LIMIT MINUS NATURAL NOT NULL OF OFFSET ON ONLY OR ORDER OUTER OVERLAPS PRIMARY REFERENCES"
    " RIGHT ROLLUP ROW ROWS SELECT SEMI SESSION_USER SET SOME TABLE THEN TO TRAILING TRUE UNION UNIQUE"
    " UNKNOWN UPDATE USER USING VALUES WHEN WHERE WINDOW WITH"
)

_READ_AS_MORE = words(
    "GLOB ILIKE NOTNULL PARTITIONED_BY QUALIFY REGEXP RETURNING REVOKE RLIKE ROLLBACK SERDEPROPERTIES TABLESAMPLE"
    " UNCACHE XOR"
)
"""Names to Spark that sqlglot, which parses these texts, reads as keywords."""

_WORDS = _SPARK_WORDS | _READ_AS_MORE

_POSTGRES_WORDS = words(
    "ALL ANALYSE ANALYZE AND ANY ARRAY AS ASC ASYMMETRIC AUTHORIZATION BETWEEN BIGINT BINARY BIT BOOLEAN BOTH"
    " CASE CAST CHAR CHARACTER CHECK COALESCE COLLATE COLLATION COLUMN CONCURRENTLY CONSTRAINT CREATE CROSS"
    " CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER"
    " DEC DECIMAL DEFAULT DEFERRABLE DESC DISTINCT DO ELSE END EXCEPT EXISTS EXTRACT FALSE FETCH FLOAT FOR"
    " FOREIGN FREEZE FROM FULL GRANT GREATEST GROUP GROUPING HAVING ILIKE IN INITIALLY INNER INOUT INT"
    " INTEGER INTERSECT INTERVAL INTO IS ISNULL JOIN JSON JSON_ARRAY JSON_EXISTS JSON_OBJECT JSON_QUERY"
    " JSON_SCALAR JSON_TABLE JSON_VALUE LATERAL LEADING LEAST LEFT LIKE LIMIT LOCALTIME LOCALTIMESTAMP"
    " MERGE_ACTION NATIONAL NATURAL NCHAR NONE NORMALIZE NOT NOTNULL NULL NULLIF NUMERIC OFFSET ON ONLY OR"
    " ORDER OUT OUTER OVERLAPS OVERLAY PLACING POSITION PRECISION PRIMARY REAL REFERENCES RETURNING RIGHT ROW"
    " SELECT SESSION_USER SETOF SIMILAR SMALLINT SOME SUBSTRING SYMMETRIC SYSTEM_USER TABLE TABLESAMPLE THEN"
    " TIME TIMESTAMP TO TRAILING TREAT TRIM TRUE UNION UNIQUE USER USING VALUES VARCHAR VARIADIC VERBOSE WHEN"
    " WHERE WINDOW WITH XMLATTRIBUTES XMLCONCAT XMLELEMENT XMLEXISTS XMLFOREST XMLNAMESPACES XMLPARSE XMLPI"
    " XMLROOT XMLSERIALIZE XMLTABLE"
)
