-- an unknown column
CREATE VIEW v AS
SELECT contry, count(*) AS n
FROM events
GROUP BY contry;
-- instead, as printed
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY country;

-- an unknown relation
CREATE VIEW v AS
SELECT count(*) AS n FROM event;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events;

-- an unknown field
CREATE VIEW v AS
SELECT payload.user.nam AS x, count(*) AS n FROM events GROUP BY 1;
-- instead, as printed
CREATE VIEW v AS
SELECT payload.user.name AS x, count(*) AS n FROM events GROUP BY 1;

-- an unknown function
CREATE VIEW v AS
SELECT lenght(kind) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT length(kind) AS x FROM events;

-- an unnamed column
CREATE VIEW v AS
SELECT country, count(*) % 2 FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, count(*) % 2 AS n FROM events GROUP BY country;

-- a name twice in a view
CREATE VIEW v AS
SELECT country, kind AS country FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT country, kind FROM events;

-- a name of the database's own
CREATE VIEW v AS
SELECT kind AS ctid, count(*) AS n FROM events GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind AS another_name, count(*) AS n FROM events GROUP BY kind;

-- * EXCEPT a field
CREATE VIEW v AS
SELECT * EXCEPT (payload, tags, payload.user) FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT * EXCEPT (tags, payload) FROM events;

-- * EXCEPT an unknown column
CREATE VIEW v AS
SELECT * EXCEPT (kinds) FROM hourly;
-- instead
CREATE VIEW v AS
SELECT * EXCEPT (n) FROM hourly;

-- * of a column without a name
CREATE VIEW v AS
SELECT * FROM (SELECT country, max(n) % 10 FROM hourly GROUP BY country);
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT country, max(n) % 10 AS n FROM hourly GROUP BY country);

-- one name for two columns of a subquery
CREATE VIEW v AS
SELECT k, n FROM (SELECT country AS k, kind AS k, count(*) AS n FROM events GROUP BY country, kind);
-- instead
CREATE VIEW v AS
SELECT k, n FROM (SELECT country AS k, kind AS j, count(*) AS n FROM events GROUP BY country, kind);

-- a column from two queries further out
CREATE VIEW v AS
SELECT a.country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b WHERE b.country = a.country AND EXISTS (SELECT 1 FROM events c WHERE c.country = b.country AND c.user_id > a.n));
-- instead
CREATE VIEW v AS
SELECT a.country FROM hourly a WHERE EXISTS (SELECT 1 FROM hourly b JOIN (SELECT country, user_id FROM events GROUP BY ALL) c ON c.country = b.country WHERE b.country = a.country AND c.user_id > a.n);

-- an output in HAVING that hides a column of another type
CREATE VIEW v AS
SELECT country, count(*) AS amount FROM events GROUP BY country HAVING amount > 3;
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY country HAVING n > 3;

-- a correlated subquery over a relation named as compiled ones are
CREATE VIEW v AS
SELECT country FROM hourly WHERE EXISTS (SELECT 1 FROM hourly cell WHERE cell.n = hourly.n);
-- instead
CREATE VIEW v AS
SELECT country FROM hourly WHERE EXISTS (SELECT 1 FROM hourly h WHERE h.n = hourly.n);

-- two CTEs of one name
CREATE VIEW v AS
WITH a AS (SELECT kind FROM events), a AS (SELECT count(*) AS n FROM a) SELECT n FROM a;
-- instead
CREATE VIEW v AS
WITH a AS (SELECT kind FROM events), b AS (SELECT count(*) AS n FROM a) SELECT n FROM b;

-- QUALIFY over a column without a name
CREATE VIEW v AS
SELECT country, n % 2 FROM hourly QUALIFY rank() OVER (ORDER BY n) = 1;
-- instead, as printed
CREATE VIEW v AS
SELECT country, n % 2 AS m FROM hourly QUALIFY rank() OVER (ORDER BY n) = 1;

-- a relation named cell
CREATE VIEW v AS
SELECT cell.name, count(*) AS n FROM events JOIN users AS cell USING (user_id) GROUP BY cell.name;
-- instead, as printed
CREATE VIEW v AS
SELECT c.name, count(*) AS n FROM events JOIN users AS c USING (user_id) GROUP BY c.name;

-- ORDER BY ALL next to a column named all
CREATE VIEW v AS
SELECT `all`, n FROM (SELECT kind AS `all`, count(*) AS n FROM events GROUP BY kind) ORDER BY ALL;
-- instead, as printed
CREATE VIEW v AS
SELECT `all`, n FROM (SELECT kind AS `all`, count(*) AS n FROM events GROUP BY kind) ORDER BY 1, 2;

-- an ambiguous column
CREATE VIEW v AS
SELECT n FROM hourly a JOIN hourly b ON a.country = b.country;
-- instead, as printed
CREATE VIEW v AS
SELECT a.n FROM hourly a JOIN hourly b ON a.country = b.country;

-- a schema
CREATE VIEW v AS
SELECT country FROM analytics.hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM hourly;

-- a schema of a database
CREATE VIEW v AS
SELECT country FROM lamina.analytics.hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM hourly;

-- nothing to read
CREATE VIEW v AS
SELECT 1 AS one;
-- instead
CREATE VIEW v AS
SELECT 1 AS one, country FROM hourly;

-- * without FROM
CREATE VIEW v AS
SELECT *;
-- instead
CREATE VIEW v AS
SELECT * FROM hourly;

-- new names for some columns of a source
CREATE VIEW v AS
SELECT b, count(*) AS n FROM orders AS o(a, b) GROUP BY b;
-- instead
CREATE VIEW v AS
SELECT b, count(*) AS n FROM orders AS o(a, b, c) GROUP BY b;

-- ORDER BY a name of two columns
CREATE VIEW v AS
SELECT n AS a, x AS b FROM (SELECT user_id AS n, kind AS n, kind AS x FROM events ORDER BY n LIMIT 2);
-- instead
CREATE VIEW v AS
SELECT n AS a, x AS b FROM (SELECT user_id AS n, kind AS x FROM events ORDER BY n LIMIT 2);

-- HAVING a name of two columns
CREATE VIEW v AS
SELECT count(*) AS n FROM (SELECT max(user_id) AS x, count(*) AS x FROM events GROUP BY kind HAVING x > 1);
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM (SELECT max(user_id) AS x, count(*) AS y FROM events GROUP BY kind HAVING y > 1);

-- ksqlDB's time of a record
CREATE VIEW v AS
SELECT ROWTIME AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT kafka_timestamp AS t FROM events;

-- a column that is a function's name, from a subquery
CREATE VIEW v AS
SELECT user FROM (SELECT kind AS user FROM events) AS e WHERE EXISTS (SELECT 1 FROM users WHERE name = user);
-- instead, as printed
CREATE VIEW v AS
SELECT user FROM (SELECT kind AS user FROM events) AS e WHERE EXISTS (SELECT 1 FROM users WHERE name = e.user);

-- a column in double quotes
CREATE VIEW v AS
SELECT kind FROM events WHERE "kind" = 'x';
-- instead, as printed
CREATE VIEW v AS
SELECT kind FROM events WHERE `kind` = 'x';

-- a column in double quotes, selected
CREATE VIEW v AS
SELECT "kind", count(*) AS n FROM events GROUP BY "kind";
-- instead, as printed
CREATE VIEW v AS
SELECT `kind`, count(*) AS n FROM events GROUP BY `kind`;

-- a sum of a column in double quotes
CREATE VIEW v AS
SELECT sum("amount") AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT sum(`amount`) AS s FROM events;

-- an alias in double quotes
CREATE VIEW v AS
SELECT count(*) AS "n" FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS `n` FROM events;

-- a column of a relation in double quotes
CREATE VIEW v AS
SELECT e."kind" FROM events e;
-- instead, as printed
CREATE VIEW v AS
SELECT e.`kind` FROM events e;

-- columns of both sides by QUALIFY
CREATE VIEW v AS
SELECT o.*, e.* FROM orders o JOIN events e ON e.user_id = o.user_id QUALIFY row_number() OVER (PARTITION BY o.id ORDER BY o.ts) = 1;
-- instead, as printed
CREATE VIEW v AS
SELECT o.*, e.* EXCEPT (user_id, ts) FROM orders o JOIN events e ON e.user_id = o.user_id QUALIFY row_number() OVER (PARTITION BY o.id ORDER BY o.ts) = 1;

-- an alias that another query has
CREATE VIEW v AS
SELECT x.kind FROM events e;
-- instead, as printed
CREATE VIEW v AS
SELECT e.kind FROM events e;

-- a field of a text
CREATE VIEW v AS
SELECT e.kind.user AS u FROM events e;
-- instead, as printed
CREATE VIEW v AS
SELECT get_json_object(kind, '$.user') AS u FROM events e;
