-- neither grouped nor aggregated
CREATE VIEW v AS
SELECT country, kind, count(*) AS n FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, max(kind) AS kind, count(*) AS n FROM events GROUP BY country;

-- neither grouped nor aggregated, of a view
CREATE VIEW v AS
SELECT country, sum(n) AS n FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT max(country) AS country, sum(n) AS n FROM hourly;

-- GROUP BY ()
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY ();
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events;

-- () next to columns
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY country, ();
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY country;

-- columns of GROUP BY in parentheses
CREATE VIEW v AS
SELECT country, kind, count(*) AS n FROM events GROUP BY (country, kind);
-- instead, as printed
CREATE VIEW v AS
SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind;

-- GROUP BY DISTINCT
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY DISTINCT ROLLUP (country), ROLLUP (country);
-- instead, as printed
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country);

-- GROUP BY ALL and a column
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY ALL country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY ALL;

-- a constant among groupings
CREATE VIEW v AS
SELECT 'all' AS of, country, count(*) AS n FROM events GROUP BY CUBE ('all', country);
-- instead
CREATE VIEW v AS
SELECT 'all' AS of, country, count(*) AS n FROM events GROUP BY CUBE (country);

-- groupings in an order that is not selected
CREATE VIEW v AS
SELECT coalesce(country, 'all') AS c, count(*) AS n FROM events GROUP BY ROLLUP (country) ORDER BY grouping(country), n;
-- instead
CREATE VIEW v AS
SELECT coalesce(country, 'all') AS c, country, count(*) AS n FROM events GROUP BY ROLLUP (country) ORDER BY grouping(country), n;

-- groupings of what is not selected
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY CUBE (country, kind) HAVING grouping(kind) = 0;
-- instead
CREATE VIEW v AS
SELECT country, kind, count(*) AS n FROM events GROUP BY CUBE (country, kind) HAVING grouping(kind) = 0;

-- grouping() of two columns
CREATE VIEW v AS
SELECT country, kind, grouping(country, kind) AS g FROM events GROUP BY CUBE (country, kind);
-- instead, as printed
CREATE VIEW v AS
SELECT country, kind, grouping_id() AS g FROM events GROUP BY CUBE (country, kind);

-- () in ROLLUP
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country, ());
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country);

-- GROUPING SETS by two columns that are one
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY GROUPING SETS ((user_id + 1), (1 + user_id));
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY GROUPING SETS ((user_id + 1), (user_id + 1));

-- an aggregate in WHERE
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events WHERE count(*) > 1 GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY country HAVING count(*) > 1;

-- an aggregate in an aggregate
CREATE VIEW v AS
SELECT max(count(*)) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT max(n) AS n FROM (SELECT country, count(*) AS n FROM events GROUP BY country);

-- a nested group key
CREATE VIEW v AS
SELECT array(price) AS p, count(*) AS n FROM events GROUP BY array(price);
-- instead, as printed
CREATE VIEW v AS
SELECT to_json(array(price)) AS p, count(*) AS n FROM events GROUP BY to_json(array(price));

-- a part of a struct that is grouped by
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events GROUP BY struct(kind, country);
-- instead
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events GROUP BY struct(kind, country), kind;

-- ROLLUP of a struct
CREATE VIEW v AS
SELECT payload.user AS u, count(*) AS n FROM events GROUP BY ROLLUP(payload.user);
-- instead
CREATE VIEW v AS
SELECT payload.user.id AS id, payload.user.name AS name, count(*) AS n FROM events GROUP BY ROLLUP((payload.user.id, payload.user.name));

-- Hive's number of a grouping
CREATE VIEW v AS
SELECT country, grouping__id AS g, count(*) AS n FROM events GROUP BY ROLLUP(country);
-- instead, as printed
CREATE VIEW v AS
SELECT country, grouping_id() AS g, count(*) AS n FROM events GROUP BY ROLLUP(country);

-- a column of a grouping in an aggregate over windows
CREATE VIEW v AS
SELECT country, max(country) OVER () AS m, count(*) AS n FROM events GROUP BY ROLLUP (country);
-- instead
CREATE VIEW v AS
SELECT country, max(country) OVER () AS m, n FROM (SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country));

-- a list among several groupings
CREATE VIEW v AS
SELECT tags, kind, count(*) AS n FROM events GROUP BY CUBE (tags, kind);
-- instead, as printed
CREATE VIEW v AS
SELECT to_json(tags) AS tags, kind, count(*) AS n FROM events GROUP BY CUBE (to_json(tags), kind);

-- too many groupings
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY CUBE (event_id, user_id, kind, country, amount, price, day);
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY GROUPING SETS ((event_id, user_id), (kind, country, day), ());

-- grouping without groupings
CREATE VIEW v AS
SELECT country, grouping(country) AS g, count(*) AS n FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, grouping(country) AS g, count(*) AS n FROM events GROUP BY ROLLUP (country);

-- grouping of another column
CREATE VIEW v AS
SELECT country, grouping(kind) AS g, count(*) AS n FROM events GROUP BY ROLLUP (country);
-- instead
CREATE VIEW v AS
SELECT country, grouping(country) AS g, count(*) AS n FROM events GROUP BY ROLLUP (country);

-- grouping_id of other columns
CREATE VIEW v AS
SELECT country, grouping_id(kind) AS g, count(*) AS n FROM events GROUP BY CUBE (country), kind;
-- instead, as printed
CREATE VIEW v AS
SELECT country, grouping_id() AS g, count(*) AS n FROM events GROUP BY CUBE (country), kind;

-- bytes as a group key
CREATE VIEW v AS
SELECT kafka_key AS k, count(*) AS n FROM events GROUP BY kafka_key;
-- instead, as printed
CREATE VIEW v AS
SELECT decode(kafka_key, 'UTF-8') AS k, count(*) AS n FROM events GROUP BY decode(kafka_key, 'UTF-8');

-- ROLLUP next to sessions of a join
CREATE VIEW v AS
SELECT country, session_window(o.ts, '1 hour').start AS s, count(*) AS n FROM orders o JOIN users u ON u.user_id = o.user_id JOIN hourly ON true GROUP BY session_window(o.ts, '1 hour'), ROLLUP(country);
-- instead, as printed
CREATE VIEW v AS
SELECT country, session_window(o.ts, '1 hour').start AS s, count(*) AS n FROM orders o JOIN users u ON u.user_id = o.user_id JOIN hourly ON true GROUP BY session_window(o.ts, '1 hour'), country UNION ALL SELECT NULL, session_window(o.ts, '1 hour').start, count(*) FROM orders o JOIN users u ON u.user_id = o.user_id JOIN hourly ON true GROUP BY session_window(o.ts, '1 hour');

-- groups by a list that a subquery asks about
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events e WHERE EXISTS (SELECT 1 FROM users u WHERE array_contains(e.tags, u.name)) GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, to_json(tags) AS tags, count(*) AS n FROM events e GROUP BY country, to_json(tags);

-- GROUP BY ALL next to the name of an output
CREATE VIEW v AS
SELECT country AS c, upper(c) AS d, sum(n) AS n FROM hourly GROUP BY ALL;
-- instead
CREATE VIEW v AS
SELECT country AS c, upper(country) AS d, sum(n) AS n FROM hourly GROUP BY ALL;

-- grouping() inside an aggregate
CREATE VIEW v AS
SELECT sum(grouping(kind)) AS n FROM events GROUP BY ROLLUP(kind);
-- instead
CREATE VIEW v AS
SELECT sum(g) AS n FROM (SELECT kind, grouping(kind) AS g FROM events GROUP BY ROLLUP(kind));

-- grouping() in WHERE
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events WHERE grouping(kind) = 1 GROUP BY ROLLUP(kind);
-- instead
CREATE VIEW v AS
SELECT kind, n FROM (SELECT kind, grouping(kind) AS g, count(*) AS n FROM events GROUP BY ROLLUP(kind)) WHERE g = 1;

-- grouping() in LATERAL VIEW
CREATE VIEW v AS
SELECT e FROM events LATERAL VIEW explode(array(grouping(kind))) t AS e;
-- instead
CREATE VIEW v AS
SELECT g FROM (SELECT kind, grouping(kind) AS g FROM events GROUP BY ROLLUP(kind));

-- GROUP BY a correlated subquery that is not selected
CREATE VIEW v AS
SELECT max(n) AS m FROM hourly h GROUP BY country, (SELECT max(i.n) FROM hourly i WHERE i.country = h.country);
-- instead
CREATE VIEW v AS
SELECT max(n) AS m, (SELECT max(i.n) FROM hourly i WHERE i.country = h.country) AS x FROM hourly h GROUP BY country, (SELECT max(i.n) FROM hourly i WHERE i.country = h.country);

-- 33 keys
CREATE VIEW v AS
SELECT user_id + 0 AS k0, user_id + 1 AS k1, user_id + 2 AS k2, user_id + 3 AS k3, user_id + 4 AS k4, user_id + 5 AS k5, user_id + 6 AS k6, user_id + 7 AS k7, user_id + 8 AS k8, user_id + 9 AS k9, user_id + 10 AS k10, user_id + 11 AS k11, user_id + 12 AS k12, user_id + 13 AS k13, user_id + 14 AS k14, user_id + 15 AS k15, user_id + 16 AS k16, user_id + 17 AS k17, user_id + 18 AS k18, user_id + 19 AS k19, user_id + 20 AS k20, user_id + 21 AS k21, user_id + 22 AS k22, user_id + 23 AS k23, user_id + 24 AS k24, user_id + 25 AS k25, user_id + 26 AS k26, user_id + 27 AS k27, user_id + 28 AS k28, user_id + 29 AS k29, user_id + 30 AS k30, user_id + 31 AS k31, user_id + 32 AS k32, count(*) AS n FROM events GROUP BY ALL;
-- instead, as printed
CREATE VIEW v AS
SELECT user_id AS k0, max(user_id + 32) AS k32, count(*) AS n FROM events GROUP BY ALL;

-- a total in WHERE
CREATE VIEW v AS
SELECT kind, sum(amount) AS total FROM events WHERE total > 5 GROUP BY kind;
-- instead
CREATE VIEW v AS
SELECT kind, sum(amount) AS total FROM events GROUP BY kind HAVING total > 5;
