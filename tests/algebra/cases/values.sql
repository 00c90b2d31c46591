CREATE TABLE events (user_id BIGINT, kind STRING, amount DECIMAL(10, 2), price DOUBLE, ts TIMESTAMP)
USING kafka OPTIONS (topic 'events', format 'json') TBLPROPERTIES ('event_time' = 'ts');

CREATE VIEW middles AS
SELECT kind, median(amount) AS middle, percentile(price, 0.99) AS p99, mode(user_id) AS busiest,
       collect_set(user_id) AS users, approx_count_distinct(user_id) AS about, count(*) AS n
FROM events GROUP BY kind;

CREATE VIEW latest AS
SELECT user_id, last(kind) AS kind, max_by(kind, amount) FILTER (WHERE price > 1) AS dearest, min(ts) AS since
FROM events GROUP BY user_id;

CREATE VIEW spread AS SELECT kind, stddev(price) AS deviation, corr(price, amount) AS together FROM events GROUP BY kind;
