-- any row of a correlated subquery
CREATE VIEW v AS
SELECT a.country, (SELECT b.n FROM hourly b WHERE b.country = a.country) AS n FROM hourly a;
-- instead, as printed
CREATE VIEW v AS
SELECT a.country, (SELECT max(b.n) FROM hourly b WHERE b.country = a.country) AS n FROM hourly a;

-- a SELECT in array()
CREATE VIEW v AS
SELECT array(SELECT id FROM orders) AS ids, count(*) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT (SELECT sort_array(collect_list(id)) FROM orders) AS ids, count(*) AS n FROM events;

-- a subquery below
CREATE VIEW v AS
SELECT avg(CASE WHEN country IN (SELECT country FROM hourly) THEN 1 ELSE 0 END) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT count(*) FILTER (WHERE country IN (SELECT country FROM hourly)) / count(*) AS n FROM events;

-- IN as a value
CREATE VIEW v AS
SELECT event_id, country IN (SELECT country FROM hourly) AS known FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, EXISTS (SELECT 1 FROM hourly WHERE hourly.country = e.country) AS known FROM events e;

-- whether IN is NULL
CREATE VIEW v AS
SELECT event_id FROM events WHERE (country IN (SELECT country FROM hourly)) IS NULL;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE NOT EXISTS (SELECT 1 FROM hourly WHERE hourly.country = events.country);

-- a filter of sessions by other records
CREATE VIEW v AS
SELECT user_id, count(*) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events GROUP BY user_id, session_window(ts, '5 minutes');
-- instead
CREATE VIEW v AS
SELECT user_id, count(*) FILTER (WHERE country IN ('NL', 'BE')) AS n FROM events GROUP BY user_id, session_window(ts, '5 minutes');

-- a filter by other records next to a list
CREATE VIEW v AS
SELECT collect_list(kind) AS k, count(*) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT collect_list(kind) AS k FROM events WHERE country IN (SELECT country FROM hourly);

-- a filter by other records in a lambda
CREATE VIEW v AS
SELECT approx_count_distinct(kind) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT approx_count_distinct(kind) AS n FROM events WHERE country IN (SELECT country FROM hourly);

-- a sum of wide decimals by other records
CREATE VIEW v AS
SELECT sum(CASE WHEN country IN (SELECT country FROM hourly) THEN CAST(user_id AS DECIMAL(38, 0)) ELSE 0 END) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT sum(CAST(user_id AS DECIMAL(38, 0))) FILTER (WHERE country IN (SELECT country FROM hourly)) AS n FROM events;

-- a column of the outer query among columns
CREATE VIEW v AS
SELECT country, (SELECT max(n) - hourly.n FROM hourly h WHERE h.country = hourly.country) AS m FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, (SELECT max(n) FROM hourly h WHERE h.country = hourly.country) - n AS m FROM hourly;

-- a correlated subquery next to GROUP BY
CREATE VIEW v AS
SELECT country, max(n) AS n, (SELECT max(h.n) FROM hourly h WHERE h.country = hourly.country) AS m FROM hourly GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, n, (SELECT max(h.n) FROM hourly h WHERE h.country = g.country) AS m FROM (SELECT country, max(n) AS n FROM hourly GROUP BY country) g;

-- a correlated subquery with ROLLUP
CREATE VIEW v AS
SELECT country FROM hourly a WHERE EXISTS (SELECT h.country FROM hourly h WHERE h.n > a.n GROUP BY ROLLUP (h.country) HAVING count(*) > 4);
-- instead
CREATE VIEW v AS
SELECT country FROM hourly a WHERE EXISTS (SELECT h.country FROM hourly h WHERE h.n > a.n GROUP BY h.country HAVING count(*) > 4);

-- a correlated subquery on the optional side of a join
CREATE VIEW v AS
SELECT country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b LEFT JOIN (SELECT hour, n FROM hourly c WHERE c.country = a.country) d ON d.hour = b.hour WHERE d.n > 3);
-- instead
CREATE VIEW v AS
SELECT country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b JOIN (SELECT hour, n FROM hourly c WHERE c.country = a.country) d ON d.hour = b.hour WHERE d.n > 3);

-- a correlated subquery in HAVING next to ROLLUP
CREATE VIEW v AS
SELECT country, sum(n) AS n FROM hourly a GROUP BY ROLLUP (country) HAVING EXISTS (SELECT 1 FROM hourly b WHERE b.country = a.country AND b.n > 3);
-- instead
CREATE VIEW v AS
SELECT country, n FROM (SELECT country, sum(n) AS n FROM hourly GROUP BY ROLLUP (country)) a WHERE EXISTS (SELECT 1 FROM hourly b WHERE b.country = a.country AND b.n > 3);

-- a correlated subquery in ORDER BY
CREATE VIEW v AS
SELECT country, n FROM hourly a ORDER BY (SELECT max(b.n) FROM hourly b WHERE b.country = a.country), country, hour LIMIT 3;
-- instead
CREATE VIEW v AS
SELECT country, n FROM (SELECT country, n, hour, (SELECT max(b.n) FROM hourly b WHERE b.country = a.country) AS m FROM hourly a) ORDER BY m, country, hour LIMIT 3;

-- a correlated subquery about both sides in ON
CREATE VIEW v AS
SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour AND EXISTS (SELECT 1 FROM hourly c WHERE c.n > a.n AND c.n < b.n);
-- instead
CREATE VIEW v AS
SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour WHERE EXISTS (SELECT 1 FROM hourly c WHERE c.n > a.n AND c.n < b.n);

-- a correlated value in ON
CREATE VIEW v AS
SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour AND a.n > (SELECT avg(c.n) FROM hourly c WHERE c.country = b.country);
-- instead
CREATE VIEW v AS
SELECT a.country FROM hourly a JOIN hourly b ON a.hour = b.hour WHERE a.n > (SELECT avg(c.n) FROM hourly c WHERE c.country = b.country);

-- a correlated subquery over another of the same name
CREATE VIEW v AS
SELECT country FROM (SELECT country, n AS m FROM hourly) h WHERE EXISTS (SELECT 1 FROM hourly h WHERE n > m);
-- instead
CREATE VIEW v AS
SELECT country FROM (SELECT country, n AS m FROM hourly) g WHERE EXISTS (SELECT 1 FROM hourly h WHERE n > m);

-- a subquery in WHERE of sessions
CREATE VIEW v AS
SELECT session_window(ts, '30 minutes').start AS s, count(*) AS n FROM events WHERE country IN (SELECT country FROM hourly) GROUP BY session_window(ts, '30 minutes');
-- instead
CREATE VIEW v AS
SELECT session_window(ts, '30 minutes').start AS s, count(*) AS n FROM events WHERE country IN ('NL', 'BE') GROUP BY session_window(ts, '30 minutes');

-- a subquery of many rows
CREATE VIEW v AS
SELECT (SELECT n FROM hourly) AS n, country FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT (SELECT n FROM hourly ORDER BY n LIMIT 1) AS n, country FROM hourly;

-- bytes that other records are asked about
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kafka_key IN (SELECT kafka_key FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE hex(kafka_key) IN (SELECT hex(kafka_key) FROM events);

-- IN of another type of time
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE ts IN (SELECT CAST(ts AS DATE) FROM events);
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE CAST(ts AS DATE) IN (SELECT CAST(ts AS DATE) FROM events);

-- a subquery in a lambda
CREATE VIEW v AS
SELECT transform(array(1, 2), x -> (SELECT max(n) FROM hourly)) AS t FROM events;
-- instead
CREATE VIEW v AS
SELECT transform(array(1, 2), x -> x * 2) AS t FROM events;

-- NULL in a query
CREATE VIEW v AS
SELECT event_id FROM events WHERE CAST(NULL AS BIGINT) NOT IN (SELECT user_id FROM orders);
-- instead
CREATE VIEW v AS
SELECT event_id FROM events WHERE user_id NOT IN (SELECT user_id FROM orders);

-- a subquery in a list
CREATE VIEW v AS
SELECT country, collect_list((SELECT max(n) FROM hourly)) AS n FROM events GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, sort_array(collect_list(n)) AS n FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind) GROUP BY country;

-- EXISTS in ORDER BY
CREATE VIEW v AS
SELECT country, hour FROM hourly ORDER BY EXISTS (SELECT 1 FROM hourly), country, hour LIMIT 3;
-- instead
CREATE VIEW v AS
SELECT country, hour FROM (SELECT country, hour, EXISTS (SELECT 1 FROM hourly) AS e FROM hourly) ORDER BY e, country, hour LIMIT 3;

-- EXISTS next to an operator
CREATE VIEW v AS
SELECT country FROM hourly WHERE EXISTS (SELECT 1 FROM events) = true;
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM hourly WHERE (EXISTS (SELECT 1 FROM events)) = true;
