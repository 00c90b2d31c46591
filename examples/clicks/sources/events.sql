CREATE TABLE events (
  user_id  BIGINT,
  kind     STRING COMMENT 'login, show, click, buy or logout',
  query    STRING COMMENT 'what was searched for',
  country  STRING,
  province STRING,
  city     STRING,
  ts       TIMESTAMP COMMENT 'when it happened'
) USING kafka OPTIONS (topic 'events', format 'json')
COMMENT 'what visitors of a search page do; made up'
TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
