CREATE TABLE events (
  event_id STRING, user_id BIGINT, kind STRING, country STRING, amount DECIMAL(10, 2), price DOUBLE, ts TIMESTAMP,
  day DATE, tags ARRAY<STRING>, payload STRUCT<user: STRUCT<id: BIGINT, name: STRING>>
) USING kafka OPTIONS (topic 'events', format 'json');
CREATE TABLE orders (id BIGINT, user_id BIGINT, ts TIMESTAMP) USING kafka OPTIONS (topic 'orders', format 'json');
CREATE TABLE users (user_id BIGINT, name STRING, PRIMARY KEY (user_id)) USING kafka OPTIONS (topic 'users', format 'json');
CREATE TABLE prices (user_id BIGINT PRIMARY KEY, price DOUBLE, ts TIMESTAMP) USING kafka OPTIONS (topic 'prices', format 'json') TBLPROPERTIES ('event_time' = 'ts');
CREATE VIEW hourly AS SELECT country, date_trunc('hour', ts) AS hour, count(*) AS n FROM events GROUP BY country, date_trunc('hour', ts);
