-- a window function in HAVING
CREATE VIEW v AS
SELECT country, sum(n) AS n FROM hourly GROUP BY country HAVING rank() OVER (ORDER BY sum(n)) = 1;
-- instead
CREATE VIEW v AS
SELECT country, n FROM (SELECT country, n, rank() OVER (ORDER BY n) AS r FROM (SELECT country, sum(n) AS n FROM hourly GROUP BY country)) WHERE r = 1;

-- a window function in ON
CREATE VIEW v AS
SELECT a.n FROM hourly a JOIN hourly b ON a.hour = b.hour AND rank() OVER (ORDER BY a.n) = 1;
-- instead
CREATE VIEW v AS
SELECT a.n FROM (SELECT hour, n, rank() OVER (ORDER BY n) AS r FROM hourly) a JOIN hourly b ON a.hour = b.hour AND a.r = 1;

-- a frame that ends before it begins
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING) AS s FROM hourly;
-- instead
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM hourly;

-- lag over a frame
CREATE VIEW v AS
SELECT n, lag(n) OVER (ORDER BY hour, country ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM hourly;
-- instead
CREATE VIEW v AS
SELECT n, lag(n) OVER (ORDER BY hour, country) AS s FROM hourly;

-- a rank of all rows of a frame
CREATE VIEW v AS
SELECT n, rank() OVER (ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS r FROM hourly;
-- instead
CREATE VIEW v AS
SELECT n, rank() OVER (ORDER BY n) AS r FROM hourly;

-- two windows of one name
CREATE VIEW v AS
SELECT n, rank() OVER w AS r FROM hourly WINDOW w AS (ORDER BY n), w AS (ORDER BY hour);
-- instead
CREATE VIEW v AS
SELECT n, rank() OVER w AS r FROM hourly WINDOW w AS (ORDER BY n), v AS (ORDER BY hour);

-- DISTINCT in the order of something else
CREATE VIEW v AS
SELECT DISTINCT country FROM hourly ORDER BY upper(country), n;
-- instead
CREATE VIEW v AS
SELECT DISTINCT country, n FROM hourly ORDER BY upper(country), n;

-- EXCLUDE in a frame
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS s FROM hourly;
-- instead
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour, country ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s FROM hourly;

-- WITHIN GROUP before OVER
CREATE VIEW v AS
SELECT country, n, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) OVER (PARTITION BY country) AS m FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, n, m FROM hourly JOIN (SELECT country, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS m FROM hourly GROUP BY country) USING (country);

-- a window function of what stands before LATERAL
CREATE VIEW v AS
SELECT a.country, l.m FROM hourly a JOIN LATERAL (SELECT max(b.n + a.n) OVER (PARTITION BY b.hour) AS m FROM hourly b WHERE b.country = a.country) AS l ON true;
-- instead, as printed
CREATE VIEW v AS
SELECT a.country, l.m + a.n AS m FROM hourly a JOIN LATERAL (SELECT max(b.n) OVER (PARTITION BY b.hour) AS m FROM hourly b WHERE b.country = a.country) AS l ON true;

-- a window of another block
CREATE VIEW v AS
SELECT country, sum(n) OVER w AS s FROM (SELECT * FROM hourly WINDOW w AS (PARTITION BY country));
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(n) OVER (ORDER BY country, hour) AS s FROM (SELECT * FROM hourly);

-- a window that adds to another
CREATE VIEW v AS
SELECT country, sum(n) OVER v AS s FROM hourly WINDOW w AS (PARTITION BY country), v AS (w ORDER BY hour);
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(n) OVER (PARTITION BY country ORDER BY hour) AS s FROM hourly;

-- a window by the name of a name
CREATE VIEW v AS
SELECT country, sum(n) OVER v AS s FROM hourly WINDOW w AS (PARTITION BY country), u AS w, v AS u;
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(n) OVER (ORDER BY country) AS s FROM hourly;

-- a range of numbers
CREATE VIEW v AS
SELECT country, n, sum(n) OVER (ORDER BY n RANGE BETWEEN 0.5 PRECEDING AND CURRENT ROW) AS s FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, n, sum(n) OVER (ORDER BY n RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM hourly;

-- a range of numbers over times
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY n RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS s FROM hourly;

-- a range of time over a number
CREATE VIEW v AS
SELECT country, n, sum(n) OVER (ORDER BY n RANGE BETWEEN INTERVAL 3 HOURS PRECEDING AND CURRENT ROW) AS s FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, n, sum(n) OVER (ORDER BY hour RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW) AS s FROM hourly;

-- a range of hours over days
CREATE VIEW v AS
SELECT day, sum(count(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 24 HOURS PRECEDING AND CURRENT ROW) AS s FROM events GROUP BY day;
-- instead
CREATE VIEW v AS
SELECT day, sum(count(*)) OVER (ORDER BY day RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS s FROM events GROUP BY day;

-- a range of two units
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 HOUR FOLLOWING) AS s FROM hourly;
-- instead
CREATE VIEW v AS
SELECT n, sum(n) OVER (ORDER BY hour RANGE BETWEEN INTERVAL 24 HOURS PRECEDING AND INTERVAL 1 HOUR FOLLOWING) AS s FROM hourly;

-- the last of numbered records
CREATE VIEW v AS
SELECT user_id, last(kind) AS k FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS r FROM events) WHERE r < 5 GROUP BY user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT user_id, max_by(kind, ts) AS k FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS r FROM events) WHERE r < 5 GROUP BY user_id;

-- numbered elements
CREATE VIEW v AS
SELECT tag, row_number() OVER (PARTITION BY tag ORDER BY ts) AS r FROM events LATERAL VIEW explode(tags) t AS tag;
-- instead, as printed
CREATE VIEW v AS
SELECT tag, row_number() OVER (PARTITION BY tag ORDER BY ts, kafka_partition, kafka_offset, place) AS r FROM events LATERAL VIEW posexplode(tags) t AS place, tag;

-- row_number of rows without a unique key
CREATE VIEW v AS
SELECT country, row_number() OVER (ORDER BY country) AS r FROM (SELECT country FROM hourly UNION ALL SELECT country FROM hourly);
-- instead
CREATE VIEW v AS
SELECT country, row_number() OVER (ORDER BY country) AS r FROM (SELECT country FROM hourly UNION SELECT country FROM hourly);

-- ORDER BY among arguments
CREATE VIEW v AS
SELECT country, string_agg(kind, ',' ORDER BY ts) AS k FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, listagg(kind, ',') WITHIN GROUP (ORDER BY ts) AS k FROM events GROUP BY country;

-- last_value of rows with equal sort keys
CREATE VIEW v AS
SELECT country, hour, last_value(n) OVER (PARTITION BY country ORDER BY date_trunc('day', hour)) AS r FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, hour, last_value(n) OVER (PARTITION BY country ORDER BY date_trunc('day', hour), hour) AS r FROM hourly;

-- nth_value of 0
CREATE VIEW v AS
SELECT nth_value(n, 0) OVER (ORDER BY hour, country) AS n FROM hourly;
-- instead
CREATE VIEW v AS
SELECT nth_value(n, 1) OVER (ORDER BY hour, country) AS n FROM hourly;

-- nth_value without ORDER BY
CREATE VIEW v AS
SELECT nth_value(n, 1) OVER () AS n FROM (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT nth_value(n, 1) OVER (ORDER BY n) AS n FROM (SELECT count(*) AS n FROM events);

-- first_value without ORDER BY
CREATE VIEW v AS
SELECT country, hour, first_value(n) OVER (PARTITION BY country) AS r FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, hour, first_value(n) OVER (PARTITION BY country ORDER BY hour) AS r FROM hourly;

-- a rank in ORDER BY alone
CREATE VIEW v AS
SELECT country, hour, n FROM hourly ORDER BY rank() OVER (ORDER BY n), country, hour LIMIT 3;
-- instead
CREATE VIEW v AS
SELECT country, hour, n FROM (SELECT country, hour, n, rank() OVER (ORDER BY n) AS r FROM hourly) ORDER BY r, country, hour LIMIT 3;

-- a window function inside another
CREATE VIEW v AS
SELECT country, rank() OVER (ORDER BY sum(n) OVER (PARTITION BY country)) AS r FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, rank() OVER (ORDER BY s) AS r FROM (SELECT country, sum(n) OVER (PARTITION BY country) AS s FROM hourly);

-- parts counted from 0
CREATE VIEW v AS
SELECT split_index(country, ',', 0) AS c, count(*) AS n FROM events GROUP BY 1;
-- instead, as printed
CREATE VIEW v AS
SELECT split_part(country, ',', 1) AS c, count(*) AS n FROM events GROUP BY 1;

-- FILTER before OVER
CREATE VIEW v AS
SELECT country, sum(n) FILTER (WHERE n > 1) OVER (PARTITION BY country) AS s FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(CASE WHEN n > 1 THEN n END) OVER (PARTITION BY country) AS s FROM hourly;

-- a lag of another type where there is none
CREATE VIEW v AS
SELECT country, lag(n, 1, 0.5) OVER (ORDER BY country, hour) AS l FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, lag(n, 1, CAST(0.5 AS BIGINT)) OVER (ORDER BY country, hour) AS l FROM hourly;

-- IGNORE NULLS of a place further off
CREATE VIEW v AS
SELECT country, lag(n, 2) IGNORE NULLS OVER (ORDER BY country, hour) AS f FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, lag(y) IGNORE NULLS OVER (ORDER BY country, hour) AS f FROM (SELECT country, hour, CASE WHEN n IS NOT NULL THEN lag(n) IGNORE NULLS OVER (ORDER BY country, hour) END AS y FROM hourly);

-- a RANGE of a negative INTERVAL
CREATE VIEW v AS
SELECT country, sum(n) OVER (PARTITION BY country ORDER BY hour RANGE BETWEEN INTERVAL -1 DAY PRECEDING AND CURRENT ROW) AS s FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, sum(n) OVER (PARTITION BY country ORDER BY hour RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS s FROM hourly;

-- a RANGE from a number to an INTERVAL
CREATE VIEW v AS
SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND 1 FOLLOWING) AS s FROM (SELECT to_date(hour) AS d, sum(n) AS n FROM hourly GROUP BY 1);
-- instead
CREATE VIEW v AS
SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL 1 DAY FOLLOWING) AS s FROM (SELECT to_date(hour) AS d, sum(n) AS n FROM hourly GROUP BY 1);

-- a RANGE without ORDER BY
CREATE VIEW v AS
SELECT country, avg(n) OVER (PARTITION BY country RANGE UNBOUNDED PRECEDING) AS a FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, avg(n) OVER (PARTITION BY country) AS a FROM hourly;

-- a frame of more rows than Spark counts
CREATE VIEW v AS
SELECT country, sum(n) OVER (ORDER BY country, hour ROWS BETWEEN CURRENT ROW AND 2147483648 FOLLOWING) AS a FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(n) OVER (ORDER BY country, hour ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS a FROM hourly;

-- a RANGE of a month
CREATE VIEW v AS
SELECT event_id, sum(amount) OVER (PARTITION BY user_id ORDER BY ts RANGE BETWEEN INTERVAL 1 MONTH PRECEDING AND CURRENT ROW) AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT a.event_id, sum(b.amount) AS s FROM events a JOIN events b ON b.user_id = a.user_id AND b.ts BETWEEN a.ts - INTERVAL 1 MONTH AND a.ts GROUP BY a.event_id;

-- a rank in WHERE
CREATE VIEW v AS
SELECT kind, rank() OVER (ORDER BY ts) AS r FROM events WHERE r < 5;
-- instead
CREATE VIEW v AS
SELECT kind, rank() OVER (ORDER BY ts) AS r FROM events QUALIFY r < 5;

-- collect_list OVER an order
CREATE VIEW v AS
SELECT event_id, collect_list(kind) OVER (PARTITION BY user_id ORDER BY ts) AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT a.event_id, collect_list(b.kind) AS k FROM events AS a JOIN events AS b ON b.user_id = a.user_id AND b.ts <= a.ts GROUP BY a.event_id;
