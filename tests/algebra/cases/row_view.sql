CREATE TABLE events (kind STRING, at TIMESTAMP, payload STRUCT<user: STRUCT<id: BIGINT>, tags: ARRAY<STRING>>)
USING kafka OPTIONS (topic 'events', format 'json');

CREATE VIEW clicks AS
SELECT payload.user.id AS user_id, upper(kind) AS kind, payload.tags, at, kafka_offset AS offset
FROM events WHERE kind IN ('click', 'tap') ORDER BY at, kafka_partition, kafka_offset LIMIT 100;

CREATE VIEW latest AS
SELECT user_id, at FROM (
  SELECT payload.user.id AS user_id, at,
         row_number() OVER (PARTITION BY payload.user.id ORDER BY at DESC, kafka_partition, kafka_offset) AS r
  FROM events)
WHERE r = 1;

CREATE VIEW seen (who, kind, at) AS SELECT payload.user.id, kind, at FROM events WHERE kind LIKE 's%';

CREATE VIEW last_seen AS SELECT who, last(kind) AS kind, count_if(kind RLIKE 'n$') AS n FROM seen GROUP BY who;
