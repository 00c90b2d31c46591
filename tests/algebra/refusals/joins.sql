-- ASOF JOIN
CREATE VIEW v AS
SELECT o.id, p.price FROM orders o ASOF JOIN prices p ON o.user_id = p.user_id AND o.ts >= p.ts;
-- instead, as printed
CREATE VIEW v AS
SELECT o.id, p.price FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;

-- a join of a text with a number
CREATE VIEW v AS
SELECT count(*) AS n FROM events e JOIN users u ON e.event_id = u.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events e JOIN users u ON CAST(e.event_id AS BIGINT) = u.user_id;

-- a join of a decimal with a text, in WHERE
CREATE VIEW v AS
SELECT count(*) AS n FROM events e, users u WHERE e.amount = u.name AND e.user_id = u.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events e, users u WHERE e.amount = CAST(u.name AS DECIMAL(10,2)) AND e.user_id = u.user_id;

-- a join of a text with a number, USING
CREATE VIEW v AS
SELECT count(*) AS n FROM (SELECT event_id AS id FROM events) e JOIN orders o USING (id);
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM (SELECT CAST(event_id AS BIGINT) AS id FROM events) e JOIN orders o USING (id);

-- percentile_approx over a join
CREATE VIEW v AS
SELECT percentile_approx(p.price, 0.5) AS m FROM orders o JOIN prices p ON o.user_id = p.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT percentile(p.price, 0.9) AS m FROM orders o JOIN prices p ON o.user_id = p.user_id;

-- OUTER JOIN
CREATE VIEW v AS
SELECT o.id FROM orders o OUTER JOIN users u;
-- instead, as printed
CREATE VIEW v AS
SELECT o.id FROM orders o FULL JOIN users u ON o.user_id = u.user_id;

-- a column of one join next to a column that USING merges
CREATE VIEW v AS
SELECT country, a.n FROM hourly a JOIN hourly b USING (country) JOIN hourly c ON a.country = c.country;
-- instead, as printed
CREATE VIEW v AS
SELECT a.country, a.n FROM hourly a JOIN hourly b USING (country) JOIN hourly c ON a.country = c.country;

-- all columns of a join next to a NATURAL JOIN
CREATE VIEW v AS
SELECT * FROM (SELECT country FROM hourly) a NATURAL JOIN (SELECT country, n FROM hourly) b JOIN (SELECT country, hour FROM hourly) c ON a.country = c.country;
-- instead, as printed
CREATE VIEW v AS
SELECT a.*, b.n, c.hour FROM (SELECT country FROM hourly) a NATURAL JOIN (SELECT country, n FROM hourly) b JOIN (SELECT country, hour FROM hourly) c ON a.country = c.country;

-- a lateral subquery on a condition
CREATE VIEW v AS
SELECT a.country, l.n FROM hourly a LEFT JOIN LATERAL (SELECT n FROM hourly b WHERE b.country = a.country) AS l ON l.n > a.n;
-- instead, as printed
CREATE VIEW v AS
SELECT a.country, l.n FROM hourly a LEFT JOIN LATERAL (SELECT n FROM hourly b WHERE b.country = a.country AND b.n > a.n) AS l ON true;

-- a join in parentheses on the right
CREATE VIEW v AS
SELECT c.hour, a.n FROM hourly c LEFT JOIN (hourly a JOIN hourly b ON a.country = b.country) ON a.country = c.country;
-- instead, as printed
CREATE VIEW v AS
SELECT c.hour, ab.n FROM hourly c LEFT JOIN (SELECT a.country, a.n FROM hourly a JOIN hourly b ON a.country = b.country) AS ab ON ab.country = c.country;

-- a JOIN before the ON of another
CREATE VIEW v AS
SELECT c.hour, a.n FROM hourly c JOIN hourly a JOIN hourly b ON a.country = b.country ON a.country = c.country;
-- instead, as printed
CREATE VIEW v AS
SELECT c.hour, ab.n FROM hourly c JOIN (SELECT a.country, a.n FROM hourly a JOIN hourly b ON a.country = b.country) AS ab ON ab.country = c.country;

-- a join in parentheses with a name
CREATE VIEW v AS
SELECT ab.x FROM ((SELECT country, n AS x FROM hourly) a JOIN hourly b ON a.x = b.n) ab;
-- instead, as printed
CREATE VIEW v AS
SELECT ab.x FROM (SELECT a.x FROM (SELECT country, n AS x FROM hourly) a JOIN hourly b ON a.x = b.n) ab;

-- the last of joined groups
CREATE VIEW v AS
SELECT a.country, last(b.n) AS n FROM hourly a JOIN hourly b ON b.country = a.country GROUP BY a.country;
-- instead, as printed
CREATE VIEW v AS
SELECT a.country, max_by(b.n, b.hour) AS n FROM hourly a JOIN hourly b ON b.country = a.country GROUP BY a.country;

-- a stream as of a time
CREATE VIEW v AS
SELECT count(*) AS n FROM orders o JOIN events FOR SYSTEM_TIME AS OF o.ts AS e ON o.user_id = e.user_id;
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;

-- a right join as of a time
CREATE VIEW v AS
SELECT count(*) AS n FROM orders o RIGHT JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM orders o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;

-- a table as of a time without a join
CREATE VIEW v AS
SELECT price FROM prices FOR SYSTEM_TIME AS OF TIMESTAMP '2026-01-01' AS p;
-- instead, as printed
CREATE VIEW v AS
SELECT p.price FROM orders AS o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;

-- AS OF an unknown column
CREATE VIEW v AS
SELECT o.id, p.price
FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.tss AS p ON o.user_id = p.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT o.id, p.price
FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;

-- as of a number
CREATE VIEW v AS
SELECT o.id, p.price
FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.id AS p ON o.user_id = p.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT o.id, p.price
FROM orders o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;

-- all pairs of records
CREATE VIEW v AS
SELECT o.id, e.kind FROM orders o, events e WHERE o.ts < e.ts;
-- instead, as printed
CREATE VIEW v AS
SELECT o.id, e.kind FROM orders o JOIN events e ON o.user_id = e.user_id AND o.ts < e.ts;

-- a SEMI JOIN without a condition
CREATE VIEW v AS
SELECT country FROM hourly LEFT SEMI JOIN (SELECT country AS c FROM hourly) b;
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM hourly LEFT SEMI JOIN (SELECT country AS c FROM hourly) b ON c = country;

-- a hint
CREATE VIEW v AS
SELECT /*+ BROADCAST(events) */ country, count(*) AS n FROM events GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY country;

-- a lateral join with a condition
CREATE VIEW v AS
SELECT t.tag, count(*) AS n FROM events LEFT JOIN LATERAL explode(tags) AS t(tag) ON t.tag > 'a' GROUP BY t.tag;
-- instead, as printed
CREATE VIEW v AS
SELECT t.tag, count(*) AS n FROM events LEFT JOIN LATERAL explode(filter(tags, x -> x > 'a')) AS t(tag) ON true GROUP BY t.tag;

-- a lateral join of which Spark leaves rows out
CREATE VIEW v AS
SELECT user_id, t.tag FROM events LEFT JOIN LATERAL explode(tags) AS t(tag);
-- instead, as printed
CREATE VIEW v AS
SELECT user_id, t.tag FROM events LEFT JOIN LATERAL explode(tags) AS t(tag) ON true;

-- a column of a relation before LATERAL, next to an aggregate
CREATE VIEW v AS
SELECT h.hour, l.m FROM hourly AS h, LATERAL (SELECT sum(i.n) - h.n AS m FROM hourly AS i WHERE i.hour = h.hour) AS l;
-- instead, as printed
CREATE VIEW v AS
SELECT h.hour, l.m - h.n AS m FROM hourly AS h, LATERAL (SELECT sum(i.n) AS m FROM hourly AS i WHERE i.hour = h.hour) AS l;

-- LATERAL (SELECT …) with a condition
CREATE VIEW v AS
SELECT h.hour, l.n FROM hourly AS h JOIN LATERAL (SELECT n FROM hourly AS i WHERE i.hour = h.hour) AS l ON l.n > 1;
-- instead
CREATE VIEW v AS
SELECT h.hour, l.n FROM hourly AS h JOIN LATERAL (SELECT n FROM hourly AS i WHERE i.hour = h.hour) AS l WHERE l.n > 1;

-- a lateral join of the other side
CREATE VIEW v AS
SELECT t.tag, count(*) AS n FROM events RIGHT JOIN LATERAL explode(tags) AS t(tag) ON t.tag > 'a' GROUP BY t.tag;
-- instead
CREATE VIEW v AS
SELECT t.tag, count(*) AS n FROM events JOIN LATERAL explode(tags) AS t(tag) WHERE t.tag > 'a' GROUP BY t.tag;

-- constants that no record meets
CREATE VIEW v AS
SELECT name, count(event_id) AS n FROM events RIGHT JOIN (VALUES ('NL', 'N')) AS names(code, name) ON country = code GROUP BY name;
-- instead, as printed
CREATE VIEW v AS
SELECT name, n FROM (SELECT country, count(event_id) AS n FROM events GROUP BY country) RIGHT JOIN (VALUES ('NL', 'N')) AS names(code, name) ON country = code;

-- constants of one name for records
CREATE VIEW v AS
SELECT count(*) AS n FROM events JOIN (VALUES ('NL', 'N')) AS names(code, code) ON country = 'NL';
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events JOIN (VALUES ('NL', 'N')) AS names(code, name) ON country = 'NL';

-- LATERAL VIEW before a join
CREATE VIEW v AS
SELECT a.country, t.i, b.n FROM hourly a LATERAL VIEW explode(array(1, 2)) t AS i JOIN hourly b ON a.hour = b.hour;
-- instead, as printed
CREATE VIEW v AS
SELECT a.country, t.i, b.n FROM hourly a CROSS JOIN LATERAL explode(array(1, 2)) AS t(i) JOIN hourly b ON a.hour = b.hour;

-- a join by one of two keys
CREATE VIEW v AS
SELECT e.kind, o.id FROM events e JOIN orders o ON o.user_id = e.user_id OR o.id = e.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT e.kind, o.id FROM events e JOIN orders o ON o.user_id = e.user_id UNION SELECT e.kind, o.id FROM events e JOIN orders o ON o.id = e.user_id;

-- AS OF without a time
CREATE VIEW v AS
SELECT o.id, p.price FROM orders AS o JOIN prices FOR SYSTEM_TIME AS OF AS p ON o.user_id = p.user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT o.id, p.price FROM orders AS o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.user_id = p.user_id;
