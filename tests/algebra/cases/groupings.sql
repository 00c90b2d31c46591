CREATE TABLE events (user_id BIGINT, kind STRING, country STRING, amount DECIMAL(10, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'events', format 'json');

CREATE VIEW places AS
SELECT date_trunc('day', ts) AS day, country, grouping(country) AS all_countries, count(*) AS n, avg(amount) AS mean
FROM events GROUP BY date_trunc('day', ts), ROLLUP (country) HAVING count(*) > 10;
