CREATE TABLE events (user_id BIGINT, kind STRING, country STRING, amount DECIMAL(10, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'events', format 'json');

CREATE VIEW users AS SELECT count(DISTINCT user_id) AS users FROM events;

CREATE VIEW visits AS
SELECT window(ts, '1 hour').start AS hour, country, count(*) AS page_views, count(DISTINCT user_id) AS visitors,
       count(DISTINCT user_id) FILTER (WHERE kind = 'click') AS clickers, sum(DISTINCT amount) AS amounts,
       max(DISTINCT amount) AS most
FROM events GROUP BY window(ts, '1 hour'), country HAVING count(DISTINCT user_id) > 1;

CREATE VIEW countries AS SELECT count(DISTINCT country) AS countries, sum(DISTINCT visitors) AS sums FROM visits;
