-- UNIQUE of an unknown column
CREATE TABLE x (a INT, UNIQUE (b)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT, UNIQUE (a)) USING kafka OPTIONS (topic 'x', format 'json');

-- UNIQUE of a list
CREATE TABLE x (a ARRAY<INT>, b INT, UNIQUE (a)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a ARRAY<INT>, b INT, UNIQUE (b)) USING kafka OPTIONS (topic 'x', format 'json');

-- UNIQUE twice
CREATE TABLE x (a INT UNIQUE, b INT UNIQUE) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a INT, b INT, UNIQUE (a, b)) USING kafka OPTIONS (topic 'x', format 'json');

-- UNIQUE of a table
CREATE TABLE x (a INT PRIMARY KEY, b INT, UNIQUE (b)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT PRIMARY KEY, b INT) USING kafka OPTIONS (topic 'x', format 'json');

-- dedupe_within in words
CREATE TABLE x (a INT, UNIQUE (a)) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('dedupe_within' = 'an hour');
-- instead, as printed
CREATE TABLE x (a INT, UNIQUE (a)) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('dedupe_within' = '1 hour');

-- a primary key of several values
CREATE TABLE x (a ARRAY<INT> PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json');

-- changes without a key
CREATE TABLE x (a INT, b STRING) USING kafka OPTIONS (topic 'x', format 'debezium-json');
-- instead, as printed
CREATE TABLE x (op STRING, after STRUCT<a: INT, b: STRING>, ts_ms TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json');

-- a time of a change that is a number
CREATE TABLE x (a INT PRIMARY KEY, b BIGINT) USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'b');
-- instead, as printed
CREATE TABLE x (a INT PRIMARY KEY, b TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'b', 'epoch' = 'us');

-- a time that is a number
CREATE TABLE x (a BIGINT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'a');
-- instead, as printed
CREATE TABLE x (a TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'a', 'epoch' = 'ms');

-- a time that is computed
CREATE TABLE x (a BIGINT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'timestamp_millis(a)');
-- instead, as printed
CREATE TABLE x (a TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'a', 'epoch' = 'ms');

-- an unknown epoch unit
CREATE TABLE x (a TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('epoch' = 'millis');
-- instead, as printed
CREATE TABLE x (a TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('epoch' = 'ms');

-- an epoch unit without a column of times
CREATE TABLE x (a BIGINT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('epoch' = 'ms');
-- instead
CREATE TABLE x (a TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('epoch' = 'ms');

-- two units
CREATE TABLE x (ts_ms TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json', 'time.precision.mode' 'connect') TBLPROPERTIES ('epoch' = 'us');
-- instead
CREATE TABLE x (ts_ms TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'debezium-json', 'time.precision.mode' 'connect');

-- an unknown mode of Debezium
CREATE TABLE x (a DECIMAL) USING kafka OPTIONS (topic 'x', format 'json', decimal.handling.mode 'text');
-- instead, as printed
CREATE TABLE x (a DECIMAL) USING kafka OPTIONS (topic 'x', format 'json', decimal.handling.mode 'string');

-- two primary keys
CREATE TABLE x (a INT PRIMARY KEY, b INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b)) USING kafka OPTIONS (topic 'x', format 'json');

-- key_format of a stream
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', key_format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a text as the key of two columns
CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b)) USING kafka OPTIONS (topic 'x', format 'json', key_format 'string');
-- instead, as printed
CREATE TABLE x (a INT, b INT, PRIMARY KEY (a, b)) USING kafka OPTIONS (topic 'x', format 'json', key_format 'json');

-- an unknown key_format
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json', key_format 'thrift');
-- instead, as printed
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json');

-- event_time of an unknown column
CREATE TABLE x (at TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'att');
-- instead, as printed
CREATE TABLE x (at TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'at');

-- event_time of a change by another name
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'source.ts_us');
-- instead, as printed
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'source.ts_ms');

-- a placeholder of a stream
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', 'unavailable.value.placeholder' 'same');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- event_time of another type
CREATE TABLE x (at STRING) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'at');
-- instead, as printed
CREATE TABLE x (at TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'at');

-- dedupe_within without UNIQUE
CREATE TABLE more (x STRING) USING kafka OPTIONS (topic 'more', format 'json') TBLPROPERTIES ('dedupe_within' = '1 day');
-- instead, as printed
CREATE TABLE more (id STRING, UNIQUE (id)) USING kafka OPTIONS (topic 'more', format 'json') TBLPROPERTIES ('dedupe_within' = '1 day');

-- Kafka's timestamp as the event time
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'kafka_timestamp');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a field of a struct as the event time
CREATE TABLE x (a INT, b STRING, meta STRUCT<ts: TIMESTAMP>) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'meta.ts');
-- instead, as printed
CREATE TABLE x (a INT, b STRING, meta STRUCT<ts: TIMESTAMP>) USING kafka OPTIONS (topic 'x', format 'json');
CREATE VIEW v AS SELECT a, max_by(b, meta.ts) AS b FROM x GROUP BY a;

-- Kafka's key as the primary key
CREATE TABLE x (a INT, PRIMARY KEY (kafka_key)) USING kafka OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (id STRING PRIMARY KEY, a INT) USING kafka OPTIONS (topic 'x', format 'json', key_format 'string');

-- the time of a change that is not its source's
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'ts_ms');
-- instead, as printed
CREATE TABLE x (a INT PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'debezium-json') TBLPROPERTIES ('event_time' = 'source.ts_ms');

-- the payload of changes
CREATE TABLE x (payload STRUCT<op: STRING>) USING kafka OPTIONS (topic 'x', format 'debezium-json');
-- instead, as printed
CREATE TABLE x (op STRING) USING kafka OPTIONS (topic 'x', format 'debezium-json');

-- UNIQUE without columns
CREATE TABLE x (a INT, UNIQUE) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT, UNIQUE (a)) USING kafka OPTIONS (topic 'x', format 'json');

-- UNIQUE with an empty list
CREATE TABLE x (a INT, UNIQUE ()) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT, UNIQUE (a)) USING kafka OPTIONS (topic 'x', format 'json');

-- PRIMARY KEY without columns
CREATE TABLE x (a INT, PRIMARY KEY) USING kafka OPTIONS (topic 'x', format 'json');
-- instead
CREATE TABLE x (a INT, PRIMARY KEY (a)) USING kafka OPTIONS (topic 'x', format 'json');
