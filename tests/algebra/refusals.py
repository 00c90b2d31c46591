"""Declarations that are refused, each with the rewrite that its error suggests, which compiles."""

# ruff: noqa: E501 — a statement stands on one line, as its error shows it

from __future__ import annotations

from dataclasses import dataclass

EVENTS = """CREATE TABLE events (
  event_id STRING, user_id BIGINT, kind STRING, country STRING, amount DECIMAL(10, 2), price DOUBLE, ts TIMESTAMP,
  day DATE, tags ARRAY<STRING>, payload STRUCT<user: STRUCT<id: BIGINT, name: STRING>>
) USING kafka OPTIONS (topic 'events', format 'json');
CREATE TABLE orders (id BIGINT, user_id BIGINT, ts TIMESTAMP) USING kafka OPTIONS (topic 'orders', format 'json');
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id)) USING kafka OPTIONS (topic 'users', format 'json');
CREATE TABLE prices (user_id BIGINT PRIMARY KEY, price DOUBLE, ts TIMESTAMP) USING kafka OPTIONS (topic 'prices', format 'json') TBLPROPERTIES ('event_time' = 'ts');
CREATE VIEW hourly AS SELECT country, date_trunc('hour', ts) AS hour, count(*) AS n FROM events GROUP BY country, date_trunc('hour', ts);
"""


@dataclass(frozen=True)
class Refusal:
    """A view's SELECT (or whole statements) that is refused, and what works instead."""

    name: str
    sql: str
    rewrite: str


def view(name: str, select: str, rewrite: str) -> Refusal:
    return Refusal(name, f"CREATE VIEW v AS\n{select};", f"CREATE VIEW v AS\n{rewrite};")


_KAFKA = "USING kafka OPTIONS (topic 'x', format 'json')"
_PROTOBUF = "USING kafka OPTIONS (topic 'x', format 'protobuf'"
_TWO = 'syntax = "proto3"; package shop; message A { int64 a = 1; } message B { int64 a = 1; }'

SOURCES = [
    Refusal(
        "an index on a column that there is not",
        "CREATE VIEW v TBLPROPERTIES ('index' = 'country, hours') AS SELECT country, price FROM events;",
        "CREATE VIEW v TBLPROPERTIES ('index' = 'country, price') AS SELECT country, price FROM events;",
    ),
    *(
        Refusal(
            f"an index on {what}",
            f"CREATE VIEW v TBLPROPERTIES ('index' = '{names}') AS SELECT country, price FROM events;",
            "CREATE VIEW v TBLPROPERTIES ('index' = 'country') AS SELECT country, price FROM events;",
        )
        for what, names in (("nothing", ""), ("a column and nothing", "country, "))
    ),
    Refusal(
        "an index on a stream",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('index' = 'a');",
        f"CREATE TABLE x (a INT) {_KAFKA}; CREATE VIEW w TBLPROPERTIES ('index' = 'a') AS SELECT a FROM x;",
    ),
    Refusal(
        "an index on a column that a table has not",
        f"CREATE TABLE x (a INT PRIMARY KEY) {_KAFKA} TBLPROPERTIES ('index' = 'b');",
        f"CREATE TABLE x (a INT PRIMARY KEY, b STRING) {_KAFKA} TBLPROPERTIES ('index' = 'a, b');",
    ),
    Refusal(
        "an index on a list",
        "CREATE VIEW v TBLPROPERTIES ('index' = 'tags') AS SELECT tags, price FROM events;",
        "CREATE VIEW v TBLPROPERTIES ('index' = 'price') AS SELECT tags, price FROM events;",
    ),
    Refusal(
        "an index on what is computed when it is read",
        "CREATE VIEW v TBLPROPERTIES ('index' = 'twice') AS SELECT country, 2 * count(*) AS twice FROM events GROUP BY country;",
        "CREATE VIEW v TBLPROPERTIES ('index' = 'n') AS SELECT country, count(*) AS n FROM events GROUP BY country;",
    ),
    Refusal(
        "a name of Lamina's own",
        f"CREATE TABLE good_records (a INT) {_KAFKA};",
        f"CREATE TABLE fine_records (a INT) {_KAFKA};",
    ),
    Refusal(
        "a name of what explode makes",
        f"CREATE TABLE x (`element 1` INT) {_KAFKA};",
        f"CREATE TABLE x (element_1 INT) {_KAFKA} TBLPROPERTIES ('field.element_1' = 'element 1');",
    ),
    Refusal("no topic", "CREATE TABLE x (a INT) USING kafka;", f"CREATE TABLE x (a INT) {_KAFKA};"),
    Refusal("no USING", "CREATE TABLE x (a INT);", f"CREATE TABLE x (a INT) {_KAFKA};"),
    Refusal(
        "another format",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'thrift');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "a separator of two characters",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter '||');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter '|');",
    ),
    Refusal(
        "one character for two purposes",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter ';', quote ';');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'csv', delimiter ';', quote '\"');",
    ),
    Refusal(
        "an option of another format",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', delimiter ';');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "a registry asked again that is not asked",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', ask_again '1');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "a registry asked again without a number",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'avro', ask_again 'yes');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'avro', ask_again '1');",
    ),
    Refusal(
        "two columns of one text",
        "CREATE TABLE x (a STRING, b STRING) USING kafka OPTIONS (topic 'x', format 'text');",
        "CREATE TABLE x (a STRING) USING kafka OPTIONS (topic 'x', format 'text');",
    ),
    Refusal(
        "a number for bytes",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'bytes');",
        "CREATE TABLE x (a BINARY) USING kafka OPTIONS (topic 'x', format 'bytes');",
    ),
    Refusal(
        "a column without a type", f"CREATE TABLE x (a INT, b) {_KAFKA};", f"CREATE TABLE x (a INT, b STRING) {_KAFKA};"
    ),
    Refusal(
        "keys that JSON has not",
        f"CREATE TABLE x (a MAP<INT, STRING>) {_KAFKA};",
        f"CREATE TABLE x (a MAP<STRING, STRING>) {_KAFKA};",
    ),
    Refusal(
        "bytes inside a column",
        f"CREATE TABLE x (a ARRAY<STRUCT<b: BINARY>>) {_KAFKA};",
        f"CREATE TABLE x (a ARRAY<STRUCT<b: STRING>>) {_KAFKA};",
    ),
    Refusal("an unknown type", f"CREATE TABLE x (a GEOMETRY) {_KAFKA};", f"CREATE TABLE x (a STRING) {_KAFKA};"),
    Refusal(
        "a column of times of day",
        "CREATE TABLE x (a INT PRIMARY KEY, at TIME(6)) USING kafka OPTIONS (topic 'x', format 'debezium-json');",
        "CREATE TABLE x (a INT PRIMARY KEY, at BIGINT) USING kafka OPTIONS (topic 'x', format 'debezium-json');",
    ),
    Refusal("a column twice", f"CREATE TABLE x (a INT, a INT) {_KAFKA};", f"CREATE TABLE x (a INT) {_KAFKA};"),
    Refusal(
        "two columns whose names differ in case",
        f"CREATE TABLE x (userId STRING, userid INT) {_KAFKA};",
        f"CREATE TABLE x (userId STRING, userid_2 INT) {_KAFKA} TBLPROPERTIES ('field.userid_2' = 'userid');",
    ),
    Refusal(
        "two fields of a struct whose names differ in case",
        f"CREATE TABLE x (a ARRAY<STRUCT<osv: STRING, Osv: STRING>>) {_KAFKA};",
        f"CREATE TABLE x (a ARRAY<MAP<STRING, STRING>>) {_KAFKA};",
    ),
    Refusal(
        "two columns of one field",
        f"CREATE TABLE x (a INT, b INT) {_KAFKA} TBLPROPERTIES ('field.b' = 'a');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "a field for a column that is not declared",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('field.b' = 'c');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('field.a' = 'c');",
    ),
    Refusal(
        "a column without the name of its field",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('field.a' = '');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('field.a' = 'a');",
    ),
    Refusal(
        "a bad field that is neither NULL nor quarantined",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('on_bad_field' = 'drop');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('on_bad_field' = 'null');",
    ),
    Refusal(
        "an empty text that may be NULL",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('empty_as_null' = 'yes');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('empty_as_null' = 'true');",
    ),
    Refusal(
        "a reserved name",
        f"CREATE TABLE x (kafka_key STRING) {_KAFKA};",
        f"CREATE TABLE x (key STRING) {_KAFKA} TBLPROPERTIES ('field.key' = 'kafka_key');",
    ),
    Refusal(
        "a name of Iceberg's",
        f"CREATE TABLE x (_pos INT) {_KAFKA};",
        f"CREATE TABLE x (pos INT) {_KAFKA} TBLPROPERTIES ('field.pos' = '_pos');",
    ),
    Refusal(
        "UNIQUE of no column",
        f"CREATE TABLE x (a INT, UNIQUE (b)) {_KAFKA};",
        f"CREATE TABLE x (a INT, UNIQUE (a)) {_KAFKA};",
    ),
    Refusal(
        "UNIQUE of a list",
        f"CREATE TABLE x (a ARRAY<INT>, b INT, UNIQUE (a)) {_KAFKA};",
        f"CREATE TABLE x (a ARRAY<INT>, b INT, UNIQUE (b)) {_KAFKA};",
    ),
    Refusal(
        "UNIQUE twice",
        f"CREATE TABLE x (a INT UNIQUE, b INT UNIQUE) {_KAFKA};",
        f"CREATE TABLE x (a INT, b INT, UNIQUE (a, b)) {_KAFKA};",
    ),
    Refusal(
        "UNIQUE of a table",
        f"CREATE TABLE x (a INT PRIMARY KEY, b INT, UNIQUE (b)) {_KAFKA};",
        f"CREATE TABLE x (a INT PRIMARY KEY, b INT) {_KAFKA};",
    ),
    Refusal(
        "duplicates of a while that is none",
        f"CREATE TABLE x (a INT, UNIQUE (a)) {_KAFKA} TBLPROPERTIES ('dedupe_within' = 'an hour');",
        f"CREATE TABLE x (a INT, UNIQUE (a)) {_KAFKA} TBLPROPERTIES ('dedupe_within' = '1 hour');",
    ),
    Refusal(
        "a primary key of several values",
        f"CREATE TABLE x (a ARRAY<INT> PRIMARY KEY) {_KAFKA};",
        f"CREATE TABLE x (a INT PRIMARY KEY) {_KAFKA};",
    ),
    Refusal(
        "changes without a key",
        "CREATE TABLE x (a INT, b STRING) USING kafka OPTIONS (topic 'x', format 'debezium-json');",
        "CREATE TABLE x (op STRING, after STRUCT<a: INT, b: STRING>, ts_ms TIMESTAMP)"
        " USING kafka OPTIONS (topic 'x', format 'debezium-json');",
    ),
    Refusal(
        "a time of a change that is a number",
        "CREATE TABLE x (a INT PRIMARY KEY, b BIGINT) USING kafka OPTIONS (topic 'x', format 'debezium-json')"
        " TBLPROPERTIES ('event_time' = 'b');",
        "CREATE TABLE x (a INT PRIMARY KEY, b TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json')"
        " TBLPROPERTIES ('event_time' = 'b', 'epoch' = 'us');",
    ),
    Refusal(
        "a time that is a number",
        f"CREATE TABLE x (a BIGINT) {_KAFKA} TBLPROPERTIES ('event_time' = 'a');",
        f"CREATE TABLE x (a TIMESTAMP) {_KAFKA} TBLPROPERTIES ('event_time' = 'a', 'epoch' = 'ms');",
    ),
    Refusal(
        "a time that is computed",
        f"CREATE TABLE x (a BIGINT) {_KAFKA} TBLPROPERTIES ('event_time' = 'timestamp_millis(a)');",
        f"CREATE TABLE x (a TIMESTAMP) {_KAFKA} TBLPROPERTIES ('event_time' = 'a', 'epoch' = 'ms');",
    ),
    Refusal(
        "a unit that is none",
        f"CREATE TABLE x (a TIMESTAMP) {_KAFKA} TBLPROPERTIES ('epoch' = 'millis');",
        f"CREATE TABLE x (a TIMESTAMP) {_KAFKA} TBLPROPERTIES ('epoch' = 'ms');",
    ),
    Refusal(
        "a unit of no time",
        f"CREATE TABLE x (a BIGINT) {_KAFKA} TBLPROPERTIES ('epoch' = 'ms');",
        f"CREATE TABLE x (a TIMESTAMP) {_KAFKA} TBLPROPERTIES ('epoch' = 'ms');",
    ),
    Refusal(
        "two units",
        "CREATE TABLE x (ts_ms TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json', 'time.precision.mode' 'connect')"
        " TBLPROPERTIES ('epoch' = 'us');",
        "CREATE TABLE x (ts_ms TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json', 'time.precision.mode' 'connect');",
    ),
    Refusal(
        "a mode that Debezium has not",
        "CREATE TABLE x (a DECIMAL) USING kafka OPTIONS (topic 'x', format 'json', decimal.handling.mode 'text');",
        "CREATE TABLE x (a DECIMAL) USING kafka OPTIONS (topic 'x', format 'json', decimal.handling.mode 'string');",
    ),
    Refusal(
        "two primary keys",
        f"CREATE TABLE x (a INT PRIMARY KEY, b INT PRIMARY KEY) {_KAFKA};",
        f"CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b)) {_KAFKA};",
    ),
    Refusal(
        "key_format of a stream",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', key_format 'json');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "an unknown start",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'yesterday');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'latest');",
    ),
    Refusal(
        "a start at a time without a zone",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '2026-01-01T00:00:00');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '2026-01-01T00:00:00Z');",
    ),
    Refusal(
        "a start at an offset below 0",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{\"0\": -1}');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{\"0\": 4711}');",
    ),
    Refusal(
        "a start at two offsets of a partition",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{\"0\": 1, \"0\": 2}');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{\"0\": 1}');",
    ),
    Refusal(
        "a start among the properties",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('start' = 'latest');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'latest');",
    ),
    Refusal(
        "where a consumer begins",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', startingOffsets 'latest');",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'latest');",
    ),
    Refusal(
        "a text as the key of two columns",
        "CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b)) USING kafka OPTIONS (topic 'x', format 'json', key_format 'string');",
        "CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b)) USING kafka OPTIONS (topic 'x', format 'json', key_format 'json');",
    ),
    Refusal(
        "an unknown key_format",
        "CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json', key_format 'thrift');",
        f"CREATE TABLE x (a INT PRIMARY KEY) {_KAFKA};",
    ),
    Refusal(
        "a schema that is not of Protobuf",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema 'syntax = \"proto3\"; message A {{ int65 a = 1; }}');",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema 'syntax = \"proto3\"; message A {{ int64 a = 1; }}');",
    ),
    Refusal(
        "a descriptor that is none",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema 'c2hvcC5PcmRlcg==');",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema 'CiEKB2EucHJvdG8iDgoBQRIJCgFhGAEgASgFYgZwcm90bzM=');",
    ),
    Refusal(
        "a schema of several messages",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema '{_TWO}');",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema '{_TWO}', message 'shop.A');",
    ),
    Refusal(
        "a message that the schema lacks",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema '{_TWO}', message 'A');",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, schema '{_TWO}', message 'shop.B');",
    ),
    Refusal(
        "a message of no schema",
        f"CREATE TABLE x (a INT) {_PROTOBUF}, message 'shop.A');",
        f"CREATE TABLE x (a INT) {_PROTOBUF});",
    ),
    Refusal(
        "a long name of a source",
        f"CREATE TABLE {'x' * 37} (a INT) {_KAFKA};",
        f"CREATE TABLE {'x' * 36} (a INT) {_KAFKA};",
    ),
    Refusal(
        "a collation",
        f"CREATE TABLE x (a STRING COLLATE UTF8_LCASE) {_KAFKA};",
        f"CREATE TABLE x (a STRING) {_KAFKA};",
    ),
    Refusal(
        "a computed column",
        f"CREATE TABLE x (a INT, b INT GENERATED ALWAYS AS (a + 1)) {_KAFKA};",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "NOT NULL in a struct",
        f"CREATE TABLE x (a STRUCT<b: INT NOT NULL>) {_KAFKA};",
        f"CREATE TABLE x (a STRUCT<b: INT>) {_KAFKA};",
    ),
    Refusal("NOT NULL", f"CREATE TABLE x (a INT NOT NULL) {_KAFKA};", f"CREATE TABLE x (a INT) {_KAFKA};"),
    Refusal(
        "event_time of no column",
        f"CREATE TABLE x (at TIMESTAMP) {_KAFKA} TBLPROPERTIES ('event_time' = 'att');",
        f"CREATE TABLE x (at TIMESTAMP) {_KAFKA} TBLPROPERTIES ('event_time' = 'at');",
    ),
    Refusal(
        "event_time of a change by another name",
        "CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'debezium-json')"
        " TBLPROPERTIES ('event_time' = 'source.ts_us');",
        "CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'debezium-json')"
        " TBLPROPERTIES ('event_time' = 'source.ts_ms');",
    ),
    Refusal(
        "a placeholder of a stream",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', 'unavailable.value.placeholder' 'same');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal(
        "event_time of another type",
        f"CREATE TABLE x (at STRING) {_KAFKA} TBLPROPERTIES ('event_time' = 'at');",
        f"CREATE TABLE x (at TIMESTAMP) {_KAFKA} TBLPROPERTIES ('event_time' = 'at');",
    ),
    Refusal(
        "an unknown property",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('partition' = '2');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('partitions' = '2');",
    ),
    Refusal(
        "partitions that are no number",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('partitions' = 'two');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('partitions' = '2');",
    ),
    Refusal(
        "a size without its unit",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('quarantine_bytes' = '1000000');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('quarantine_bytes' = '100 MB');",
    ),
    Refusal(
        "an age that is no number of days",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('quarantine_age' = 'a while');",
        f"CREATE TABLE x (a INT) {_KAFKA} TBLPROPERTIES ('quarantine_age' = '30 days');",
    ),
    Refusal(
        "two sources on one topic",
        "CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'events', format 'json');",
        f"CREATE TABLE x (a INT) {_KAFKA};",
    ),
    Refusal("a name twice", f"CREATE TABLE orders (a INT) {_KAFKA};", f"CREATE TABLE x (a INT) {_KAFKA};"),
    Refusal("a name that Postgres folds", f"CREATE TABLE Xs (a INT) {_KAFKA};", f"CREATE TABLE xs (a INT) {_KAFKA};"),
    Refusal("no declaration", "DROP TABLE events;", ""),
    Refusal(
        "OR REPLACE",
        "CREATE OR REPLACE VIEW v AS SELECT count(*) AS n FROM events;",
        "CREATE VIEW v AS SELECT count(*) AS n FROM events;",
    ),
    Refusal(
        "a syntax error",
        "CREATE VIEW v AS SELECT count(* FROM events;",
        "CREATE VIEW v AS SELECT count(*) AS n FROM events;",
    ),
    Refusal(
        "an open quote", "CREATE VIEW v AS SELECT 'x FROM events;", "CREATE VIEW v AS SELECT 'x' AS x FROM events;"
    ),
    Refusal(
        "a wrong number of names",
        "CREATE VIEW v (a, b) AS SELECT count(*) FROM events;",
        "CREATE VIEW v (a) AS SELECT count(*) FROM events;",
    ),
    Refusal(
        "retain without a time",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT count(*) AS n FROM events;",
        "CREATE VIEW v AS SELECT count(*) AS n FROM events;",
    ),
    Refusal(
        "retain over what is exploded of groups",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT d, count(*) AS n FROM hourly LATERAL VIEW explode(array(hour)) t AS d GROUP BY d;",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT d, count(*) AS n FROM events LATERAL VIEW explode(array(ts)) t AS d GROUP BY d;",
    ),
    Refusal(
        "retain beside a subquery",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events WHERE user_id IN (SELECT user_id FROM orders) GROUP BY day;",
        "CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT day, user_id, count(*) AS n FROM events GROUP BY day, user_id;"
        " CREATE VIEW v AS SELECT day, sum(n) AS n FROM w WHERE user_id IN (SELECT user_id FROM orders) GROUP BY day;",
    ),
    Refusal(
        "retain beside a window function",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, sum(count(*)) OVER (ORDER BY day) AS n FROM events GROUP BY day;",
        "CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events GROUP BY day;"
        " CREATE VIEW v AS SELECT day, sum(n) OVER (ORDER BY day) AS n FROM w;",
    ),
    Refusal(
        "retain beside LIMIT",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events GROUP BY day ORDER BY day LIMIT 7;",
        "CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events GROUP BY day;"
        " CREATE VIEW v AS SELECT day, n FROM w ORDER BY day LIMIT 7;",
    ),
    Refusal(
        "retain beside a hopping window",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, window(ts, '1 hour', '5 minutes').start AS w, count(*) AS n FROM events GROUP BY day, window(ts, '1 hour', '5 minutes');",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT window(ts, '5 minutes').start AS w, count(*) AS n FROM events GROUP BY window(ts, '5 minutes');",
    ),
    Refusal(
        "what only records tell, of a view that retains",
        "CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT user_id, kind, ts FROM events; CREATE VIEW v AS SELECT user_id, last(kind) AS kind FROM w GROUP BY user_id;",
        "CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT user_id, kind, ts FROM events; CREATE VIEW v AS SELECT user_id, max_by(kind, ts) AS kind FROM w GROUP BY user_id;",
    ),
    Refusal(
        "a CTE that hides the source of a view over it",
        "CREATE VIEW x AS SELECT user_id, kind FROM events WHERE amount > 1;"
        " CREATE VIEW v AS WITH events AS (SELECT 1 AS one) SELECT user_id, last(kind) AS kind FROM x GROUP BY user_id;",
        "CREATE VIEW x AS SELECT user_id, kind FROM events WHERE amount > 1;"
        " CREATE VIEW v AS WITH one AS (SELECT 1 AS one) SELECT user_id, last(kind) AS kind FROM x GROUP BY user_id;",
    ),
    Refusal(
        "retain by the time of a side that may be missing",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT e.day, count(*) AS n FROM orders o LEFT JOIN events e ON e.user_id = o.user_id GROUP BY e.day;",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT e.day, count(*) AS n FROM orders o JOIN events e ON e.user_id = o.user_id GROUP BY e.day;",
    ),
    Refusal(
        "retain by a time that is no column of cells",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT date_add(e.day, 1) AS x FROM events e JOIN orders o ON e.user_id = o.user_id AND date_add(e.day, 1) > o.ts;",
        "CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT e.day FROM events e JOIN orders o ON e.user_id = o.user_id AND date_add(e.day, 1) > o.ts;",
    ),
    Refusal(
        "an unknown policy",
        "CREATE VIEW v TBLPROPERTIES ('on_difference' = 'stop') AS SELECT count(*) AS n FROM events;",
        "CREATE VIEW v TBLPROPERTIES ('on_difference' = 'hold') AS SELECT count(*) AS n FROM events;",
    ),
    Refusal(
        "a circle of views",
        "CREATE VIEW v AS SELECT n FROM w; CREATE VIEW w AS SELECT n FROM v;",
        "CREATE VIEW v AS SELECT n FROM w; CREATE VIEW w AS SELECT n FROM hourly;",
    ),
    Refusal(
        "several mistakes at once",
        f"CREATE TABLE x (a INT, b) {_KAFKA};\nCREATE VIEW v AS SELECT contry, count(*) AS n FROM events GROUP BY contry;\n"
        "CREATE VIEW w AS SELECT n FROM hourlie;",
        f"CREATE TABLE x (a INT, b INT) {_KAFKA};",
    ),
]

VIEWS = [
    view(
        "an unknown column",
        "SELECT contry, count(*) AS n\nFROM events\nGROUP BY contry",
        "SELECT country, count(*) AS n FROM events GROUP BY country",
    ),
    view("an unknown relation", "SELECT count(*) AS n FROM event", "SELECT count(*) AS n FROM events"),
    view(
        "an unknown field",
        "SELECT payload.user.nam AS x, count(*) AS n FROM events GROUP BY 1",
        "SELECT payload.user.name AS x, count(*) AS n FROM events GROUP BY 1",
    ),
    view("an unknown function", "SELECT lenght(kind) AS x FROM events", "SELECT length(kind) AS x FROM events"),
    view(
        "a wrong argument",
        "SELECT hour(kind) AS x FROM events",
        "SELECT hour(CAST(kind AS TIMESTAMP)) AS x FROM events",
    ),
    view(
        "an unnamed column",
        "SELECT country, count(*) % 2 FROM events GROUP BY country",
        "SELECT country, count(*) % 2 AS n FROM events GROUP BY country",
    ),
    Refusal(
        "duplicates of a while",
        "CREATE TABLE more (x STRING) USING kafka OPTIONS (topic 'more', format 'json') TBLPROPERTIES ('dedupe_within' = '1 day');",
        "CREATE TABLE more (x STRING UNIQUE) USING kafka OPTIONS (topic 'more', format 'json') TBLPROPERTIES ('dedupe_within' = '1 day');",
    ),
    Refusal(
        "a word that SQL does not have",
        "CREATE VIEW v AS SELEC country FROM events;",
        "CREATE VIEW v AS SELECT country FROM events;",
    ),
    Refusal(
        "a type that there is not",
        "CREATE TABLE more (x STRIN) USING kafka OPTIONS (topic 'more', format 'json');",
        "CREATE TABLE more (x STRING) USING kafka OPTIONS (topic 'more', format 'json');",
    ),
    view("a name twice in a view", "SELECT country, kind AS country FROM events", "SELECT country, kind FROM events"),
    view(
        "a name of the database's own",
        "SELECT kind AS ctid, count(*) AS n FROM events GROUP BY kind",
        "SELECT kind AS another_name, count(*) AS n FROM events GROUP BY kind",
    ),
    view(
        "neither grouped nor aggregated",
        "SELECT country, kind, count(*) AS n FROM events GROUP BY country",
        "SELECT country, max(kind) AS kind, count(*) AS n FROM events GROUP BY country",
    ),
    view(
        "neither grouped nor aggregated, of a view",
        "SELECT country, sum(n) AS n FROM hourly",
        "SELECT max(country) AS country, sum(n) AS n FROM hourly",
    ),
    view(
        "the greatest struct with a list",
        "SELECT country, max(struct(ts, tags)).tags AS tags FROM events GROUP BY country",
        "SELECT country, max(struct(ts, to_json(tags) AS tags)).tags AS tags FROM events GROUP BY country",
    ),
    view(
        "the greatest struct over a window",
        "SELECT country, max(struct(n, hour)) OVER (PARTITION BY country) AS m FROM hourly",
        "SELECT country, m FROM hourly JOIN (SELECT country, max(struct(n, hour)) AS m FROM hourly GROUP BY country) AS best USING (country)",
    ),
    view(
        "a set of structs above",
        "SELECT collect_set(struct(country, n)) AS s FROM hourly",
        "SELECT sort_array(collect_list(struct(country, n))) AS s FROM (SELECT DISTINCT country, n FROM hourly)",
    ),
    view(
        "a lambda above",
        "SELECT country, aggregate(collect_set(user_id), 0L, (a, x) -> a + x) AS s FROM events GROUP BY country",
        "SELECT country, sum(e) AS s FROM (SELECT country, collect_set(user_id) AS ids FROM events GROUP BY country) LATERAL VIEW explode(ids) t AS e GROUP BY country",
    ),
    view("GROUP BY ()", "SELECT count(*) AS n FROM events GROUP BY ()", "SELECT count(*) AS n FROM events"),
    view(
        "() beside columns",
        "SELECT country, count(*) AS n FROM events GROUP BY country, ()",
        "SELECT country, count(*) AS n FROM events GROUP BY country",
    ),
    view(
        "columns of GROUP BY in parentheses",
        "SELECT country, kind, count(*) AS n FROM events GROUP BY (country, kind)",
        "SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind",
    ),
    view(
        "GROUP BY DISTINCT",
        "SELECT country, count(*) AS n FROM events GROUP BY DISTINCT ROLLUP (country), ROLLUP (country)",
        "SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country)",
    ),
    view(
        "GROUP BY ALL and a column",
        "SELECT country, count(*) AS n FROM events GROUP BY ALL country",
        "SELECT country, count(*) AS n FROM events GROUP BY ALL",
    ),
    view(
        "a constant among groupings",
        "SELECT 'all' AS of, country, count(*) AS n FROM events GROUP BY CUBE ('all', country)",
        "SELECT 'all' AS of, country, count(*) AS n FROM events GROUP BY CUBE (country)",
    ),
    view(
        "groupings in an order that is not selected",
        "SELECT coalesce(country, 'all') AS c, count(*) AS n FROM events GROUP BY ROLLUP (country) ORDER BY grouping(country), n",
        "SELECT coalesce(country, 'all') AS c, country, count(*) AS n FROM events GROUP BY ROLLUP (country) ORDER BY grouping(country), n",
    ),
    view(
        "groupings of what is not selected",
        "SELECT country, count(*) AS n FROM events GROUP BY CUBE (country, kind) HAVING grouping(kind) = 0",
        "SELECT country, kind, count(*) AS n FROM events GROUP BY CUBE (country, kind) HAVING grouping(kind) = 0",
    ),
    view(
        "grouping() of two columns",
        "SELECT country, kind, grouping(country, kind) AS g FROM events GROUP BY CUBE (country, kind)",
        "SELECT country, kind, grouping_id() AS g FROM events GROUP BY CUBE (country, kind)",
    ),
    view(
        "() in ROLLUP",
        "SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country, ())",
        "SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country)",
    ),
    view(
        "GROUPING SETS by two columns that are one",
        "SELECT count(*) AS n FROM events GROUP BY GROUPING SETS ((user_id + 1), (1 + user_id))",
        "SELECT count(*) AS n FROM events GROUP BY GROUPING SETS ((user_id + 1), (user_id + 1))",
    ),
    view(
        "a window function in HAVING",
        "SELECT country, sum(n) AS n FROM hourly GROUP BY country HAVING rank() OVER (ORDER BY sum(n)) = 1",
        "SELECT country, n FROM (SELECT country, n, rank() OVER (ORDER BY n) AS r FROM (SELECT country, sum(n) AS n FROM hourly GROUP BY country)) WHERE r = 1",
    ),
    view(
        "a window function in ON",
        "SELECT a.n FROM hourly a JOIN hourly b ON a.hour = b.hour AND rank() OVER (ORDER BY a.n) = 1",
        "SELECT a.n FROM (SELECT hour, n, rank() OVER (ORDER BY n) AS r FROM hourly) a JOIN hourly b ON a.hour = b.hour AND a.r = 1",
    ),
    view(
        "ORDER BY a column of a UNION that has no name",
        "SELECT n FROM (SELECT country, count(*) % 5 FROM events GROUP BY country UNION SELECT 'x', 1 ORDER BY 2 LIMIT 1) AS q(country, n)",
        "SELECT n FROM (SELECT country, count(*) % 5 AS m FROM events GROUP BY country UNION SELECT 'x', 1 ORDER BY 2 LIMIT 1) AS q(country, n)",
    ),
    view(
        "* without a field of a column",
        "SELECT * EXCEPT (payload, tags, payload.user) FROM events",
        "SELECT * EXCEPT (payload, tags) FROM events",
    ),
    view(
        "* without a column that there is not",
        "SELECT * EXCEPT (kinds) FROM hourly",
        "SELECT * EXCEPT (n) FROM hourly",
    ),
    view(
        "* of a column without a name",
        "SELECT * FROM (SELECT country, max(n) % 10 FROM hourly GROUP BY country)",
        "SELECT * FROM (SELECT country, max(n) % 10 AS n FROM hourly GROUP BY country)",
    ),
    view(
        "one name for two columns of a subquery",
        "SELECT k, n FROM (SELECT country AS k, kind AS k, count(*) AS n FROM events GROUP BY country, kind)",
        "SELECT k, n FROM (SELECT country AS k, kind AS j, count(*) AS n FROM events GROUP BY country, kind)",
    ),
    view(
        "a percentile that is hardly approximate",
        "SELECT country, percentile_approx(amount, 0.9, 1000000) AS p FROM events GROUP BY country",
        "SELECT country, percentile_approx(amount, 0.9, 100) AS p FROM events GROUP BY country",
    ),
    view(
        "a percentile of text",
        "SELECT country, percentile_approx(kind, 0.9) AS p FROM events GROUP BY country",
        "SELECT country, percentile_approx(CAST(kind AS DOUBLE), 0.9) AS p FROM events GROUP BY country",
    ),
    view(
        "a percentile of more than all",
        "SELECT country, percentile(amount, 90) AS p FROM events GROUP BY country",
        "SELECT country, percentile(amount, 0.9) AS p FROM events GROUP BY country",
    ),
    view(
        "a percentile that a record decides",
        "SELECT country, percentile(amount, price) AS p FROM events GROUP BY country",
        "SELECT country, percentile(amount, 0.5) AS p FROM events GROUP BY country",
    ),
    view(
        "an estimate above the aggregation",
        "SELECT approx_count_distinct(n) AS m FROM hourly",
        "SELECT count(DISTINCT n) AS m FROM hourly",
    ),
    view(
        "different arrays",
        "SELECT count(DISTINCT split(kind, ' ')) AS n FROM events",
        "SELECT count(DISTINCT to_json(split(kind, ' '))) AS n FROM events",
    ),
    view(
        "SELECT DISTINCT of an array",
        "SELECT DISTINCT country, split(kind, ' ') AS words FROM events",
        "SELECT DISTINCT country, to_json(split(kind, ' ')) AS words FROM events",
    ),
    view(
        "clauses that nothing reads",
        "SELECT country, n FROM hourly FETCH FIRST 3 ROWS ONLY",
        "SELECT country, n FROM hourly LIMIT 3",
    ),
    view(
        "PIVOT with an alias, which Spark does not read",
        "SELECT p.nl FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL' AS nl, 'FR')) AS p",
        "SELECT p.nl FROM (SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL' AS nl, 'FR'))) AS p",
    ),
    view(
        "PIVOT beside a join",
        "SELECT * FROM hourly AS h JOIN (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL', 'FR')) ON h.n = NL",
        "SELECT * FROM hourly AS h JOIN (SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL', 'FR'))) AS p ON h.n = p.NL",
    ),
    view(
        "PIVOT of several aggregates without names",
        "SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n), max(n) FOR country IN ('NL', 'FR'))",
        "SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) AS total, max(n) AS most FOR country IN ('NL', 'FR'))",
    ),
    view(
        "PIVOT of a count beside a text",
        "SELECT * FROM (SELECT kind, country FROM events) PIVOT (count(*) AS n, max(country) AS c FOR kind IN ('show', 'click'))",
        "SELECT count(*) FILTER (WHERE kind = 'show') AS n, max(country) FILTER (WHERE kind = 'show') AS c FROM events",
    ),
    view(
        "PIVOT by a value without a name",
        "SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR n IN (1.5))",
        "SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR n IN (1.5 AS some))",
    ),
    view(
        "PIVOT of several columns without names",
        "SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN (('NL', 'show')))",
        "SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN (('NL', 'show') AS nl))",
    ),
    view(
        "PIVOT of several columns, a value for one",
        "SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN ('NL' AS nl))",
        "SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN (('NL', 'show') AS nl))",
    ),
    view(
        "a frame that ends before it begins",
        "SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING) AS s FROM hourly",
        "SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM hourly",
    ),
    view(
        "lag over a frame",
        "SELECT n, lag(n) OVER (ORDER BY hour, country ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM hourly",
        "SELECT n, lag(n) OVER (ORDER BY hour, country) AS s FROM hourly",
    ),
    view(
        "a rank of all rows of a frame",
        "SELECT n, rank() OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS r FROM hourly",
        "SELECT n, rank() OVER (ORDER BY n) AS r FROM hourly",
    ),
    view(
        "two windows of one name",
        "SELECT n, rank() OVER w AS r FROM hourly WINDOW w AS (ORDER BY n), w AS (ORDER BY hour)",
        "SELECT n, rank() OVER w AS r FROM hourly WINDOW w AS (ORDER BY n), v AS (ORDER BY hour)",
    ),
    view(
        "DISTINCT in the order of something else",
        "SELECT DISTINCT country FROM hourly ORDER BY upper(country), n",
        "SELECT DISTINCT country, n FROM hourly ORDER BY upper(country), n",
    ),
    view(
        "any row of a subquery about a row",
        "SELECT a.country, (SELECT b.n FROM hourly b WHERE b.country = a.country) AS n FROM hourly a",
        "SELECT a.country, (SELECT max(b.n) FROM hourly b WHERE b.country = a.country) AS n FROM hourly a",
    ),
    view(
        "WHERE NULL",
        "SELECT count(*) AS n FROM events WHERE NULL",
        "SELECT count(*) AS n FROM events WHERE CAST(NULL AS BOOLEAN)",
    ),
    view(
        "a percentile of FLOAT",
        "SELECT percentile_approx(CAST(price AS FLOAT), 0.9) AS p FROM events",
        "SELECT percentile_approx(CAST(price AS DOUBLE), 0.9) AS p FROM events",
    ),
    view(
        "EXCLUDE in a frame",
        "SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS s FROM hourly",
        "SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM hourly",
    ),
    view(
        "decades between two times",
        "SELECT country, timestampdiff(DECADE, min(hour), max(hour)) AS m FROM hourly GROUP BY country",
        "SELECT country, timestampdiff(YEAR, min(hour), max(hour)) div 10 AS m FROM hourly GROUP BY country",
    ),
    view(
        "percentile_disc in descending order",
        "SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY n DESC) AS p FROM hourly",
        "SELECT max(n) AS p FROM (SELECT n, cume_dist() OVER (ORDER BY n DESC) AS share FROM hourly WHERE n IS NOT NULL) WHERE share >= 0.9",
    ),
    view("a comma too many", "SELECT country,, kind FROM events", "SELECT country, kind FROM events"),
    view("a comma at the end", "SELECT country, FROM events", "SELECT country FROM events"),
    view("nothing selected", "SELECT FROM events", "SELECT country FROM events"),
    view(
        "OVER of nothing", "SELECT sum(user_id) OVER AS n FROM events", "SELECT sum(user_id) OVER () AS n FROM events"
    ),
    view("no condition", "SELECT country FROM events WHERE", "SELECT country FROM events"),
    view("half a sum", "SELECT user_id + FROM events", "SELECT user_id + 1 AS n FROM events"),
    view(
        "SIMILAR TO",
        "SELECT kind FROM events WHERE kind SIMILAR TO 'a|b'",
        "SELECT kind FROM events WHERE kind RLIKE '^(a|b)$'",
    ),
    view(
        "IN a list",
        "SELECT kind FROM events WHERE kind IN tags",
        "SELECT kind FROM events WHERE array_contains(tags, kind)",
    ),
    view(
        "a SELECT in array()",
        "SELECT array(SELECT id FROM orders) AS ids, count(*) AS n FROM events",
        "SELECT (SELECT sort_array(collect_list(id)) FROM orders) AS ids, count(*) AS n FROM events",
    ),
    view(
        "a list with LIMIT",
        "SELECT country, array_agg(kind LIMIT 3) AS k FROM events GROUP BY country",
        "SELECT country, slice(sort_array(collect_list(kind)), 1, 3) AS k FROM events GROUP BY country",
    ),
    view(
        "ASOF JOIN",
        "SELECT o.id, p.price FROM orders o ASOF JOIN prices p ON o.user_id = p.user_id AND o.ts >= p.ts",
        "SELECT o.id, p.price FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id",
    ),
    view(
        "a join of a text with a number",
        "SELECT count(*) AS n FROM events e JOIN users u ON e.event_id = u.user_id",
        "SELECT count(*) AS n FROM events e JOIN users u ON CAST(e.event_id AS BIGINT) = u.user_id",
    ),
    view(
        "a join of a decimal with a text, in WHERE",
        "SELECT count(*) AS n FROM events e, users u WHERE e.amount = u.name AND e.user_id = u.user_id",
        "SELECT count(*) AS n FROM events e, users u WHERE e.amount = CAST(u.name AS DECIMAL(10,2)) AND e.user_id = u.user_id",
    ),
    view(
        "a join of a text with a number, USING",
        "SELECT count(*) AS n FROM (SELECT event_id AS id FROM events) e JOIN orders o USING (id)",
        "SELECT count(*) AS n FROM (SELECT CAST(event_id AS BIGINT) AS id FROM events) e JOIN orders o USING (id)",
    ),
    view(
        "percentile_approx over a join",
        "SELECT percentile_approx(p.price, 0.5) AS m FROM orders o JOIN prices p ON o.user_id = p.user_id",
        "SELECT percentile(p.price, 0.5) AS m FROM orders o JOIN prices p ON o.user_id = p.user_id",
    ),
    view(
        "OUTER JOIN",
        "SELECT o.id FROM orders o OUTER JOIN users u",
        "SELECT o.id FROM orders o FULL JOIN users u ON o.user_id = u.user_id",
    ),
    view(
        "CORRESPONDING",
        "SELECT user_id FROM orders UNION CORRESPONDING SELECT user_id FROM users",
        "SELECT user_id FROM orders UNION SELECT user_id FROM users",
    ),
    view(
        "pairs of values",
        "SELECT kind FROM events WHERE (kind, country) = ('a', 'b')",
        "SELECT kind FROM events WHERE kind = 'a' AND country = 'b'",
    ),
    view(
        "nested too deeply", f"SELECT {'(' * 900}user_id{')' * 900} AS u FROM events", "SELECT user_id AS u FROM events"
    ),
    view(
        "mode in descending order",
        "SELECT mode() WITHIN GROUP (ORDER BY amount DESC) AS m FROM events",
        "SELECT amount AS m FROM (SELECT amount, row_number() OVER (ORDER BY count(*) DESC, amount DESC) AS r FROM events WHERE amount IS NOT NULL GROUP BY amount) WHERE r = 1",
    ),
    view(
        "WITHIN GROUP before OVER",
        "SELECT country, n, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) OVER (PARTITION BY country) AS m FROM hourly",
        "SELECT country, n, m FROM hourly JOIN (SELECT country, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS m FROM hourly GROUP BY country) USING (country)",
    ),
    view(
        "a column that a join gives beside one that another gives once",
        "SELECT country, a.n FROM hourly a JOIN hourly b USING (country) JOIN hourly c ON a.country = c.country",
        "SELECT a.country, a.n FROM hourly a JOIN hourly b USING (country) JOIN hourly c ON a.country = c.country",
    ),
    view(
        "all columns of a join beside one that gives some once",
        "SELECT * FROM (SELECT country FROM hourly) a NATURAL JOIN (SELECT country, n FROM hourly) b JOIN (SELECT country, hour FROM hourly) c ON a.country = c.country",
        "SELECT a.*, b.n, c.hour FROM (SELECT country FROM hourly) a NATURAL JOIN (SELECT country, n FROM hourly) b JOIN (SELECT country, hour FROM hourly) c ON a.country = c.country",
    ),
    view(
        "a window function of what stands before LATERAL",
        "SELECT a.country, l.m FROM hourly a JOIN LATERAL (SELECT max(b.n + a.n) OVER (PARTITION BY b.hour) AS m FROM hourly b WHERE b.country = a.country) AS l ON true",
        "SELECT a.country, l.m + a.n AS m FROM hourly a JOIN LATERAL (SELECT max(b.n) OVER (PARTITION BY b.hour) AS m FROM hourly b WHERE b.country = a.country) AS l ON true",
    ),
    view(
        "to_json of what groups give",
        "SELECT country, to_json(named_struct('n', count(*), 's', sum(amount))) AS j FROM events GROUP BY country",
        "SELECT country, named_struct('n', count(*), 's', sum(amount)) AS j FROM events GROUP BY country",
    ),
    view(
        "a lateral subquery on a condition",
        "SELECT a.country, l.n FROM hourly a LEFT JOIN LATERAL (SELECT n FROM hourly b WHERE b.country = a.country) AS l ON l.n > a.n",
        "SELECT a.country, l.n FROM hourly a LEFT JOIN LATERAL (SELECT n FROM hourly b WHERE b.country = a.country AND b.n > a.n) AS l ON true",
    ),
    view(
        "a join in parentheses on the right",
        "SELECT c.hour, a.n FROM hourly c LEFT JOIN (hourly a JOIN hourly b ON a.country = b.country) ON a.country = c.country",
        "SELECT c.hour, ab.n FROM hourly c LEFT JOIN (SELECT a.country, a.n FROM hourly a JOIN hourly b ON a.country = b.country) AS ab ON ab.country = c.country",
    ),
    view(
        "a JOIN before the ON of another",
        "SELECT c.hour, a.n FROM hourly c JOIN hourly a JOIN hourly b ON a.country = b.country ON a.country = c.country",
        "SELECT c.hour, ab.n FROM hourly c JOIN (SELECT a.country, a.n FROM hourly a JOIN hourly b ON a.country = b.country) AS ab ON ab.country = c.country",
    ),
    view(
        "a join in parentheses with a name",
        "SELECT ab.x FROM ((SELECT country, n AS x FROM hourly) a JOIN hourly b ON a.x = b.n) ab",
        "SELECT ab.x FROM (SELECT a.x FROM (SELECT country, n AS x FROM hourly) a JOIN hourly b ON a.x = b.n) ab",
    ),
    view(
        "PIVOT in parentheses",
        "SELECT NL FROM ((SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL')))",
        "SELECT NL FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL'))",
    ),
    view(
        "PIVOT in parentheses with a name",
        "SELECT p.NL FROM ((SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL'))) p",
        "SELECT p.NL FROM (SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL'))) p",
    ),
    view(
        "a column of the query two around",
        "SELECT a.country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b WHERE b.country = a.country AND EXISTS (SELECT 1 FROM events c WHERE c.country = b.country AND c.user_id > a.n))",
        "SELECT a.country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b JOIN (SELECT country, user_id FROM events GROUP BY ALL) c ON c.country = b.country WHERE b.country = a.country AND c.user_id > a.n)",
    ),
    view(
        "percentile_cont without its order",
        "SELECT percentile_cont(amount, 0.9) AS p FROM events",
        "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY amount) AS p FROM events",
    ),
    view(
        "WITHIN GROUP of an aggregate without order",
        "SELECT sum(amount) WITHIN GROUP (ORDER BY ts) AS s FROM events",
        "SELECT sum(amount) AS s FROM events",
    ),
    view(
        "listagg up and down",
        "SELECT listagg(kind, ',') WITHIN GROUP (ORDER BY ts, user_id DESC) AS k FROM events",
        "SELECT listagg(kind, ',') WITHIN GROUP (ORDER BY ts, -user_id) AS k FROM events",
    ),
    view(
        "listagg of distinct values in another order",
        "SELECT listagg(DISTINCT kind) WITHIN GROUP (ORDER BY user_id) AS k FROM events",
        "SELECT listagg(DISTINCT kind) WITHIN GROUP (ORDER BY kind) AS k FROM events",
    ),
    view(
        "a list of distinct values",
        "SELECT collect_list(DISTINCT kind) AS k FROM events",
        "SELECT collect_set(kind) AS k FROM events",
    ),
    view(
        "a window of another block",
        "SELECT country, sum(n) OVER w AS s FROM (SELECT * FROM hourly WINDOW w AS (PARTITION BY country))",
        "SELECT country, sum(n) OVER w AS s FROM (SELECT * FROM hourly) WINDOW w AS (PARTITION BY country)",
    ),
    view(
        "a window that adds to another",
        "SELECT country, sum(n) OVER v AS s FROM hourly WINDOW w AS (PARTITION BY country), v AS (w ORDER BY hour)",
        "SELECT country, sum(n) OVER (PARTITION BY country ORDER BY hour) AS s FROM hourly",
    ),
    view(
        "a window by the name of a name",
        "SELECT country, sum(n) OVER v AS s FROM hourly WINDOW w AS (PARTITION BY country), u AS w, v AS u",
        "SELECT country, sum(n) OVER (PARTITION BY country) AS s FROM hourly",
    ),
    view(
        "a sum after ||",
        "SELECT event_id, kind || user_id + 1 AS k FROM events",
        "SELECT event_id, kind || (user_id + 1) AS k FROM events",
    ),
    view(
        "LIKE after =",
        "SELECT event_id, (amount > 1) = kind LIKE 'a%' AS k FROM events",
        "SELECT event_id, (amount > 1) = (kind LIKE 'a%') AS k FROM events",
    ),
    view(
        "an INTERVAL as it is written",
        "SELECT event_id, INTERVAL 1 DAY AS a FROM events",
        "SELECT event_id, ts + INTERVAL 1 DAY - ts AS a FROM events",
    ),
    view(
        "a list of intervals",
        "SELECT event_id, array(INTERVAL 1 DAY, INTERVAL 2 DAYS) AS a FROM events",
        "SELECT event_id, array(86400, unix_timestamp(ts) - unix_timestamp(day)) AS a FROM events",
    ),
    view(
        "a sign before a text",
        "SELECT event_id, +kind AS k FROM events",
        "SELECT event_id, CAST(kind AS DOUBLE) AS k FROM events",
    ),
    view(
        "a range of numbers",
        "SELECT country, n, sum(n) OVER (ORDER BY n RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) AS s FROM hourly",
        "SELECT country, n, sum(n) OVER (ORDER BY n RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM hourly",
    ),
    view(
        "a range of numbers over times",
        "SELECT n, sum(n) OVER (ORDER BY hour RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM hourly",
        "SELECT n, sum(n) OVER (ORDER BY n RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM hourly",
    ),
    view(
        "a range of time over a number",
        "SELECT country, n, sum(n) OVER (ORDER BY n RANGE BETWEEN INTERVAL 3 HOURS PRECEDING AND CURRENT ROW) AS s FROM hourly",
        "SELECT country, n, sum(n) OVER (ORDER BY hour RANGE BETWEEN INTERVAL 3 HOURS PRECEDING AND CURRENT ROW) AS s FROM hourly",
    ),
    view(
        "a range of hours over days",
        "SELECT day, sum(count(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 24 HOURS PRECEDING AND CURRENT ROW) AS s FROM events GROUP BY day",
        "SELECT day, sum(count(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS s FROM events GROUP BY day",
    ),
    view(
        "a range of two units",
        "SELECT n, sum(n) OVER (ORDER BY hour RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 HOUR FOLLOWING) AS s FROM hourly",
        "SELECT n, sum(n) OVER (ORDER BY hour RANGE BETWEEN INTERVAL 24 HOURS PRECEDING AND INTERVAL 1 HOUR FOLLOWING) AS s FROM hourly",
    ),
    view(
        "a set of structs of doubles",
        "SELECT collect_set(struct(price, kind)) AS a FROM events",
        "SELECT collect_set(to_json(struct(price, kind))) AS a FROM events",
    ),
    view(
        "the last of joined groups",
        "SELECT a.country, last(b.n) AS n FROM hourly a JOIN hourly b ON b.country = a.country GROUP BY a.country",
        "SELECT a.country, max_by(b.n, b.hour) AS n FROM hourly a JOIN hourly b ON b.country = a.country GROUP BY a.country",
    ),
    view(
        "a session of joined rows whose gap each row states",
        "SELECT h.n, session_window(e.ts, e.kind).start AS s, count(*) AS c FROM events e"
        " JOIN hourly h ON h.country = e.country GROUP BY h.n, session_window(e.ts, e.kind)",
        "SELECT h.n, session_window(e.ts, '5 minutes').start AS s, count(*) AS c FROM events e"
        " JOIN hourly h ON h.country = e.country GROUP BY h.n, session_window(e.ts, '5 minutes')",
    ),
    view(
        "the last above the aggregation",
        "SELECT country, last(n) AS n FROM hourly GROUP BY country",
        "SELECT country, max_by(n, hour) AS n FROM hourly GROUP BY country",
    ),
    view(
        "the last word of a record",
        "SELECT country, last(letter) AS l FROM events LATERAL VIEW explode(split(kind, '')) t AS letter GROUP BY country",
        "SELECT country, last(right(kind, 1)) AS l FROM events GROUP BY country",
    ),
    view(
        "max_by of one argument",
        "SELECT max_by(kind) AS k FROM events",
        "SELECT max_by(kind, ts) AS k FROM events",
    ),
    view(
        "IGNORE NULLS of an aggregate that always does",
        "SELECT max(kind) IGNORE NULLS AS k FROM events",
        "SELECT max(kind) AS k FROM events",
    ),
    view(
        "a count that is nearly exact",
        "SELECT approx_count_distinct(user_id, 0.001) AS n FROM events",
        "SELECT count(DISTINCT user_id) AS n FROM events",
    ),
    view(
        "a relative error that is none",
        "SELECT approx_count_distinct(user_id, 10) AS n FROM events",
        "SELECT approx_count_distinct(user_id, 0.05) AS n FROM events",
    ),
    view(
        "a histogram",
        "SELECT country, histogram_numeric(amount, 10) AS k FROM events GROUP BY country",
        "SELECT country, floor(amount / 10) AS bucket, count(*) AS n FROM events GROUP BY country, floor(amount / 10)",
    ),
    view(
        "count_if of a number",
        "SELECT count_if(price) AS n FROM events",
        "SELECT count_if(price > 0) AS n FROM events",
    ),
    view(
        "bit_or of a fraction",
        "SELECT bit_or(price) AS n FROM events",
        "SELECT bit_or(CAST(price AS INT)) AS n FROM events",
    ),
    view(
        "count distinct of everything",
        "SELECT country, count(DISTINCT *) AS users FROM events GROUP BY country",
        "SELECT country, count(DISTINCT user_id) AS users FROM events GROUP BY country",
    ),
    view(
        "distinct values beside a column that is not grouped",
        "SELECT country, kind, count(DISTINCT user_id) AS users FROM events GROUP BY country",
        "SELECT country, max(kind) AS kind, count(DISTINCT user_id) AS users FROM events GROUP BY country",
    ),
    view("sum of times", "SELECT sum(ts) AS n FROM events", "SELECT sum(CAST(ts AS BIGINT)) AS n FROM events"),
    view(
        "the wall clock",
        "SELECT max(now() - ts) AS late FROM events",
        "SELECT now() - min(ts) AS late FROM events",
    ),
    view(
        "the date of today",
        "SELECT sum(datediff(current_date, day)) AS days FROM events",
        "SELECT sum(datediff(current_date, day) * n) AS days FROM (SELECT day, count(*) AS n FROM events GROUP BY day)",
    ),
    view(
        "chance",
        "SELECT event_id FROM events WHERE rand() < 0.1",
        "SELECT event_id FROM events WHERE md5(event_id) < '1'",
    ),
    view(
        "a partition of Spark's",
        "SELECT monotonically_increasing_id() AS id FROM events",
        "SELECT kafka_partition, kafka_offset FROM events",
    ),
    view(
        "text and truth in a list",
        "SELECT count(*) AS n FROM events WHERE kind IN (true)",
        "SELECT count(*) AS n FROM events WHERE CAST(kind AS BOOLEAN) IN (true)",
    ),
    view(
        "text divided to a whole number",
        "SELECT kind div 2 AS n FROM events",
        "SELECT floor(kind / 2) AS n FROM events",
    ),
    view(
        "the greatest of text and number",
        "SELECT greatest(kind, 1) AS n FROM events",
        "SELECT greatest(CAST(kind AS INT), 1) AS n FROM events",
    ),
    view(
        "a time that engines read differently",
        "SELECT count(*) AS n FROM events WHERE ts > '1.2.2024'",
        "SELECT count(*) AS n FROM events WHERE ts > '2024-02-01'",
    ),
    view(
        "the seconds of a difference",
        "SELECT extract(EPOCH FROM max(ts) - min(ts)) AS s FROM events",
        "SELECT CAST(max(ts) - min(ts) AS BIGINT) AS s FROM events",
    ),
    view(
        "a difference by an interval",
        "SELECT (max(ts) - min(ts)) / INTERVAL 1 MINUTE AS m FROM events",
        "SELECT CAST(max(ts) - min(ts) AS BIGINT) / 60 AS m FROM events",
    ),
    view(
        "a difference and a number",
        "SELECT count(*) AS n FROM events WHERE day - DATE '2024-01-01' > 3",
        "SELECT count(*) AS n FROM events WHERE day - DATE '2024-01-01' > INTERVAL 3 DAYS",
    ),
    view(
        "a difference and months",
        "SELECT count(*) AS n FROM events WHERE kafka_timestamp - ts > INTERVAL 1 MONTH",
        "SELECT count(*) AS n FROM events WHERE kafka_timestamp - ts > INTERVAL 30 DAYS",
    ),
    view(
        "a difference as text",
        "SELECT event_id, CAST(kafka_timestamp - ts AS STRING) AS s FROM events",
        "SELECT event_id, CAST(CAST(kafka_timestamp - ts AS BIGINT) AS STRING) AS s FROM events",
    ),
    view(
        "a time without a zone and a difference",
        "SELECT event_id, CAST(ts AS TIMESTAMP_NTZ) + (kafka_timestamp - ts) AS t FROM events",
        "SELECT event_id, CAST(CAST(CAST(ts AS TIMESTAMP_NTZ) AS TIMESTAMP) + (kafka_timestamp - ts) AS TIMESTAMP_NTZ) AS t FROM events",
    ),
    view(
        "a time and a text",
        "SELECT event_id, CAST(ts - '2024-01-01' AS BIGINT) AS s FROM events",
        "SELECT event_id, CAST(ts - CAST('2024-01-01' AS TIMESTAMP) AS BIGINT) AS s FROM events",
    ),
    view(
        "a condition that is none",
        "SELECT count(*) AS n FROM events WHERE user_id",
        "SELECT count(*) AS n FROM events WHERE user_id <> 0",
    ),
    view(
        "an aggregate in WHERE",
        "SELECT country, count(*) AS n FROM events WHERE count(*) > 1 GROUP BY country",
        "SELECT country, count(*) AS n FROM events GROUP BY country HAVING count(*) > 1",
    ),
    view(
        "an aggregate in an aggregate",
        "SELECT max(count(*)) AS n FROM events",
        "SELECT max(n) AS n FROM (SELECT country, count(*) AS n FROM events GROUP BY country)",
    ),
    view(
        "a nested group key",
        "SELECT array(price) AS p, count(*) AS n FROM events GROUP BY array(price)",
        "SELECT to_json(array(price)) AS p, count(*) AS n FROM events GROUP BY to_json(array(price))",
    ),
    view(
        "two windows of a record",
        "SELECT window(ts, '1 hour').start AS h, window(kafka_timestamp, '1 hour').start AS k FROM events",
        "SELECT h, window(at, '1 hour').start AS k FROM (SELECT window(ts, '1 hour').start AS h, kafka_timestamp AS at FROM events) AS e",
    ),
    view(
        "a window in ON",
        "SELECT o.id FROM orders o JOIN events e ON o.user_id = e.user_id AND window(o.ts, '1 hour').start = e.ts",
        "SELECT o.id FROM (SELECT id, user_id, window(ts, '1 hour').start AS h FROM orders) o JOIN events e ON o.user_id = e.user_id AND o.h = e.ts",
    ),
    view(
        "a stream as of a time",
        "SELECT count(*) AS n FROM orders o JOIN events FOR SYSTEM_TIME AS OF o.ts AS e ON o.user_id = e.user_id",
        "SELECT count(*) AS n FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id",
    ),
    view(
        "a right join as of a time",
        "SELECT count(*) AS n FROM orders o RIGHT JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id",
        "SELECT count(*) AS n FROM orders o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id",
    ),
    view(
        "a table as of a time without a join",
        "SELECT price FROM prices FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' AS p",
        "SELECT price FROM prices",
    ),
    view(
        "as of a column that is not there",
        "SELECT o.id, p.price\nFROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.tss AS p ON o.user_id = p.user_id",
        "SELECT o.id, p.price\nFROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id",
    ),
    view(
        "as of a number",
        "SELECT o.id, p.price\nFROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.id AS p ON o.user_id = p.user_id",
        "SELECT o.id, p.price\nFROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id",
    ),
    view(
        "all pairs of records",
        "SELECT o.id, e.kind FROM orders o, events e WHERE o.ts < e.ts",
        "SELECT o.id, e.kind FROM orders o, events e WHERE o.ts < e.ts AND o.user_id = e.user_id",
    ),
    view(
        "a subquery below",
        "SELECT avg(CASE WHEN country IN (SELECT country FROM hourly) THEN 1 ELSE 0 END) AS n FROM events",
        "SELECT count(*) FILTER (WHERE country IN (SELECT country FROM hourly)) / count(*) AS n FROM events",
    ),
    view(
        "IN as a value",
        "SELECT event_id, country IN (SELECT country FROM hourly) AS known FROM events",
        "SELECT event_id, EXISTS (SELECT 1 FROM hourly WHERE hourly.country = e.country) AS known FROM events e",
    ),
    view(
        "whether IN is NULL",
        "SELECT event_id FROM events WHERE (country IN (SELECT country FROM hourly)) IS NULL",
        "SELECT event_id FROM events WHERE country NOT IN (SELECT country FROM hourly)",
    ),
    view(
        "a filter of sessions by other records",
        "SELECT user_id, count(*) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events GROUP BY user_id, session_window(ts, '5 minutes')",
        "SELECT user_id, count(*) FILTER (WHERE country IN ('NL', 'BE')) AS n FROM events GROUP BY user_id, session_window(ts, '5 minutes')",
    ),
    view(
        "a filter by other records beside a list",
        "SELECT collect_list(kind) AS k, count(*) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events",
        "SELECT collect_list(kind) AS k FROM events WHERE country IN (SELECT country FROM hourly)",
    ),
    view(
        "a filter by other records in a lambda",
        "SELECT approx_count_distinct(kind) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events",
        "SELECT approx_count_distinct(kind) AS n FROM events WHERE country IN (SELECT country FROM hourly)",
    ),
    view(
        "a sum of wide decimals by other records",
        "SELECT sum(CASE WHEN country IN (SELECT country FROM hourly) THEN CAST(user_id AS DECIMAL(38, 0)) ELSE 0 END) AS n FROM events",
        "SELECT sum(CAST(user_id AS DECIMAL(38, 0))) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events",
    ),
    view(
        "a column of the query around among columns",
        "SELECT country, (SELECT max(n) - hourly.n FROM hourly h WHERE h.country = hourly.country) AS m FROM hourly",
        "SELECT country, (SELECT max(n) FROM hourly h WHERE h.country = hourly.country) - n AS m FROM hourly",
    ),
    view(
        "a correlated subquery beside GROUP BY",
        "SELECT country, max(n) AS n, (SELECT max(h.n) FROM hourly h WHERE h.country = hourly.country) AS m FROM hourly GROUP BY country",
        "SELECT country, n, (SELECT max(h.n) FROM hourly h WHERE h.country = g.country) AS m FROM (SELECT country, max(n) AS n FROM hourly GROUP BY country) g",
    ),
    view(
        "a correlated subquery with ROLLUP",
        "SELECT country FROM hourly a WHERE EXISTS (SELECT h.country FROM hourly h WHERE h.n > a.n GROUP BY ROLLUP (h.country) HAVING count(*) > 4)",
        "SELECT country FROM hourly a WHERE EXISTS (SELECT h.country FROM hourly h WHERE h.n > a.n GROUP BY h.country HAVING count(*) > 4)",
    ),
    view(
        "a correlated subquery on the optional side of a join",
        "SELECT country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b LEFT JOIN (SELECT hour, n FROM hourly c WHERE c.country = a.country) d ON d.hour = b.hour WHERE d.n > 3)",
        "SELECT country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b JOIN (SELECT hour, n FROM hourly c WHERE c.country = a.country) d ON d.hour = b.hour WHERE d.n > 3)",
    ),
    view(
        "a correlated subquery beside ROLLUP",
        "SELECT country, sum(n) AS n FROM hourly a GROUP BY ROLLUP (country) HAVING EXISTS (SELECT 1 FROM hourly b WHERE b.country = a.country AND b.n > 3)",
        "SELECT country, n FROM (SELECT country, sum(n) AS n FROM hourly GROUP BY ROLLUP (country)) a WHERE EXISTS (SELECT 1 FROM hourly b WHERE b.country = a.country AND b.n > 3)",
    ),
    view(
        "a correlated subquery in ORDER BY",
        "SELECT country, n FROM hourly a ORDER BY (SELECT max(b.n) FROM hourly b WHERE b.country = a.country), country, hour LIMIT 3",
        "SELECT country, n FROM (SELECT country, n, hour, (SELECT max(b.n) FROM hourly b WHERE b.country = a.country) AS m FROM hourly a) ORDER BY m, country, hour LIMIT 3",
    ),
    view(
        "a correlated subquery about both sides in ON",
        "SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour AND EXISTS (SELECT 1 FROM hourly c WHERE c.n > a.n AND c.n < b.n)",
        "SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour WHERE EXISTS (SELECT 1 FROM hourly c WHERE c.n > a.n AND c.n < b.n)",
    ),
    view(
        "a correlated value in ON",
        "SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour AND a.n > (SELECT avg(c.n) FROM hourly c WHERE c.country = b.country)",
        "SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour WHERE a.n > (SELECT avg(c.n) FROM hourly c WHERE c.country = b.country)",
    ),
    view(
        "a correlated subquery over another of the same name",
        "SELECT country FROM (SELECT country, n AS m FROM hourly) h WHERE EXISTS (SELECT 1 FROM hourly h WHERE n > m)",
        "SELECT country FROM (SELECT country, n AS m FROM hourly) g WHERE EXISTS (SELECT 1 FROM hourly h WHERE n > m)",
    ),
    view(
        "a SEMI JOIN without a condition",
        "SELECT country FROM hourly LEFT SEMI JOIN (SELECT country AS c FROM hourly) b",
        "SELECT country FROM hourly LEFT SEMI JOIN (SELECT country AS c FROM hourly) b ON c = country",
    ),
    view(
        "a subquery in WHERE of sessions",
        "SELECT session_window(ts, '30 minutes').start AS s, count(*) AS n FROM events WHERE country IN (SELECT country FROM hourly) GROUP BY session_window(ts, '30 minutes')",
        "SELECT session_window(ts, '30 minutes').start AS s, count(*) AS n FROM events WHERE country IN ('NL', 'BE') GROUP BY session_window(ts, '30 minutes')",
    ),
    view(
        "a subquery of many rows",
        "SELECT (SELECT n FROM hourly) AS n, country FROM hourly",
        "SELECT (SELECT max(n) AS n FROM hourly) AS n, country FROM hourly",
    ),
    view(
        "a part of a struct that is grouped by",
        "SELECT kind, count(*) AS n FROM events GROUP BY struct(kind, country)",
        "SELECT kind, count(*) AS n FROM events GROUP BY struct(kind, country), kind",
    ),
    view(
        "ROLLUP of a struct",
        "SELECT payload.user AS u, count(*) AS n FROM events GROUP BY ROLLUP(payload.user)",
        "SELECT payload.user.id AS id, payload.user.name AS name, count(*) AS n FROM events GROUP BY ROLLUP((payload.user.id, payload.user.name))",
    ),
    view(
        "a step away from the end",
        "SELECT s, n FROM (SELECT explode(sequence(10, 1, 4)) AS s) CROSS JOIN (SELECT count(*) AS n FROM events)",
        "SELECT s, n FROM (SELECT explode(sequence(10, 1, -4)) AS s) CROSS JOIN (SELECT count(*) AS n FROM events)",
    ),
    view(
        "a sequence by steps of what a record decides",
        "SELECT event_id, explode(sequence(user_id, kafka_offset, 5)) AS s FROM events",
        "SELECT country, explode(sequence(min(user_id), max(user_id), 5)) AS s FROM events GROUP BY country",
    ),
    view(
        "a list of different values in an order",
        "SELECT country, array_agg(DISTINCT kind ORDER BY kind) AS kinds FROM events GROUP BY country",
        "SELECT country, sort_array(collect_set(kind)) AS kinds FROM events GROUP BY country",
    ),
    view(
        "a list in an order that turns",
        "SELECT country, array_agg(kind ORDER BY price, ts DESC) AS kinds FROM events GROUP BY country",
        "SELECT country, array_agg(kind ORDER BY price DESC, ts DESC) AS kinds FROM events GROUP BY country",
    ),
    view(
        "an empty list of no type",
        "SELECT event_id, array() AS a FROM events",
        "SELECT event_id, coalesce(tags, array()) AS a FROM events",
    ),
    view(
        "rows of an empty list",
        "SELECT event_id, explode(array()) AS a FROM events",
        "SELECT event_id, explode(coalesce(tags, array())) AS a FROM events",
    ),
    view(
        "the months between two that records decide",
        "SELECT explode(sequence(a, z, INTERVAL 1 MONTH)) AS day FROM (SELECT min(day) AS a, max(day) AS z FROM events)",
        "SELECT explode(sequence(a, z, INTERVAL 1 DAY)) AS day FROM (SELECT min(day) AS a, max(day) AS z FROM events)",
    ),
    view(
        "days that go backwards",
        "SELECT explode(sequence(DATE '2024-12-31', DATE '2024-01-01')) AS day, n FROM (SELECT count(*) AS n FROM events)",
        "SELECT d.day, n FROM (SELECT explode(sequence(DATE '2024-01-01', DATE '2024-12-31')) AS day) d CROSS JOIN (SELECT count(*) AS n FROM events)",
    ),
    view(
        "a calendar of two centuries",
        "SELECT d.day, n FROM (SELECT explode(sequence(DATE '1900-01-01', DATE '2100-01-01')) AS day) d CROSS JOIN (SELECT count(*) AS n FROM events)",
        "SELECT d.day, n FROM (SELECT explode(sequence(DATE '1900-01-01', DATE '2100-01-01', INTERVAL 1 MONTH)) AS day) d CROSS JOIN (SELECT count(*) AS n FROM events)",
    ),
    view(
        "a range of no rows",
        "SELECT id, n FROM range(0) CROSS JOIN (SELECT count(*) AS n FROM events)",
        "SELECT id, n FROM range(0, 24) CROSS JOIN (SELECT count(*) AS n FROM events)",
    ),
    view(
        "a table of a function",
        "SELECT * FROM json_each('[1]')",
        "SELECT id, n FROM range(3) CROSS JOIN (SELECT count(*) AS n FROM events)",
    ),
    view(
        "sides of a UNION ALL that say alike which they are",
        "SELECT k, lag(n) OVER (ORDER BY k) AS l FROM (SELECT 'a' AS k, count(*) AS n FROM events UNION ALL SELECT 'a', count(*) FROM orders)",
        "SELECT k, lag(n) OVER (ORDER BY k) AS l FROM (SELECT 'a' AS k, count(*) AS n FROM events UNION ALL SELECT 'b', count(*) FROM orders)",
    ),
    view(
        "TRY_CAST of a double above",
        "SELECT try_cast(sum(price) AS INT) AS n FROM events",
        "SELECT CAST(sum(price) AS INT) AS n FROM events",
    ),
    view(
        "a field after a colon",
        "SELECT payload:user FROM events",
        "SELECT payload.user.name AS user FROM events",
    ),
    view(
        "stack of rows of different lengths",
        "SELECT stack(2, 'a', amount, 'p') AS (what, value) FROM events",
        "SELECT stack(2, 'a', amount, 'b', CAST(user_id AS DECIMAL(10, 2))) AS (what, value) FROM events",
    ),
    view(
        "stack of two types",
        "SELECT stack(2, 'a', amount, 'b', user_id) AS (what, value) FROM events",
        "SELECT stack(2, 'a', amount, 'b', CAST(user_id AS DECIMAL(10, 2))) AS (what, value) FROM events",
    ),
    view(
        "inline of texts",
        "SELECT event_id, inline(tags) FROM events",
        "SELECT event_id, explode(tags) AS tag FROM events",
    ),
    view(
        "two explodes among columns",
        "SELECT explode(tags) AS a, explode(tags) AS b FROM events",
        "SELECT explode(tags) AS a, b FROM events LATERAL VIEW explode(tags) t AS b",
    ),
    view(
        "json_tuple of a name that is a column",
        "SELECT j.a FROM events LATERAL VIEW json_tuple(kind, country) j AS a",
        "SELECT j.a FROM events LATERAL VIEW json_tuple(kind, 'a') j AS a",
    ),
    view(
        "a shift beside another operator of bits",
        "SELECT user_id & 3 >> 1 AS n FROM events",
        "SELECT (user_id & 3) >> 1 AS n FROM events",
    ),
    view(
        "a sum beside joined texts",
        "SELECT country || user_id + 1 AS t FROM events",
        "SELECT country || (user_id + 1) AS t FROM events",
    ),
    view(
        "a comparison beside IN",
        "SELECT count(*) AS n FROM events WHERE user_id > 1 = kind IN ('a', 'b')",
        "SELECT count(*) AS n FROM events WHERE (user_id > 1) = (kind IN ('a', 'b'))",
    ),
    view(
        "a comparison beside LIKE",
        "SELECT count(*) AS n FROM events WHERE kind LIKE 'a%' = true",
        "SELECT count(*) AS n FROM events WHERE (kind LIKE 'a%') = true",
    ),
    view(
        "a unit in quotes",
        "SELECT datediff('day', ts, kafka_timestamp) AS n FROM events",
        "SELECT datediff(DAY, ts, kafka_timestamp) AS n FROM events",
    ),
    view(
        "different pairs",
        "SELECT count(DISTINCT (user_id, kind)) AS n FROM events",
        "SELECT count(DISTINCT to_json(struct(user_id, kind))) AS n FROM events",
    ),
    view(
        "a bar of stars",
        "SELECT country, repeat('*', CAST(count(*) AS INT)) AS bar FROM events GROUP BY country",
        "SELECT country, repeat('*', 3) AS bar, count(*) AS n FROM events GROUP BY country",
    ),
    view(
        "an average as text",
        "SELECT concat(CAST(avg(price) AS STRING), ' EUR') AS t FROM events",
        "SELECT concat(CAST(CAST(avg(price) AS DECIMAL(18, 2)) AS STRING), ' EUR') AS t FROM events",
    ),
    view(
        "a list of structs with maps",
        "SELECT user_id, collect_list(struct(map('kind', kind))) AS found FROM events GROUP BY user_id",
        "SELECT user_id, collect_list(to_json(struct(map('kind', kind)))) AS found FROM events GROUP BY user_id",
    ),
    view(
        "a map by numbers",
        "SELECT country, map_from_entries(collect_list(struct(user_id, price))) AS m FROM events GROUP BY country",
        "SELECT country, map_from_entries(collect_list(struct(CAST(user_id AS STRING) AS name, price))) AS m FROM events GROUP BY country",
    ),
    view(
        "lists in an order",
        "SELECT user_id, array_agg(tags ORDER BY price) AS found FROM events GROUP BY user_id",
        "SELECT user_id, array_agg(tags) AS found FROM events GROUP BY user_id",
    ),
    view(
        "a share of the total by another system's function",
        "SELECT country, ratio_to_report(sum(n)) OVER () AS share FROM hourly GROUP BY country",
        "SELECT country, sum(n) / sum(sum(n)) OVER () AS share FROM hourly GROUP BY country",
    ),
    view(
        "the last of numbered records",
        "SELECT user_id, last(kind) AS k FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS r FROM events) WHERE r < 5 GROUP BY user_id",
        "SELECT user_id, max_by(kind, ts) AS k FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS r FROM events) WHERE r < 5 GROUP BY user_id",
    ),
    view(
        "a hint",
        "SELECT /*+ BROADCAST(events) */ country, count(*) AS n FROM events GROUP BY country",
        "SELECT country, count(*) AS n FROM events GROUP BY country",
    ),
    view(
        "rows told apart by a column without a name",
        "SELECT n, lag(n) OVER (ORDER BY n) AS l FROM (SELECT rpad(country, 2), count(*) AS n FROM events GROUP BY rpad(country, 2))",
        "SELECT n, lag(n) OVER (ORDER BY n) AS l FROM (SELECT rpad(country, 2) AS c, count(*) AS n FROM events GROUP BY rpad(country, 2))",
    ),
    view(
        "numbered elements",
        "SELECT tag, row_number() OVER (PARTITION BY tag ORDER BY ts) AS r FROM events LATERAL VIEW explode(tags) t AS tag",
        "SELECT tag, row_number() OVER (PARTITION BY tag ORDER BY ts, kafka_partition, kafka_offset, place) AS r FROM events LATERAL VIEW posexplode(tags) t AS place, tag",
    ),
    view(
        "row_number where nothing tells two rows apart",
        "SELECT country, row_number() OVER (ORDER BY country) AS r FROM (SELECT country FROM hourly UNION ALL SELECT country FROM hourly)",
        "SELECT country, row_number() OVER (ORDER BY country) AS r FROM (SELECT country FROM hourly UNION SELECT country FROM hourly)",
    ),
    view(
        "a function of another system",
        "SELECT country, arg_max(kind, ts) AS k FROM events GROUP BY country",
        "SELECT country, max_by(kind, ts) AS k FROM events GROUP BY country",
    ),
    view(
        "ORDER BY among arguments",
        "SELECT country, string_agg(kind, ',' ORDER BY ts) AS k FROM events GROUP BY country",
        "SELECT country, listagg(kind, ',') WITHIN GROUP (ORDER BY ts) AS k FROM events GROUP BY country",
    ),
    view(
        "a window with an INTERVAL",
        "SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, INTERVAL 1 HOUR)",
        "SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour')",
    ),
    view(
        "last_value among equals",
        "SELECT country, hour, last_value(n) OVER (PARTITION BY country ORDER BY date_trunc('day', hour)) AS r FROM hourly",
        "SELECT country, hour, last_value(n) OVER (PARTITION BY country ORDER BY date_trunc('day', hour), hour) AS r FROM hourly",
    ),
    view(
        "nth_value of 0",
        "SELECT nth_value(n, 0) OVER (ORDER BY hour, country) AS n FROM hourly",
        "SELECT nth_value(n, 1) OVER (ORDER BY hour, country) AS n FROM hourly",
    ),
    view(
        "nth_value without ORDER BY",
        "SELECT nth_value(n, 1) OVER () AS n FROM (SELECT count(*) AS n FROM events)",
        "SELECT nth_value(n, 1) OVER (ORDER BY n) AS n FROM (SELECT count(*) AS n FROM events)",
    ),
    view(
        "first_value without ORDER BY",
        "SELECT country, hour, first_value(n) OVER (PARTITION BY country) AS r FROM hourly",
        "SELECT country, hour, first_value(n) OVER (PARTITION BY country ORDER BY hour) AS r FROM hourly",
    ),
    view(
        "a window that hops further than it is long",
        "SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '5 minutes', '1 hour')",
        "SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes')",
    ),
    view(
        "a window of too many panes",
        "SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '7 milliseconds')",
        "SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '10 seconds')",
    ),
    view(
        "two hopping windows of one record",
        "SELECT user_id, window(ts, '1 hour', '5 minutes').start AS v, window(ts, '2 hours', '5 minutes').start AS w FROM events",
        "SELECT user_id, window(ts, '1 hour', '5 minutes').start AS v FROM events",
    ),
    view(
        "a hopping window inside of a key",
        "SELECT date_trunc('day', window(ts, '1 hour', '5 minutes').start) AS d, count(*) AS n FROM events GROUP BY date_trunc('day', window(ts, '1 hour', '5 minutes').start)",
        "SELECT date_trunc('day', s) AS d, sum(n) AS n FROM (SELECT window.start AS s, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes')) GROUP BY date_trunc('day', s)",
    ),
    view(
        "two windows",
        "SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes'), session_window(ts, '5 minutes')",
        "SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes')",
    ),
    view(
        "sessions grouped once more",
        "SELECT s, count(*) AS n FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) GROUP BY s",
        "SELECT s.start, s.end, count(*) AS n FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) GROUP BY s.start, s.end",
    ),
    view(
        "different sessions",
        "SELECT DISTINCT session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')",
        "SELECT DISTINCT session_window(ts, '5 minutes').start AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')",
    ),
    view(
        "sessions of two queries",
        "SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) UNION SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes'))",
        "SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) UNION ALL SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes'))",
    ),
    view(
        "a letter after a number that is too large for it",
        "SELECT kind, 300Y AS n FROM events",
        "SELECT kind, 300S AS n FROM events",
    ),
    view(
        "a session of months",
        "SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '1 month')",
        "SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '30 days')",
    ),
    view(
        "a session with an interval",
        "SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, INTERVAL 30 MINUTES)",
        "SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '30 minutes')",
    ),
    view(
        "a session of no length",
        "SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '0 minutes')",
        "SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '30 minutes')",
    ),
    view(
        "a session that is not grouped by",
        "SELECT user_id, session_window(ts, '30 minutes').start AS s FROM events",
        "SELECT user_id, session_window.start AS s FROM events GROUP BY user_id, session_window(ts, '30 minutes')",
    ),
    view(
        "a sum of DISTINCT values in a session",
        "SELECT user_id, sum(DISTINCT amount) AS s FROM events GROUP BY user_id, session_window(ts, '30 minutes')",
        "SELECT user_id, sum(amount) AS s FROM events GROUP BY user_id, session_window(ts, '30 minutes')",
    ),
    view(
        "a window of months",
        "SELECT window(ts, '1 month').start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 month')",
        "SELECT date_trunc('month', ts) AS w, count(*) AS n FROM events GROUP BY date_trunc('month', ts)",
    ),
    view(
        "the bounds of a window by a star",
        "SELECT window.*, count(*) AS n FROM events GROUP BY window(ts, '1 hour')",
        "SELECT window.start, window.end, count(*) AS n FROM events GROUP BY window(ts, '1 hour')",
    ),
    view(
        "the lesser of two windows",
        "SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') HAVING min(window) IS NOT NULL",
        "SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') HAVING min(ts) IS NOT NULL",
    ),
    view(
        "windows compared",
        "SELECT a.window, a.n FROM (SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour')) a JOIN (SELECT window FROM events GROUP BY window(ts, '2 hours')) b ON a.window < b.window",
        "SELECT a.window, a.n FROM (SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour')) a JOIN (SELECT window FROM events GROUP BY window(ts, '2 hours')) b ON a.window.start < b.window.start",
    ),
    view(
        "different sessions of records",
        "SELECT DISTINCT session_window(ts, '1 hour') AS w FROM events",
        "SELECT session_window AS w FROM events GROUP BY session_window(ts, '1 hour')",
    ),
    view(
        "different windows in order",
        "SELECT DISTINCT w FROM (SELECT window AS w, country FROM events GROUP BY window(ts, '1 hour'), country) ORDER BY w",
        "SELECT w FROM (SELECT DISTINCT w FROM (SELECT window AS w, country FROM events GROUP BY window(ts, '1 hour'), country)) ORDER BY w",
    ),
    view(
        "a union in the order of windows",
        "SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') UNION ALL SELECT window, count(*) AS n FROM events GROUP BY window(ts, '2 hours') ORDER BY window",
        "SELECT * FROM (SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') UNION ALL SELECT window, count(*) AS n FROM events GROUP BY window(ts, '2 hours')) ORDER BY window",
    ),
    view(
        "a field that is none of a time",
        "SELECT EXTRACT(EPOCH FROM ts) AS e FROM events",
        "SELECT unix_seconds(ts) AS e FROM events",
    ),
    view(
        "a percentile of no share that is known",
        "SELECT percentile_approx(amount, array(0.5, user_id)) AS p FROM events",
        "SELECT percentile_approx(amount, array(0.5, 0.9)) AS p FROM events",
    ),
    view(
        "case folded above",
        "SELECT initcap(country) AS c, n FROM hourly",
        "SELECT initcap(country) AS c, count(*) AS n FROM events GROUP BY initcap(country)",
    ),
    view(
        "an output in HAVING that hides a column of another type",
        "SELECT country, count(*) AS amount FROM events GROUP BY country HAVING amount > 3",
        "SELECT country, count(*) AS n FROM events GROUP BY country HAVING n > 3",
    ),
    view(
        "a correlated subquery over a relation named as compiled ones are",
        "SELECT country FROM hourly WHERE EXISTS (SELECT 1 FROM hourly cell WHERE cell.n = hourly.n)",
        "SELECT country FROM hourly WHERE EXISTS (SELECT 1 FROM hourly h WHERE h.n = hourly.n)",
    ),
    view(
        "a hopping window in WHERE",
        "SELECT window.start AS w, count(*) AS n FROM events WHERE window(ts, '1 hour', '5 minutes').start IN (SELECT max(ts) FROM events) GROUP BY window(ts, '1 hour', '5 minutes')",
        "SELECT window.start AS w, count(*) AS n FROM events WHERE kind IN (SELECT max(kind) FROM events) GROUP BY window(ts, '1 hour', '5 minutes')",
    ),
    view(
        "bytes that other records are asked about",
        "SELECT count(*) AS n FROM events WHERE kafka_key IN (SELECT kafka_key FROM events)",
        "SELECT count(*) AS n FROM events WHERE hex(kafka_key) IN (SELECT hex(kafka_key) FROM events)",
    ),
    view(
        "IN of another type of time",
        "SELECT count(*) AS n FROM events WHERE ts IN (SELECT CAST(ts AS DATE) FROM events)",
        "SELECT count(*) AS n FROM events WHERE CAST(ts AS DATE) IN (SELECT CAST(ts AS DATE) FROM events)",
    ),
    view(
        "a subquery in a lambda",
        "SELECT transform(array(1, 2), x -> (SELECT max(n) FROM hourly)) AS t FROM events",
        "SELECT transform(array(1, 2), x -> x * 2) AS t FROM events",
    ),
    view(
        "a window in a lambda",
        "SELECT transform(array(ts), x -> window(x, '1 hour').start) AS t FROM events",
        "SELECT transform(array(ts), x -> date_trunc('hour', x)) AS t FROM events",
    ),
    view(
        "a regular expression that is a column",
        "SELECT country FROM events WHERE kind RLIKE country",
        "SELECT country FROM events WHERE kind LIKE country",
    ),
    view(
        "FILTER without WHERE",
        "SELECT count(*) FILTER (kind = 'x') AS n FROM events",
        "SELECT count(*) FILTER (WHERE kind = 'x') AS n FROM events",
    ),
    view(
        "another system's type",
        "SELECT user_id::text AS t FROM events",
        "SELECT user_id::string AS t FROM events",
    ),
    view(
        "eight bytes",
        "SELECT kind::int8 AS t FROM events",
        "SELECT kind::bigint AS t FROM events",
    ),
    view(
        "a text of no length",
        "SELECT CAST(user_id AS VARCHAR) AS t FROM events",
        "SELECT CAST(user_id AS VARCHAR(20)) AS t FROM events",
    ),
    view(
        "Hive's number of a grouping",
        "SELECT country, grouping__id AS g, count(*) AS n FROM events GROUP BY ROLLUP(country)",
        "SELECT country, grouping_id() AS g, count(*) AS n FROM events GROUP BY ROLLUP(country)",
    ),
    view(
        "windows in FROM",
        "SELECT window_start, count(*) AS n FROM TUMBLE(events, ts, INTERVAL '15' MINUTE) GROUP BY window_start",
        "SELECT window(ts, '15 minutes').start AS window_start, count(*) AS n FROM events GROUP BY window(ts, '15 minutes')",
    ),
    view(
        "windows of a table in FROM",
        "SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '15' MINUTES)) GROUP BY window_start",
        "SELECT window(ts, '15 minutes').start AS window_start, count(*) AS n FROM events GROUP BY window(ts, '15 minutes')",
    ),
    view(
        "the start of a window that no one made",
        "SELECT window_start, count(*) AS n FROM events GROUP BY window_start",
        "SELECT window(ts, '15 minutes').start AS window_start, count(*) AS n FROM events GROUP BY window(ts, '15 minutes')",
    ),
    view(
        "a window's start by a function",
        "SELECT TUMBLE_START(ts, INTERVAL '15' MINUTES) AS s, count(*) AS n FROM events GROUP BY TUMBLE(ts, INTERVAL '15' MINUTES)",
        "SELECT window(ts, '15 minutes').start AS s, count(*) AS n FROM events GROUP BY window(ts, '15 minutes').start",
    ),
    view(
        "a window behind FROM",
        "SELECT kind, count(*) AS n FROM events WINDOW TUMBLING (SIZE 15 MINUTES) GROUP BY kind",
        "SELECT kind, window(ts, '15 minutes').start AS s, count(*) AS n FROM events GROUP BY kind, window(ts, '15 minutes')",
    ),
    view(
        "what is emitted",
        "SELECT kind, count(*) AS n FROM events GROUP BY kind EMIT CHANGES",
        "SELECT kind, count(*) AS n FROM events GROUP BY kind",
    ),
    view(
        "TOP",
        "SELECT TOP 10 kind, count(*) AS n FROM events GROUP BY kind",
        "SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC LIMIT 10",
    ),
    view(
        "an offset before LIMIT's number",
        "SELECT event_id FROM events ORDER BY event_id LIMIT 20, 10",
        "SELECT event_id FROM events ORDER BY event_id LIMIT 10 OFFSET 20",
    ),
    view(
        "ISNULL after a value",
        "SELECT event_id FROM events WHERE country ISNULL",
        "SELECT event_id FROM events WHERE country IS NULL",
    ),
    view(
        "NOT NULL without IS",
        "SELECT event_id FROM events WHERE country NOT NULL",
        "SELECT event_id FROM events WHERE country IS NOT NULL",
    ),
    view(
        "IS before a value",
        "SELECT event_id FROM events WHERE country IS event_id",
        "SELECT event_id FROM events WHERE country IS NOT DISTINCT FROM event_id",
    ),
    view(
        "OFFSET with ROWS",
        "SELECT event_id FROM events ORDER BY event_id OFFSET 10 ROWS",
        "SELECT event_id FROM events ORDER BY event_id OFFSET 10",
    ),
    view(
        "RESPECT NULLS inside the call",
        "SELECT kind, first_value(amount RESPECT NULLS) AS f FROM events GROUP BY kind",
        "SELECT kind, first_value(amount) RESPECT NULLS AS f FROM events GROUP BY kind",
    ),
    view(
        "NULL in a query",
        "SELECT event_id FROM events WHERE CAST(NULL AS BIGINT) NOT IN (SELECT user_id FROM orders)",
        "SELECT event_id FROM events WHERE user_id NOT IN (SELECT user_id FROM orders)",
    ),
    view(
        "the greatest of nothing but NULL",
        "SELECT kind, max(coalesce(NULL, NULL)) AS m FROM events GROUP BY kind",
        "SELECT kind, max(CAST(NULL AS STRING)) AS m FROM events GROUP BY kind",
    ),
    view(
        "different values of nothing but NULL",
        "SELECT kind, count(DISTINCT NULL) AS n FROM events GROUP BY kind",
        "SELECT kind, count(*) AS n FROM events GROUP BY kind",
    ),
    view(
        "a type before a text",
        "SELECT event_id FROM events WHERE amount > DECIMAL '1.5'",
        "SELECT event_id FROM events WHERE amount > CAST('1.5' AS DECIMAL(2, 1))",
    ),
    view(
        "a time of day",
        "SELECT event_id, TIME '10:00:00' AS t FROM events",
        "SELECT event_id, '10:00:00' AS t FROM events",
    ),
    view(
        "an interval of quarters",
        "SELECT event_id, ts + INTERVAL 2 QUARTERS AS t FROM events",
        "SELECT event_id, ts + INTERVAL 6 MONTHS AS t FROM events",
    ),
    view(
        "a type of lengths of time",
        "SELECT event_id, CAST('1' AS INTERVAL DAY) AS i FROM events",
        "SELECT event_id, CAST('1' AS INT) AS i FROM events",
    ),
    view(
        "COLLATE",
        "SELECT country COLLATE UTF8_LCASE AS c, count(*) AS n FROM events GROUP BY 1",
        "SELECT lower(country) AS c, count(*) AS n FROM events GROUP BY 1",
    ),
    view(
        "a cast to a type with a collation",
        "SELECT CAST(country AS STRING COLLATE UTF8_LCASE) AS c, count(*) AS n FROM events GROUP BY 1",
        "SELECT CAST(country AS STRING) AS c, count(*) AS n FROM events GROUP BY 1",
    ),
    Refusal(
        "a long name",
        f"CREATE VIEW {'v' * 64} AS SELECT kind, count(*) AS n FROM events GROUP BY kind;",
        f"CREATE VIEW {'v' * 63} AS SELECT kind, count(*) AS n FROM events GROUP BY kind;",
    ),
    view(
        "a number of an INTERVAL",
        "SELECT event_id, CAST(INTERVAL 10 DAYS AS BIGINT) AS n FROM events",
        "SELECT event_id, 10 AS n FROM events",
    ),
    view(
        "a sum of INTERVALs",
        "SELECT event_id, CAST(INTERVAL 1 DAY + INTERVAL 2 HOURS AS BIGINT) AS n FROM events",
        "SELECT event_id, ts + INTERVAL 26 HOURS AS n FROM events",
    ),
    view(
        "days beside hours",
        "SELECT event_id, CAST(ts AS DATE) - DATE '2020-01-01' + INTERVAL 2 HOURS > INTERVAL 9 DAYS AS late FROM events",
        "SELECT event_id, CAST(ts AS DATE) - DATE '2020-01-01' + INTERVAL 7200 SECONDS > INTERVAL 9 DAYS AS late FROM events",
    ),
    view(
        "an INTERVAL that is chosen",
        "SELECT event_id, ts - TIMESTAMP '2020-01-01 00:00:00' > CASE WHEN kind = 'a' THEN INTERVAL 1 DAY ELSE INTERVAL 2 DAYS END AS late FROM events",
        "SELECT event_id, CASE WHEN kind = 'a' THEN ts - TIMESTAMP '2020-01-01 00:00:00' > INTERVAL 1 DAY ELSE ts - TIMESTAMP '2020-01-01 00:00:00' > INTERVAL 2 DAYS END AS late FROM events",
    ),
    view(
        "a subquery in a list",
        "SELECT country, collect_list((SELECT max(n) FROM hourly)) AS n FROM events GROUP BY country",
        "SELECT country, sort_array(collect_list(n)) AS n FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind) GROUP BY country",
    ),
    view(
        "a rank in ORDER BY alone",
        "SELECT country, hour, n FROM hourly ORDER BY rank() OVER (ORDER BY n), country, hour LIMIT 3",
        "SELECT country, hour, n FROM (SELECT country, hour, n, rank() OVER (ORDER BY n) AS r FROM hourly) ORDER BY r, country, hour LIMIT 3",
    ),
    view(
        "a window of time in ORDER BY alone",
        "SELECT event_id FROM events ORDER BY window(ts, '1 hour').start LIMIT 3",
        "SELECT event_id FROM (SELECT event_id, window(ts, '1 hour').start AS hour FROM events) ORDER BY hour, event_id LIMIT 3",
    ),
    view(
        "EXISTS in ORDER BY",
        "SELECT country, hour FROM hourly ORDER BY EXISTS (SELECT 1 FROM hourly), country, hour LIMIT 3",
        "SELECT country, hour FROM (SELECT country, hour, EXISTS (SELECT 1 FROM hourly) AS e FROM hourly) ORDER BY e, country, hour LIMIT 3",
    ),
    view(
        "a window function inside another",
        "SELECT country, rank() OVER (ORDER BY sum(n) OVER (PARTITION BY country)) AS r FROM hourly",
        "SELECT country, rank() OVER (ORDER BY s) AS r FROM (SELECT country, sum(n) OVER (PARTITION BY country) AS s FROM hourly)",
    ),
    view(
        "EXISTS beside an operator",
        "SELECT country FROM hourly WHERE EXISTS (SELECT 1 FROM events) = true",
        "SELECT country FROM hourly WHERE (EXISTS (SELECT 1 FROM events)) = true",
    ),
    view(
        "parts counted from 0",
        "SELECT split_index(country, ',', 0) AS c, count(*) AS n FROM events GROUP BY 1",
        "SELECT split_part(country, ',', 1) AS c, count(*) AS n FROM events GROUP BY 1",
    ),
    view(
        "a map made of rows",
        "SELECT country, map_agg(kind, amount) AS m FROM events GROUP BY country",
        "SELECT country, collect_list(struct(kind, amount)) AS m FROM events GROUP BY country",
    ),
    view(
        "a column of a grouping in an aggregate over windows",
        "SELECT country, max(country) OVER () AS m, count(*) AS n FROM events GROUP BY ROLLUP (country)",
        "SELECT country, max(country) OVER () AS m, n FROM (SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country))",
    ),
    view(
        "IN of a query in two pairs of parentheses",
        "SELECT event_id FROM events WHERE user_id IN ((SELECT user_id FROM orders))",
        "SELECT event_id FROM events WHERE user_id IN (SELECT user_id FROM orders)",
    ),
    view(
        "two CTEs of one name",
        "WITH a AS (SELECT kind FROM events), a AS (SELECT count(*) AS n FROM a) SELECT n FROM a",
        "WITH a AS (SELECT kind FROM events), b AS (SELECT count(*) AS n FROM a) SELECT n FROM b",
    ),
    view(
        "a number as a text of a pattern",
        "SELECT to_char(amount, '999.99') AS t FROM events",
        "SELECT format_number(amount, 2) AS t FROM events",
    ),
    view("LIMIT beyond 2^31", "SELECT event_id FROM events LIMIT 2147483648", "SELECT event_id FROM events LIMIT 10"),
    view("LIMIT of a text", "SELECT event_id FROM events LIMIT '3'", "SELECT event_id FROM events LIMIT 3"),
    view(
        "an escape in the middle of a pattern",
        "SELECT country FROM events WHERE kind LIKE 'a\\\\b'",
        "SELECT country FROM events WHERE kind LIKE 'a\\\\\\\\b'",
    ),
    view(
        "bits of NULL",
        "SELECT country, NULL & NULL AS b FROM hourly",
        "SELECT country, CAST(NULL AS INT) & n AS b FROM hourly",
    ),
    view(
        "bits without parentheses",
        "SELECT country, n | n & 3 AS b FROM hourly",
        "SELECT country, n | (n & 3) AS b FROM hourly",
    ),
    view(
        "bits of a decimal",
        "SELECT country, CAST(n AS DECIMAL(9,1)) & 3 AS b FROM hourly",
        "SELECT country, CAST(n AS BIGINT) & 3 AS b FROM hourly",
    ),
    view(
        "several values in a list",
        "SELECT country FROM hourly WHERE (country, n) IN (('NL', 1), ('BE', 2))",
        "SELECT country FROM hourly WHERE (country = 'NL' AND n = 1) OR (country = 'BE' AND n = 2)",
    ),
    view(
        "an escape of nothing",
        "SELECT country FROM hourly WHERE country LIKE '!NL' ESCAPE '!'",
        "SELECT country FROM hourly WHERE country LIKE '!!NL' ESCAPE '!'",
    ),
    view(
        "a map whose keys are columns",
        "SELECT map(kind, country) AS m FROM events",
        "SELECT map('kind', country) AS m FROM events",
    ),
    view(
        "printf() of what its format does not take",
        "SELECT event_id, printf('%d', price) AS x FROM events",
        "SELECT event_id, printf('%d', CAST(price AS BIGINT)) AS x FROM events",
    ),
    view(
        "printf() with fewer values than signs",
        "SELECT event_id, printf('%s-%s', kind) AS x FROM events",
        "SELECT event_id, printf('%s-%s', kind, country) AS x FROM events",
    ),
    view(
        "printf() with a sign that could raise",
        "SELECT event_id, printf('%tY', ts) AS x FROM events",
        "SELECT event_id, printf('%05d', year(ts)) AS x FROM events",
    ),
    view(
        "a lambda where none is taken",
        "SELECT event_id, array_sort(tags, (a, b) -> 1) AS x FROM events",
        "SELECT event_id, array_sort(transform(tags, a -> upper(a))) AS x FROM events",
    ),
    view(
        "weekdays in a pattern to read times by",
        "SELECT event_id, to_date(kind, 'EEE, dd MMM yyyy') AS day FROM events",
        "SELECT event_id, to_date(substring(kind, 6), 'dd MMM yyyy') AS day FROM events",
    ),
    view(
        "a truth compared with a number below 1",
        "SELECT event_id, (user_id > 1) = 0.5 AS x FROM events",
        "SELECT event_id, CAST(user_id > 1 AS INT) = 0.5 AS x FROM events",
    ),
    view(
        "structs compared",
        "SELECT event_id, payload.user < payload.user AS less FROM events",
        "SELECT event_id, payload.user.id < payload.user.id AS less FROM events",
    ),
    view(
        "maps compared",
        "SELECT event_id, map('a', kind) = map('a', country) AS same FROM events",
        "SELECT event_id, to_json(map('a', kind)) = to_json(map('a', country)) AS same FROM events",
    ),
    view(
        "a list among several groupings",
        "SELECT tags, kind, count(*) AS n FROM events GROUP BY CUBE (tags, kind)",
        "SELECT to_json(tags) AS tags, kind, count(*) AS n FROM events GROUP BY CUBE (to_json(tags), kind)",
    ),
    view(
        "lists of fractions compared above the aggregation",
        "SELECT country, array(avg(n)) = array(max(n) + 0.5D) AS same FROM hourly GROUP BY country",
        "SELECT country, avg(n) = max(n) + 0.5D AS same FROM hourly GROUP BY country",
    ),
    view(
        "TRY_CAST that Spark refuses",
        "SELECT event_id, TRY_CAST(day AS BIGINT) AS x FROM events",
        "SELECT event_id, CAST(day AS BIGINT) AS x FROM events",
    ),
    view(
        "zip_with() of one array",
        "SELECT event_id, zip_with(tags, a -> a) AS x FROM events",
        "SELECT event_id, zip_with(tags, tags, (a, b) -> a) AS x FROM events",
    ),
    view(
        "a median over an order",
        "SELECT country, n, median(n) OVER (PARTITION BY country ORDER BY hour) AS m FROM hourly",
        "SELECT country, n, percentile(n, 0.5) OVER (PARTITION BY country ORDER BY hour) AS m FROM hourly",
    ),
    view(
        "a lambda that changes its type",
        "SELECT aggregate(array(1, 2), 0, (a, x) -> a + 0.5) AS s FROM events",
        "SELECT aggregate(array(1, 2), 0D, (a, x) -> a + 0.5D) AS s FROM events",
    ),
    view(
        "an aggregate in a lambda",
        "SELECT transform(array(1, 2), x -> x + count(*)) AS s FROM events",
        "SELECT transform(array(1, 2), x -> x + 1) AS s FROM events",
    ),
    view(
        "a pattern above",
        "SELECT country FROM hourly WHERE country RLIKE '^N(?=L)'",
        "SELECT country FROM hourly WHERE country LIKE 'N%'",
    ),
    view(
        "a text as a float above",
        "SELECT CAST(country AS FLOAT) AS c FROM hourly",
        "SELECT CAST(country AS DOUBLE) AS c FROM hourly",
    ),
    view(
        "too many groupings",
        "SELECT count(*) AS n FROM events GROUP BY CUBE (event_id, user_id, kind, country, amount, price, day)",
        "SELECT count(*) AS n FROM events GROUP BY GROUPING SETS ((event_id, user_id), (kind, country, day), ())",
    ),
    view(
        "grouping without groupings",
        "SELECT country, grouping(country) AS g, count(*) AS n FROM events GROUP BY country",
        "SELECT country, grouping(country) AS g, count(*) AS n FROM events GROUP BY ROLLUP (country)",
    ),
    view(
        "grouping of another column",
        "SELECT country, grouping(kind) AS g, count(*) AS n FROM events GROUP BY ROLLUP (country)",
        "SELECT country, grouping(country) AS g, count(*) AS n FROM events GROUP BY ROLLUP (country)",
    ),
    view(
        "grouping_id of other columns",
        "SELECT country, grouping_id(kind) AS g, count(*) AS n FROM events GROUP BY CUBE (country), kind",
        "SELECT country, grouping_id() AS g, count(*) AS n FROM events GROUP BY CUBE (country), kind",
    ),
    view(
        "a number as a date",
        "SELECT CAST(user_id AS DATE) AS d, count(*) AS n FROM events GROUP BY CAST(user_id AS DATE)",
        "SELECT date_add(DATE '1970-01-01', CAST(user_id AS INT)) AS d, count(*) AS n FROM events GROUP BY date_add(DATE '1970-01-01', CAST(user_id AS INT))",
    ),
    view(
        "FILTER before OVER",
        "SELECT country, sum(n) FILTER (WHERE n > 1) OVER (PARTITION BY country) AS s FROM hourly",
        "SELECT country, sum(CASE WHEN n > 1 THEN n END) OVER (PARTITION BY country) AS s FROM hourly",
    ),
    view(
        "a hopping window that is left out of a grouping",
        "SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country, window(ts, '1 hour', '5 minutes'))",
        "SELECT country, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes'), ROLLUP (country)",
    ),
    view(
        "QUALIFY over a column without a name",
        "SELECT country, n % 2 FROM hourly QUALIFY rank() OVER (ORDER BY n) = 1",
        "SELECT country, n % 2 AS m FROM hourly QUALIFY rank() OVER (ORDER BY n) = 1",
    ),
    view(
        "explode of a text",
        "SELECT word, count(*) AS n FROM events LATERAL VIEW explode(kind) t AS word GROUP BY word",
        "SELECT word, count(*) AS n FROM events LATERAL VIEW explode(split(kind, ' ')) t AS word GROUP BY word",
    ),
    view(
        "explode with too many names",
        "SELECT tag, count(*) AS n FROM events LATERAL VIEW explode(tags) t AS pos, tag GROUP BY tag",
        "SELECT tag, count(*) AS n FROM events LATERAL VIEW posexplode(tags) t AS pos, tag GROUP BY tag",
    ),
    view(
        "split by a regular expression above the aggregation",
        "SELECT c, n FROM (SELECT split(country, '-|--') AS cs, count(*) AS n FROM events GROUP BY country) LATERAL VIEW explode(cs) t AS c",
        "SELECT c, count(*) AS n FROM events LATERAL VIEW explode(split(country, '[-_]')) t AS c GROUP BY c",
    ),
    view(
        "explode beside aggregates",
        "SELECT explode(tags) AS tag, count(*) AS n FROM events",
        "SELECT tag, count(*) AS n FROM (SELECT explode(tags) AS tag FROM events) GROUP BY tag",
    ),
    view(
        "another generator",
        "SELECT a, count(*) AS n FROM events LATERAL VIEW inline(tags) t AS a GROUP BY a",
        "SELECT a, count(*) AS n FROM events LATERAL VIEW explode(tags) t AS a GROUP BY a",
    ),
    view(
        "a lateral join with a condition",
        "SELECT t.tag, count(*) AS n FROM events LEFT JOIN LATERAL explode(tags) AS t(tag) ON t.tag > 'a' GROUP BY t.tag",
        "SELECT t.tag, count(*) AS n FROM events LEFT JOIN LATERAL explode(filter(tags, x -> x > 'a')) AS t(tag) ON true GROUP BY t.tag",
    ),
    view(
        "a table called as cells are beside them",
        "SELECT cell.name, count(*) AS n FROM events JOIN users AS cell USING (user_id) GROUP BY cell.name",
        "SELECT c.name, count(*) AS n FROM events JOIN users AS c USING (user_id) GROUP BY c.name",
    ),
    view(
        "a lateral join of which Spark leaves rows out",
        "SELECT user_id, t.tag FROM events LEFT JOIN LATERAL explode(tags) AS t(tag)",
        "SELECT user_id, t.tag FROM events LEFT JOIN LATERAL explode(tags) AS t(tag) ON true",
    ),
    view(
        "a column of what stands before LATERAL, beside an aggregate",
        "SELECT h.hour, l.m FROM hourly AS h, LATERAL (SELECT sum(i.n) - h.n AS m FROM hourly AS i WHERE i.hour = h.hour) AS l",
        "SELECT h.hour, l.m - h.n AS m FROM hourly AS h, LATERAL (SELECT sum(i.n) AS m FROM hourly AS i WHERE i.hour = h.hour) AS l",
    ),
    view(
        "LATERAL (SELECT …) with a condition",
        "SELECT h.hour, l.n FROM hourly AS h JOIN LATERAL (SELECT n FROM hourly AS i WHERE i.hour = h.hour) AS l ON l.n > 1",
        "SELECT h.hour, l.n FROM hourly AS h JOIN LATERAL (SELECT n FROM hourly AS i WHERE i.hour = h.hour) AS l WHERE l.n > 1",
    ),
    view(
        "a lateral join of the other side",
        "SELECT t.tag, count(*) AS n FROM events RIGHT JOIN LATERAL explode(tags) AS t(tag) ON t.tag > 'a' GROUP BY t.tag",
        "SELECT t.tag, count(*) AS n FROM events JOIN LATERAL explode(tags) AS t(tag) WHERE t.tag > 'a' GROUP BY t.tag",
    ),
    view(
        "the last instant of a window where it is made",
        "SELECT window_time(window) AS until, count(*) AS n FROM events GROUP BY window(ts, '1 hour')",
        "SELECT window.end - INTERVAL 1 MICROSECOND AS until, count(*) AS n FROM events GROUP BY window(ts, '1 hour')",
    ),
    view(
        "an order of all beside a column all",
        "SELECT `all`, n FROM (SELECT kind AS `all`, count(*) AS n FROM events GROUP BY kind) ORDER BY ALL",
        "SELECT `all`, n FROM (SELECT kind AS `all`, count(*) AS n FROM events GROUP BY kind) ORDER BY 1, 2",
    ),
    view(
        "an ambiguous column",
        "SELECT n FROM hourly a JOIN hourly b ON a.country = b.country",
        "SELECT a.n FROM hourly a JOIN hourly b ON a.country = b.country",
    ),
    view(
        "columns of a set operation",
        "SELECT country, n FROM hourly UNION ALL SELECT country FROM hourly",
        "SELECT country, n FROM hourly UNION ALL SELECT country, n FROM hourly",
    ),
    view(
        "a repeated group of single characters",
        "SELECT event_id FROM events WHERE kind RLIKE '^(a|b)*$'",
        "SELECT event_id FROM events WHERE kind RLIKE '^[ab]*$'",
    ),
    view(
        "a repeated group that varies",
        r"SELECT regexp_extract(kind, '(\\w+\\s?)*\\.', 0) AS k FROM events",
        r"SELECT regexp_extract(kind, '(\\w+\\s?)*+\\.', 0) AS k FROM events",
    ),
    view(
        "a repeated group that varies, nested in a few rounds",
        "SELECT split(kind, '(.*,){10}') AS k FROM events",
        "SELECT split(kind, '([^,]*,){10}') AS k FROM events",
    ),
    view(
        "a repeated group above the aggregation",
        "SELECT country FROM hourly WHERE country RLIKE '^(NL|FR)+$'",
        "SELECT country FROM hourly WHERE country RLIKE '^(NL|FR){1,9}$'",
    ),
    view(
        "a bad regular expression",
        "SELECT event_id FROM events WHERE kind RLIKE '(a'",
        "SELECT event_id FROM events WHERE kind RLIKE '(a)'",
    ),
    view(
        "a time in JSON",
        "SELECT from_json(kind, 'at TIMESTAMP').at AS t FROM events",
        "SELECT CAST(from_json(kind, 'at STRING').at AS TIMESTAMP) AS t FROM events",
    ),
    view(
        "a schema that is no literal",
        "SELECT from_json(kind, country) AS t FROM events",
        "SELECT from_json(kind, 'a INT') AS t FROM events",
    ),
    view(
        "the soundex of a group",
        "SELECT soundex(country) AS s, sum(n) AS n FROM hourly GROUP BY soundex(country)",
        "SELECT soundex(country) AS s, count(*) AS n FROM events GROUP BY soundex(country)",
    ),
    view(
        "flatten of texts",
        "SELECT flatten(tags) AS t FROM events",
        "SELECT flatten(array(tags, tags)) AS t FROM events",
    ),
    view(
        "a group that a pattern has not",
        "SELECT regexp_extract(kind, 'a+') AS k FROM events",
        "SELECT regexp_extract(kind, 'a+', 0) AS k FROM events",
    ),
    view(
        "a map_filter of an array",
        "SELECT map_filter(tags, (k, v) -> v > 1) AS t FROM events",
        "SELECT map_filter(map('a', user_id), (k, v) -> v > 1) AS t FROM events",
    ),
    view(
        "a bad time zone",
        "SELECT from_utc_timestamp(ts, 'Mars') AS t FROM events",
        "SELECT from_utc_timestamp(ts, 'Europe/Paris') AS t FROM events",
    ),
    view(
        "a FILTER on no aggregate",
        "SELECT abs(user_id) FILTER (WHERE kind = 'a') AS n FROM events",
        "SELECT CASE WHEN kind = 'a' THEN abs(user_id) END AS n FROM events",
    ),
    view(
        "a lag of another type where there is none",
        "SELECT country, lag(n, 1, 0.5) OVER (ORDER BY country, hour) AS l FROM hourly",
        "SELECT country, lag(CAST(n AS DECIMAL(20, 1)), 1, CAST(0.5 AS DECIMAL(20, 1))) OVER (ORDER BY country, hour) AS l FROM hourly",
    ),
    view(
        "bytes compared with a number",
        "SELECT count(*) AS n FROM events WHERE kafka_key = 5",
        "SELECT count(*) AS n FROM events WHERE CAST(decode(kafka_key, 'UTF-8') AS INT) = 5",
    ),
    view(
        "bytes compared with a text",
        "SELECT count(*) AS n FROM events WHERE kafka_key = 'a'",
        "SELECT count(*) AS n FROM events WHERE decode(kafka_key, 'UTF-8') = 'a'",
    ),
    view(
        "bytes as a number",
        "SELECT CAST(kafka_key AS BIGINT) AS k, count(*) AS n FROM events GROUP BY 1",
        "SELECT CAST(decode(kafka_key, 'UTF-8') AS BIGINT) AS k, count(*) AS n FROM events GROUP BY 1",
    ),
    view(
        "a sum with bytes",
        "SELECT kafka_key + 1 AS k FROM events",
        "SELECT CAST(decode(kafka_key, 'UTF-8') AS BIGINT) + 1 AS k FROM events",
    ),
    view(
        "IGNORE NULLS of a place further off",
        "SELECT country, lag(n, 2) IGNORE NULLS OVER (ORDER BY country, hour) AS f FROM hourly",
        "SELECT country, lag(y) IGNORE NULLS OVER (ORDER BY country, hour) AS f FROM (SELECT country, hour,"
        " CASE WHEN n IS NOT NULL THEN lag(n) IGNORE NULLS OVER (ORDER BY country, hour) END AS y FROM hourly)",
    ),
    view(
        "other characters than UTF-8",
        "SELECT decode(kafka_key, 'ISO-8859-1') AS k FROM events",
        "SELECT decode(kafka_key, 'UTF-8') AS k FROM events",
    ),
    view(
        "bytes as a group key",
        "SELECT kafka_key AS k, count(*) AS n FROM events GROUP BY kafka_key",
        "SELECT decode(kafka_key, 'UTF-8') AS k, count(*) AS n FROM events GROUP BY decode(kafka_key, 'UTF-8')",
    ),
    view("a schema", "SELECT country FROM analytics.hourly", "SELECT country FROM hourly"),
    view("a schema of a database", "SELECT country FROM lamina.analytics.hourly", "SELECT country FROM hourly"),
    view(
        "a FILTER on a function of another system",
        "SELECT jsonb_agg(kind) FILTER (WHERE kind <> 'a') AS kinds FROM events",
        "SELECT collect_list(kind) FILTER (WHERE kind <> 'a') AS kinds FROM events",
    ),
    view(
        "ROLLUP beside sessions of a join",
        "SELECT country, session_window(o.ts, '1 hour').start AS s, count(*) AS n FROM orders o JOIN users u ON u.user_id = o.user_id JOIN hourly ON true GROUP BY session_window(o.ts, '1 hour'), ROLLUP(country)",
        "SELECT country, session_window(o.ts, '1 hour').start AS s, count(*) AS n FROM orders o JOIN users u ON u.user_id = o.user_id JOIN hourly ON true GROUP BY session_window(o.ts, '1 hour'), country UNION ALL SELECT NULL, session_window(o.ts, '1 hour').start, count(*) FROM orders o JOIN users u ON u.user_id = o.user_id JOIN hourly ON true GROUP BY session_window(o.ts, '1 hour')",
    ),
    view(
        "groups by a list that a subquery asks about",
        "SELECT country, count(*) AS n FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE array_contains(e.tags, u.name)) GROUP BY country",
        "SELECT country, to_json(tags) AS tags, count(*) AS n FROM events e GROUP BY country, to_json(tags)",
    ),
    view("nothing to read", "SELECT 1 AS one", "SELECT 1 AS one, country FROM hourly"),
    view("* of nothing", "SELECT *", "SELECT * FROM hourly"),
    view(
        "constants alone",
        "SELECT code FROM (VALUES ('NL'), ('FR')) AS names(code)",
        "SELECT code, n FROM hourly RIGHT JOIN (VALUES ('NL'), ('FR')) AS names(code) ON country = code",
    ),
    view(
        "constants of two types",
        "SELECT n FROM hourly JOIN VALUES ('NL'), (1) AS names(code) ON country = code",
        "SELECT n FROM hourly JOIN VALUES ('NL'), ('1') AS names(code) ON country = code",
    ),
    view(
        "constants of another width",
        "SELECT n FROM hourly JOIN VALUES ('NL', 1), ('FR') AS names(code, x) ON country = code",
        "SELECT n FROM hourly JOIN VALUES ('NL', 1), ('FR', NULL) AS names(code, x) ON country = code",
    ),
    view(
        "too few names of constants",
        "SELECT n FROM hourly JOIN VALUES ('NL', 1) AS names(code) ON country = code",
        "SELECT n FROM hourly JOIN VALUES ('NL', 1) AS names(code, x) ON country = code",
    ),
    view(
        "constants without parentheses and with a name",
        "SELECT n FROM hourly JOIN VALUES 'NL', 'FR' AS names(code) ON country = code",
        "SELECT n FROM hourly JOIN VALUES ('NL'), ('FR') AS names(code) ON country = code",
    ),
    view(
        "a query among constants",
        "SELECT n FROM hourly JOIN VALUES ((SELECT max(country) FROM hourly)) AS names(code) ON country = code",
        "SELECT n FROM hourly JOIN (SELECT max(country) AS code FROM hourly) AS names ON country = code",
    ),
    view(
        "nested constants",
        "SELECT n FROM hourly JOIN VALUES ('NL', array('a', 'b')) AS names(code, more) ON country = code",
        "SELECT n FROM hourly JOIN VALUES ('NL', 'a', 'b') AS names(code, one, other) ON country = code",
    ),
    view(
        "explode of constants",
        "SELECT n, m FROM hourly JOIN (SELECT explode(split('NL FR', ' ')) AS m) AS ms ON country = m",
        "SELECT n, m FROM hourly JOIN VALUES ('NL'), ('FR') AS ms(m) ON country = m",
    ),
    view(
        "constants that no record meets",
        "SELECT name, count(event_id) AS n FROM events RIGHT JOIN (VALUES ('NL', 'N')) AS names(code, name) ON country = code GROUP BY name",
        "SELECT name, n FROM (SELECT country, count(event_id) AS n FROM events GROUP BY country) RIGHT JOIN (VALUES ('NL', 'N')) AS names(code, name) ON country = code",
    ),
    view(
        "constants of one name for records",
        "SELECT count(*) AS n FROM events JOIN (VALUES ('NL', 'N')) AS names(code, code) ON country = 'NL'",
        "SELECT count(*) AS n FROM events JOIN (VALUES ('NL', 'N')) AS names(code, name) ON country = 'NL'",
    ),
    view(
        "a cast of an array to a number",
        "SELECT event_id, CAST(array(amount) AS DECIMAL(10,2)) AS x FROM events",
        "SELECT event_id, CAST(element_at(array(amount), 1) AS DECIMAL(10,2)) AS x FROM events",
    ),
    view(
        "a cast of bytes to a number",
        "SELECT event_id, CAST(CAST(kind AS BINARY) AS INT) AS x FROM events",
        "SELECT event_id, CAST(kind AS INT) AS x FROM events",
    ),
    view(
        "a cast of a local time to a number",
        "SELECT event_id, CAST(CAST(ts AS TIMESTAMP_NTZ) AS BIGINT) AS x FROM events",
        "SELECT event_id, CAST(CAST(CAST(ts AS TIMESTAMP_NTZ) AS TIMESTAMP) AS BIGINT) AS x FROM events",
    ),
    view(
        "the positions of a map above the aggregation",
        "SELECT country, p, k, v FROM hourly LATERAL VIEW posexplode(map('n', n)) t AS p, k, v",
        "SELECT country, k, v FROM hourly LATERAL VIEW explode(map('n', n)) t AS k, v",
    ),
    view(
        "UNNEST",
        "SELECT event_id, tag FROM events CROSS JOIN UNNEST(tags) AS t(tag)",
        "SELECT event_id, tag FROM events CROSS JOIN LATERAL explode(tags) AS t(tag)",
    ),
    view(
        "LATERAL VIEW before a join",
        "SELECT a.country, t.i, b.n FROM hourly a LATERAL VIEW explode(array(1, 2)) t AS i JOIN hourly b ON a.hour = b.hour",
        "SELECT a.country, t.i, b.n FROM hourly a JOIN hourly b ON a.hour = b.hour LATERAL VIEW explode(array(1, 2)) t AS i",
    ),
    view(
        "new names for some columns of a source",
        "SELECT b, count(*) AS n FROM orders AS o(a, b) GROUP BY b",
        "SELECT b, count(*) AS n FROM orders AS o(a, b, c) GROUP BY b",
    ),
    view(
        "IS NULL beside =",
        "SELECT country, country IS NULL = true AS x FROM hourly",
        "SELECT country, (country IS NULL) = true AS x FROM hourly",
    ),
    view(
        "IS NULL of IN",
        "SELECT country, country IN ('NL') IS NULL AS x FROM hourly",
        "SELECT country, (country IN ('NL')) IS NULL AS x FROM hourly",
    ),
    view(
        "GROUP BY ALL beside the name of an output",
        "SELECT country AS c, upper(c) AS d, sum(n) AS n FROM hourly GROUP BY ALL",
        "SELECT country AS c, upper(country) AS d, sum(n) AS n FROM hourly GROUP BY ALL",
    ),
    view(
        "a question in GROUP BY beside a hopping window",
        "SELECT CASE WHEN user_id IN (SELECT user_id FROM orders) THEN 'buys' END AS w, window.start AS s, count(*) AS n FROM events GROUP BY 1, window(ts, '1 hour', '10 minutes')",
        "SELECT CASE WHEN user_id IN (SELECT user_id FROM orders) THEN 'buys' END AS w, s, sum(n) AS n FROM (SELECT user_id, window.start AS s, count(*) AS n FROM events GROUP BY user_id, window(ts, '1 hour', '10 minutes')) GROUP BY 1, 2",
    ),
    view(
        "explode of groups in another order",
        "SELECT country, explode(collect_set(kind)) AS kind FROM events GROUP BY country ORDER BY count(*), kind LIMIT 3",
        "SELECT country, kind FROM (SELECT country, count(*) AS n, collect_set(kind) AS kinds FROM events GROUP BY country) LATERAL VIEW explode(kinds) t AS kind ORDER BY n, kind, country LIMIT 3",
    ),
    view(
        "explode beside ROLLUP",
        "SELECT country, explode(collect_set(kind)) AS kind FROM events GROUP BY ROLLUP (country)",
        "SELECT country, explode(kinds) AS kind FROM (SELECT country, collect_set(kind) AS kinds FROM events GROUP BY ROLLUP (country))",
    ),
    view(
        "explode beside HAVING",
        "SELECT country, explode(collect_set(kind)) AS kind FROM events GROUP BY country HAVING count(*) > 3",
        "SELECT country, explode(kinds) AS kind FROM (SELECT country, collect_set(kind) AS kinds FROM events GROUP BY country HAVING count(*) > 3)",
    ),
    view(
        "a sequence of numbers of a record",
        "SELECT event_id, explode(sequence(1, user_id)) AS i FROM events",
        "SELECT event_id, explode(sequence(1, user_id)) AS i FROM events WHERE user_id BETWEEN 1 AND 100",
    ),
    view(
        "greater than ALL",
        "SELECT country FROM hourly WHERE n >= ALL (SELECT n FROM hourly)",
        "SELECT country FROM hourly WHERE n >= (SELECT max(n) FROM hourly)",
    ),
    view(
        "two tumbling windows",
        "SELECT count(*) AS n FROM events GROUP BY window(ts, '5 minutes'), window(ts, '7 minutes')",
        "SELECT count(*) AS n FROM events GROUP BY window(ts, '5 minutes')",
    ),
    view(
        "ORDER BY a name of two columns",
        "SELECT n AS a, x AS b FROM (SELECT user_id AS n, kind AS n, kind AS x FROM events ORDER BY n LIMIT 2)",
        "SELECT n AS a, x AS b FROM (SELECT user_id AS n, kind AS x FROM events ORDER BY n LIMIT 2)",
    ),
    view(
        "HAVING a name of two columns",
        "SELECT count(*) AS n FROM (SELECT max(user_id) AS x, count(*) AS x FROM events GROUP BY kind HAVING x > 1)",
        "SELECT count(*) AS n FROM (SELECT max(user_id) AS x, count(*) AS y FROM events GROUP BY kind HAVING y > 1)",
    ),
    view(
        "grouping() inside an aggregate",
        "SELECT sum(grouping(kind)) AS n FROM events GROUP BY ROLLUP(kind)",
        "SELECT sum(g) AS n FROM (SELECT kind, grouping(kind) AS g FROM events GROUP BY ROLLUP(kind))",
    ),
    view(
        "grouping() in WHERE",
        "SELECT kind, count(*) AS n FROM events WHERE grouping(kind) = 1 GROUP BY ROLLUP(kind)",
        "SELECT kind, n FROM (SELECT kind, grouping(kind) AS g, count(*) AS n FROM events GROUP BY ROLLUP(kind)) WHERE g = 1",
    ),
    view(
        "grouping() in LATERAL VIEW",
        "SELECT e FROM events LATERAL VIEW explode(array(grouping(kind))) t AS e",
        "SELECT g FROM (SELECT kind, grouping(kind) AS g FROM events GROUP BY ROLLUP(kind))",
    ),
    view(
        "a RANGE of a negative INTERVAL",
        "SELECT country, sum(n) OVER (PARTITION BY country ORDER BY hour RANGE BETWEEN INTERVAL -1 DAY PRECEDING AND CURRENT ROW) AS s FROM hourly",
        "SELECT country, sum(n) OVER (PARTITION BY country ORDER BY hour RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS s FROM hourly",
    ),
    view(
        "a RANGE from a number to an INTERVAL",
        "SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND 1 FOLLOWING) AS s FROM (SELECT to_date(hour) AS d, sum(n) AS n FROM hourly GROUP BY 1)",
        "SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS s FROM (SELECT to_date(hour) AS d, sum(n) AS n FROM hourly GROUP BY 1)",
    ),
    view(
        "a RANGE without ORDER BY",
        "SELECT country, avg(n) OVER (PARTITION BY country RANGE UNBOUNDED PRECEDING) AS a FROM hourly",
        "SELECT country, avg(n) OVER (PARTITION BY country) AS a FROM hourly",
    ),
    view(
        "a frame of more rows than Spark counts",
        "SELECT country, sum(n) OVER (ORDER BY country, hour ROWS BETWEEN CURRENT ROW AND 2147483648 FOLLOWING) AS a FROM hourly",
        "SELECT country, sum(n) OVER (ORDER BY country, hour ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS a FROM hourly",
    ),
    view(
        "an aggregate in ORDER BY of a set operation",
        "SELECT country FROM hourly UNION ALL SELECT kind FROM events ORDER BY count(*) LIMIT 2",
        "SELECT country, count(*) AS n FROM (SELECT country FROM hourly UNION ALL SELECT kind FROM events) GROUP BY country ORDER BY n LIMIT 2",
    ),
    view(
        "UNPIVOT of texts and numbers",
        "SELECT * FROM (SELECT kind, user_id FROM events) UNPIVOT (x FOR n IN (kind, user_id))",
        "SELECT * FROM (SELECT kind, CAST(user_id AS STRING) AS user_id FROM events) UNPIVOT (x FOR n IN (kind, user_id))",
    ),
    view(
        "GROUP BY a value about a row, not selected",
        "SELECT max(n) AS m FROM hourly h GROUP BY country, (SELECT max(i.n) FROM hourly i WHERE i.country = h.country)",
        "SELECT max(n) AS m, (SELECT max(i.n) FROM hourly i WHERE i.country = h.country) AS x FROM hourly h GROUP BY country, (SELECT max(i.n) FROM hourly i WHERE i.country = h.country)",
    ),
    view(
        "LIMIT by an order that is not shown",
        "SELECT * FROM (SELECT country FROM hourly ORDER BY n DESC) LIMIT 3",
        "SELECT country FROM (SELECT country, n FROM hourly) ORDER BY n DESC LIMIT 3",
    ),
    view(
        "first() of records that are sorted",
        "SELECT kind, first(price) AS p FROM (SELECT kind, price FROM events ORDER BY price) GROUP BY kind",
        "SELECT kind, min(price) AS p FROM events GROUP BY kind",
    ),
    view(
        "collect_list() of records that are sorted",
        "SELECT kind, collect_list(user_id) AS p FROM (SELECT kind, user_id FROM events ORDER BY user_id) GROUP BY kind",
        "SELECT kind, sort_array(collect_list(user_id)) AS p FROM events GROUP BY kind",
    ),
    view(
        "IN of maps",
        "SELECT map('a', kind) IN (map('a', kind)) AS x FROM events",
        "SELECT map('a', kind)['a'] IN ('x', 'y') AS x FROM events",
    ),
    view(
        "array_distinct() of maps",
        "SELECT array_distinct(array(map('a', kind))) AS x FROM events",
        "SELECT array_distinct(array(kind)) AS x FROM events",
    ),
    view(
        "33 keys",
        f"SELECT {', '.join(f'user_id + {i} AS k{i}' for i in range(33))}, count(*) AS n FROM events GROUP BY ALL",
        "SELECT user_id AS k0, max(user_id + 32) AS k32, count(*) AS n FROM events GROUP BY ALL",
    ),
    view(
        "today as an argument",
        "SELECT count(*) AS n FROM events WHERE day >= date_sub('today', 7)",
        "SELECT count(*) AS n FROM events WHERE day >= date_sub('2024-01-31', 7)",
    ),
    view(
        "now as a time",
        "SELECT to_timestamp(' NOW ') AS at, user_id FROM events",
        "SELECT to_timestamp('2024-01-31 12:00:00') AS at, user_id FROM events",
    ),
    view(
        "levenshtein() without a bound",
        "SELECT count(*) AS n FROM events WHERE levenshtein(kind, country) < 3",
        "SELECT count(*) AS n FROM events WHERE levenshtein(kind, country, 10) BETWEEN 0 AND 2",
    ),
    view(
        "a number of days that is a column",
        "SELECT ts + INTERVAL user_id DAYS AS due FROM events",
        "SELECT ts + CAST(user_id AS INT) * INTERVAL 1 DAY AS due FROM events",
    ),
    view(
        "timestampadd() of a column",
        "SELECT timestampadd(DAY, user_id, ts) AS due FROM events",
        "SELECT ts + CAST(user_id AS INT) * INTERVAL 1 DAY AS due FROM events",
    ),
    view(
        "keys of a map made anew",
        "SELECT transform_keys(map('a', kind), (k, v) -> upper(k)) AS m FROM events",
        "SELECT map_from_entries(transform(map_entries(map('a', kind)), e -> struct(upper(e.key), e.value))) AS m FROM events",
    ),
    view(
        "two maps as one",
        "SELECT map_concat(map('a', kind), map('b', country)) AS m FROM events",
        "SELECT map_from_entries(concat(map_entries(map('a', kind)), map_entries(map('b', country)))) AS m FROM events",
    ),
    view(
        "pairs in a list",
        "SELECT user_id FROM events WHERE (kind, country) IN (('a', 'NL'), ('b', 'FR'))",
        "SELECT user_id FROM events WHERE (kind = 'a' AND country = 'NL') OR (kind = 'b' AND country = 'FR')",
    ),
    view(
        "a column that is called join",
        "SELECT user_id, join FROM events",
        "SELECT user_id, kind AS `join` FROM events",
    ),
]


def sources(name: str, columns: str, rewrite: str, of: str = _KAFKA, instead: str = _KAFKA) -> Refusal:
    return Refusal(name, f"CREATE TABLE x ({columns}) {of};", f"CREATE TABLE x ({rewrite}) {instead};")


WHAT_OTHER_SYSTEMS_HAVE = [
    Refusal(
        "a computed column of Flink",
        f"CREATE TABLE x (ms BIGINT, at AS (timestamp_millis(ms))) {_KAFKA};",
        f"CREATE TABLE x (ms BIGINT) {_KAFKA};\nCREATE VIEW v AS SELECT *, timestamp_millis(ms) AS at FROM x;",
    ),
    sources(
        "a WATERMARK",
        "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND",
        "ts TIMESTAMP",
        instead=f"{_KAFKA} TBLPROPERTIES ('event_time' = 'ts')",
    ),
    sources("a column of METADATA", "a INT, ts TIMESTAMP(3) METADATA FROM 'timestamp'", "a INT"),
    sources("a ROW", "a ROW<b INT, c STRING>", "a STRUCT<b: INT, c: STRING>"),
    sources("PARTITIONED BY", "a INT", "a INT", of=f"{_KAFKA} PARTITIONED BY (a)"),
    sources(
        "a property among the options",
        "ts TIMESTAMP",
        "ts TIMESTAMP",
        of="USING kafka OPTIONS (topic 'x', format 'json', event_time 'ts')",
        instead=f"{_KAFKA} TBLPROPERTIES ('event_time' = 'ts')",
    ),
    sources(
        "the topic as ksqlDB calls it",
        "a INT",
        "a INT",
        of="USING kafka OPTIONS (kafka_topic 'x', topic 'x', format 'json')",
    ),
    sources("an option among the properties", "a INT", "a INT", of=f"{_KAFKA} TBLPROPERTIES ('value_format' = 'JSON')"),
    sources(
        "Kafka's timestamp as the event time",
        "a INT",
        "a INT",
        of=f"{_KAFKA} TBLPROPERTIES ('event_time' = 'kafka_timestamp')",
    ),
    Refusal(
        "a field of a struct as the event time",
        f"CREATE TABLE x (a INT, b STRING, meta STRUCT<ts: TIMESTAMP>) {_KAFKA} TBLPROPERTIES ('event_time' = 'meta.ts');",
        f"CREATE TABLE x (a INT, b STRING, meta STRUCT<ts: TIMESTAMP>) {_KAFKA};\nCREATE VIEW v AS SELECT a, max_by(b, meta.ts) AS b FROM x GROUP BY a;",
    ),
    Refusal(
        "a stream of ksqlDB", "CREATE STREAM x (a INT) WITH (kafka_topic = 'x');", f"CREATE TABLE x (a INT) {_KAFKA};"
    ),
    Refusal(
        "a materialized view",
        "CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM events;",
        "CREATE VIEW v AS SELECT count(*) AS n FROM events;",
    ),
    Refusal(
        "a function with a schema",
        "CREATE FUNCTION shop.f(x INT) RETURNS INT RETURN x;",
        "CREATE FUNCTION f(x INT) RETURNS INT RETURN x;",
    ),
    Refusal(
        "a temporary function",
        "CREATE TEMPORARY FUNCTION f(x INT) RETURNS INT RETURN x;",
        "CREATE FUNCTION f(x INT) RETURNS INT RETURN x;",
    ),
    Refusal(
        "a call of a catalog's function that needs a name",
        "CREATE FUNCTION size_of(x DECIMAL(10, 2)) RETURNS STRING RETURN CASE WHEN x < 10 THEN 'small' ELSE 'large' END;\nCREATE VIEW v AS SELECT country,\n  size_of(amount) FROM events;",
        "CREATE FUNCTION size_of(x DECIMAL(10, 2)) RETURNS STRING RETURN CASE WHEN x < 10 THEN 'small' ELSE 'large' END;\nCREATE VIEW v AS SELECT country,\n  size_of(amount) AS size FROM events;",
    ),
    view(
        "a value in any element of an array",
        "SELECT event_id FROM events WHERE 'x' = ANY(tags)",
        "SELECT event_id FROM events WHERE array_contains(tags, 'x')",
    ),
    view(
        "an array in brackets", "SELECT ARRAY['a', kind] AS a FROM events", "SELECT array('a', kind) AS a FROM events"
    ),
    view(
        "an operator of Postgres for regular expressions",
        "SELECT event_id FROM events WHERE kind !~ '^a'",
        "SELECT event_id FROM events WHERE NOT kind RLIKE '^a'",
    ),
    view("FLOOR TO", "SELECT FLOOR(ts TO HOUR) AS h FROM events", "SELECT date_trunc('hour', ts) AS h FROM events"),
    view("a template", "SELECT kind FROM {{ ref('events') }}", "SELECT kind FROM events"),
    view("ksqlDB's time of a record", "SELECT ROWTIME AS t FROM events", "SELECT kafka_timestamp AS t FROM events"),
    view(
        "a number as a time",
        "SELECT to_timestamp(user_id) AS t FROM events",
        "SELECT timestamp_millis(user_id) AS t FROM events",
    ),
    view(
        "a window of a number",
        "SELECT window(user_id, '1 hour').start AS t, count(*) AS n FROM events GROUP BY window(user_id, '1 hour')",
        "SELECT window(timestamp_millis(user_id), '1 hour').start AS t, count(*) AS n FROM events GROUP BY window(timestamp_millis(user_id), '1 hour')",
    ),
    view(
        "a number of months in an interval",
        "SELECT ts + user_id * INTERVAL 1 MONTH AS t FROM events",
        "SELECT add_months(ts, CAST(user_id AS INT)) + (ts - date_trunc('day', ts)) AS t FROM events",
    ),
    view(
        "a RANGE of a month",
        "SELECT event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS s FROM events",
        "SELECT a.event_id, sum(b.amount) AS s FROM events a JOIN events b ON b.user_id = a.user_id AND b.ts BETWEEN a.ts - INTERVAL 1 MONTH AND a.ts GROUP BY a.event_id",
    ),
    view(
        "a series that ends today",
        "SELECT d FROM (SELECT explode(sequence(DATE '2024-01-01', current_date(), INTERVAL 1 DAY)) AS d) CROSS JOIN (SELECT count(*) AS n FROM events)",
        "SELECT d FROM (SELECT explode(sequence(DATE '2024-01-01', DATE '2034-12-31', INTERVAL 1 DAY)) AS d) CROSS JOIN (SELECT count(*) AS n FROM events) WHERE d <= current_date()",
    ),
    view(
        "generate_series in FROM",
        "SELECT d FROM generate_series(1, 10) AS t(d) CROSS JOIN events",
        "SELECT d FROM range(1, 11) AS t(d) CROSS JOIN events",
    ),
    view(
        "a total in WHERE",
        "SELECT kind, sum(amount) AS total FROM events WHERE total > 5 GROUP BY kind",
        "SELECT kind, sum(amount) AS total FROM events GROUP BY kind HAVING total > 5",
    ),
    view(
        "a rank in WHERE",
        "SELECT kind, rank() OVER (ORDER BY ts) AS r FROM events WHERE r < 5",
        "SELECT kind, rank() OVER (ORDER BY ts) AS r FROM events QUALIFY r < 5",
    ),
    view(
        "a column that is a function's name, from a subquery",
        "SELECT user FROM (SELECT kind AS user FROM events) AS e WHERE EXISTS (SELECT 1 FROM users WHERE name = user)",
        "SELECT user FROM (SELECT kind AS user FROM events) AS e WHERE EXISTS (SELECT 1 FROM users WHERE name = e.user)",
    ),
    view(
        "a column in double quotes",
        "SELECT kind FROM events WHERE \"kind\" = 'x'",
        "SELECT kind FROM events WHERE `kind` = 'x'",
    ),
    view(
        "a column in double quotes, selected",
        'SELECT "kind", count(*) AS n FROM events GROUP BY "kind"',
        "SELECT `kind`, count(*) AS n FROM events GROUP BY `kind`",
    ),
    view(
        "a sum of a column in double quotes",
        'SELECT sum("amount") AS s FROM events',
        "SELECT sum(`amount`) AS s FROM events",
    ),
    view("an alias in double quotes", 'SELECT count(*) AS "n" FROM events', "SELECT count(*) AS `n` FROM events"),
    view("a column of a relation in double quotes", 'SELECT e."kind" FROM events e', "SELECT e.`kind` FROM events e"),
    view(
        "PIVOT of ANY",
        "SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN (ANY))",
        "SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN ('a', 'b'))",
    ),
    view(
        "a list of the rows so far",
        "SELECT event_id, collect_list(kind) OVER (PARTITION BY user_id ORDER BY ts) AS k FROM events",
        "SELECT a.event_id, collect_list(b.kind) AS k FROM events AS a JOIN events AS b ON b.user_id = a.user_id AND b.ts <= a.ts GROUP BY a.event_id",
    ),
    view(
        "a sort by a lambda",
        "SELECT array_sort(tags, (a, b) -> length(a) - length(b)) AS t FROM events",
        "SELECT array_sort(transform(tags, e -> struct(length(e), e))) AS t FROM events",
    ),
    view(
        "columns of both sides by QUALIFY",
        "SELECT o.*, e.* FROM orders o JOIN events e ON e.user_id = o.user_id QUALIFY row_number() OVER (PARTITION BY o.id ORDER BY o.ts) = 1",
        "SELECT o.*, e.* EXCEPT (user_id, ts) FROM orders o JOIN events e ON e.user_id = o.user_id QUALIFY row_number() OVER (PARTITION BY o.id ORDER BY o.ts) = 1",
    ),
    view(
        "a pattern of Postgres",
        "SELECT to_char(ts, 'YYYY-MM-DD') AS d FROM events",
        "SELECT to_char(ts, 'yyyy-MM-dd') AS d FROM events",
    ),
    view(
        "a week of ISO's in a pattern",
        "SELECT to_char(ts, 'IYYY-IW') AS w FROM events",
        "SELECT concat(EXTRACT(YEAROFWEEK FROM ts), '-W', lpad(weekofyear(ts), 2, '0')) AS w FROM events",
    ),
    view(
        "a cast to INTERVAL",
        "SELECT ts + '1 day'::interval AS t FROM events",
        "SELECT ts + INTERVAL '1 day' AS t FROM events",
    ),
    Refusal(
        "a foreign key of a view that is missing",
        "ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (country) REFERENCES countries (code);",
        "ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (country) REFERENCES users (name);",
    ),
    Refusal(
        "a foreign key of another column",
        "ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (countri) REFERENCES users (name);",
        "ALTER VIEW hourly ADD CONSTRAINT c FOREIGN KEY (country) REFERENCES users (name);",
    ),
    Refusal(
        "a unique key of another column",
        "ALTER VIEW hourly ADD CONSTRAINT c UNIQUE (hours);",
        "ALTER VIEW hourly ADD CONSTRAINT c UNIQUE (hour, country);",
    ),
    view(
        "a column of PIVOT that is missing",
        "SELECT *\nFROM (SELECT country, kind, amount FROM events) PIVOT (sum(amont) FOR kind IN ('a'))",
        "SELECT *\nFROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN ('a'))",
    ),
    view("an alias that another query has", "SELECT x.kind FROM events e", "SELECT e.kind FROM events e"),
    view(
        "a field of a text",
        "SELECT e.kind.user AS u FROM events e",
        "SELECT get_json_object(kind, '$.user') AS u FROM events e",
    ),
    sources(
        "Kafka's key as the primary key",
        "a INT, PRIMARY KEY (kafka_key)",
        "id STRING PRIMARY KEY, a INT",
        instead="USING kafka OPTIONS (topic 'x', format 'json', key_format 'string')",
    ),
    sources("several topics", "a INT", "a INT", of="USING kafka OPTIONS (topic 'a,b', format 'json')"),
    sources(
        "the time of a change that is not its source's",
        "a INT PRIMARY KEY",
        "a INT PRIMARY KEY",
        of="USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'ts_ms')",
        instead="USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'source.ts_ms')",
    ),
    sources(
        "the payload of changes",
        "payload STRUCT<op: STRING>",
        "op STRING",
        of="USING kafka OPTIONS (topic 'x', format 'debezium-json')",
        instead="USING kafka OPTIONS (topic 'x', format 'debezium-json')",
    ),
    view(
        "the length of bytes",
        "SELECT length(kafka_key) AS n FROM events",
        "SELECT length(hex(kafka_key)) div 2 AS n FROM events",
    ),
    view(
        "a hash of bytes",
        "SELECT md5(kafka_key) AS h FROM events",
        "SELECT md5(decode(kafka_key, 'UTF-8')) AS h FROM events",
    ),
    view(
        "a join by one of two keys",
        "SELECT e.kind, o.id FROM events e JOIN orders o ON o.user_id = e.user_id OR o.id = e.user_id",
        "SELECT e.kind, o.id FROM events e JOIN orders o ON o.user_id = e.user_id UNION SELECT e.kind, o.id FROM events e JOIN orders o ON o.id = e.user_id",
    ),
]

REFUSALS = SOURCES + VIEWS + WHAT_OTHER_SYSTEMS_HAVE
