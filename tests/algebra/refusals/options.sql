-- an unknown start
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'yesterday');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'latest');

-- a start at a time without a zone
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '2026-01-01T00:00:00');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '2026-01-01T00:00:00Z');

-- a start at an offset below 0
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{"0": -1}');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{"0": 4711, "1": 12}');

-- a start at two offsets of a partition
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{"0": 1, "0": 2}');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start '{"0": 4711, "1": 12}');

-- a start among the properties
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('start' = 'latest');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'latest');

-- where a consumer begins
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', startingOffsets 'latest');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json', start 'latest');

-- an unknown property
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('partition' = '2');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('partitions' = '2');

-- partitions in words
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('partitions' = 'two');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('partitions' = '4');

-- a size without its unit
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('quarantine_bytes' = '1000000');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('quarantine_bytes' = '1 GB');

-- quarantine_age in words
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('quarantine_age' = 'a while');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('quarantine_age' = '90 days');

-- two sources on one topic
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'events', format 'json');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- an unknown policy
CREATE VIEW v TBLPROPERTIES ('on_difference' = 'stop') AS SELECT count(*) AS n FROM events;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('on_difference' = 'hold') AS SELECT count(*) AS n FROM events;

-- PARTITIONED BY
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') PARTITIONED BY (a);
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a property among the options
CREATE TABLE x (ts TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json', event_time 'ts');
-- instead, as printed
CREATE TABLE x (ts TIMESTAMP) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('event_time' = 'ts');

-- the topic as ksqlDB calls it
CREATE TABLE x (a INT) USING kafka OPTIONS (kafka_topic 'x', topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- an option among the properties
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json') TBLPROPERTIES ('value_format' = 'JSON');
-- instead
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a stream of ksqlDB
CREATE STREAM x (a INT) WITH (kafka_topic = 'x');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- a materialized view
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM events;
-- instead
CREATE VIEW v AS SELECT count(*) AS n FROM events;

-- several topics
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'a,b', format 'json');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json'); CREATE TABLE y (a INT) USING kafka OPTIONS (topic 'y', format 'json'); CREATE VIEW v AS SELECT * FROM x UNION ALL SELECT * FROM y;

-- USING without a word
CREATE TABLE x (a INT) USING , OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');

-- USING parquet
CREATE VIEW v AS SELECT country FROM hourly;
CREATE TABLE x (a INT) USING parquet OPTIONS (topic 'x', format 'json');
-- instead, as printed
CREATE VIEW v AS SELECT country FROM hourly;
CREATE TABLE x (a INT) USING kafka OPTIONS (topic 'x', format 'json');
