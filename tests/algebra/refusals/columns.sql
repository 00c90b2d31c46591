-- a name of Lamina's own
CREATE TABLE good_records (a INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE fine_records (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a column with the name of an exploded element
CREATE TABLE x (`element 1` INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (element_1 INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.element_1' = 'element 1');

-- a column without a type
CREATE TABLE x (a INT, b) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a INT, b STRING) USING kafka OPTIONS (topic 'x', format 'json');

-- a name without its constraint
CREATE TABLE x (a INT CONSTRAINT whole) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a computed column without its expression
CREATE TABLE x (a INT, b AS) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT, b STRING) USING kafka OPTIONS (topic 'x', format 'json');

-- a map with keys that are not texts
CREATE TABLE x (a MAP<INT, STRING>) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a MAP<STRING, STRING>) USING kafka OPTIONS (topic 'x', format 'json');

-- bytes inside a column
CREATE TABLE x (a ARRAY<STRUCT<b: BINARY>>) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a ARRAY<STRUCT<b: STRING>>) USING kafka OPTIONS (topic 'x', format 'json');

-- an unknown type
CREATE TABLE x (a GEOMETRY) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a STRING) USING kafka OPTIONS (topic 'x', format 'json');

-- a column of times of day
CREATE TABLE x (a INT PRIMARY KEY, at TIME(6)) USING kafka OPTIONS (topic 'x', format 'debezium-json');
-- instead, as printed
CREATE TABLE x (a INT PRIMARY KEY, at BIGINT) USING kafka OPTIONS (topic 'x', format 'debezium-json');

-- a column twice
CREATE TABLE x (a INT, a INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- two columns whose names differ in case
CREATE TABLE x (userId STRING, userid INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (userId STRING, userid_2 INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.userid_2' = 'userid');

-- two fields of a struct whose names differ in case
CREATE TABLE x (a ARRAY<STRUCT<osv: STRING, Osv: STRING>>) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a ARRAY<MAP<STRING, STRING>>) USING kafka OPTIONS (topic 'x', format 'json');

-- two columns of one field
CREATE TABLE x (a INT, b INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.b' = 'a');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a field for a column that is not declared
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.b' = 'c');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.a' = 'c');

-- a column without the name of its field
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.a' = '');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.a' = 'a');

-- a bad field that is neither NULL nor quarantined
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('on_bad_field' = 'drop');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('on_bad_field' = 'null');

-- an empty text that may be NULL
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('empty_as_null' = 'yes');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('empty_as_null' = 'true');

-- a reserved name
CREATE TABLE x (kafka_key STRING) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (key STRING) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.key' = 'kafka_key');

-- a name of Iceberg's
CREATE TABLE x (_pos INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (pos INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('field.pos' = '_pos');

-- a collation
CREATE TABLE x (a STRING COLLATE UTF8_LCASE) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a STRING) USING kafka OPTIONS (topic 'x', format 'json');

-- a computed column
CREATE TABLE x (a INT, b INT GENERATED ALWAYS AS (a + 1)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json'); CREATE VIEW v AS SELECT *, a + 1 AS b FROM x;

-- NOT NULL in a struct
CREATE TABLE x (a STRUCT<b: INT NOT NULL>) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a STRUCT<b: INT>) USING kafka OPTIONS (topic 'x', format 'json');

-- NOT NULL
CREATE TABLE x (a INT NOT NULL) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a misspelled type
CREATE TABLE more (x STRIN) USING kafka OPTIONS (topic 'more', format 'json');
-- instead, as printed
CREATE TABLE more (x STRING) USING kafka OPTIONS (topic 'more', format 'json');

-- another system's type
CREATE VIEW v AS
SELECT user_id::text AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT user_id::string AS t FROM events;

-- eight bytes
CREATE VIEW v AS
SELECT kind::int8 AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT kind::bigint AS t FROM events;

-- VARCHAR without a length
CREATE VIEW v AS
SELECT CAST(user_id AS VARCHAR) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(user_id AS STRING) AS t FROM events;

-- a type of lengths of time
CREATE VIEW v AS
SELECT event_id, CAST('1' AS INTERVAL DAY) AS i FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, CAST('1' AS INT) AS i FROM events;

-- a cast to a type with a collation
CREATE VIEW v AS
SELECT CAST(country AS STRING COLLATE UTF8_LCASE) AS c, count(*) AS n FROM events GROUP BY 1;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(country AS STRING) AS c, count(*) AS n FROM events GROUP BY 1;

-- a column that is called join
CREATE VIEW v AS
SELECT user_id, join FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT user_id, kind AS `join` FROM events;

-- a computed column of Flink
CREATE TABLE x (ms BIGINT, at AS (timestamp_millis(ms))) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (ms BIGINT) USING kafka OPTIONS (topic 'x', format 'json');
CREATE VIEW v AS SELECT *, timestamp_millis(ms) AS at FROM x;

-- a WATERMARK
CREATE TABLE x (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (ts TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'ts');

-- a column of METADATA
CREATE TABLE x (a INT, ts TIMESTAMP(3) METADATA FROM 'timestamp') USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- IN instead of INT
CREATE TABLE x (a IN, b INT) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a STRING, b INT) USING kafka OPTIONS (topic 'x', format 'json');

-- DECIMAL with three sizes
CREATE TABLE x (a DECIMAL(10, 2, 1)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a DECIMAL(10, 2)) USING kafka OPTIONS (topic 'x', format 'json');

-- a CHECK of a source
CREATE TABLE x (a INT, CHECK (a > 0)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');
