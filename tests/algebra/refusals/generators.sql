-- a step away from the end
CREATE VIEW v AS
SELECT s, n FROM (SELECT explode(sequence(10, 1, 4)) AS s) CROSS JOIN (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT s, n FROM (VALUES (1), (2)) AS steps(s) CROSS JOIN (SELECT count(*) AS n FROM events);

-- a sequence whose end comes from a record
CREATE VIEW v AS
SELECT event_id, explode(sequence(user_id, kafka_offset, 5)) AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT country, explode(sequence(min(user_id), max(user_id), 5)) AS s FROM events GROUP BY country;

-- the months between two that records decide
CREATE VIEW v AS
SELECT explode(sequence(a, z, INTERVAL 1 MONTH)) AS day FROM (SELECT min(day) AS a, max(day) AS z FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT explode(sequence(a, z, INTERVAL 1 DAY)) AS day FROM (SELECT min(day) AS a, max(day) AS z FROM events);

-- days that go backwards
CREATE VIEW v AS
SELECT explode(sequence(DATE '2024-12-31', DATE '2024-01-01')) AS day, n FROM (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT d.day, n FROM (SELECT explode(sequence(DATE '2024-01-01', DATE '2024-12-31')) AS day) d CROSS JOIN (SELECT count(*) AS n FROM events);

-- a calendar of two centuries
CREATE VIEW v AS
SELECT d.day, n FROM (SELECT explode(sequence(DATE '1900-01-01', DATE '2100-01-01')) AS day) d CROSS JOIN (SELECT count(*) AS n FROM events);
-- instead
CREATE VIEW v AS
SELECT d.day, n FROM (SELECT explode(sequence(DATE '1900-01-01', DATE '2100-01-01', INTERVAL 1 MONTH)) AS day) d CROSS JOIN (SELECT count(*) AS n FROM events);

-- a range of no rows
CREATE VIEW v AS
SELECT id, n FROM range(0) CROSS JOIN (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT id, n FROM range(0, 24) CROSS JOIN (SELECT count(*) AS n FROM events);

-- a range without a step
CREATE VIEW v AS
SELECT id, n FROM range(0, 24, 0) CROSS JOIN (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT id, n FROM range(0, 24) CROSS JOIN (SELECT count(*) AS n FROM events);

-- a range of more rows than a BIGINT counts
CREATE VIEW v AS
SELECT id, n FROM range(-1, 9223372036854775807) CROSS JOIN (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT id, n FROM range(0, 24) CROSS JOIN (SELECT count(*) AS n FROM events);

-- a table of a function
CREATE VIEW v AS
SELECT * FROM json_each('[1]');
-- instead
CREATE VIEW v AS
SELECT id, n FROM range(3) CROSS JOIN (SELECT count(*) AS n FROM events);

-- stack of rows of different lengths
CREATE VIEW v AS
SELECT stack(2, 'a', amount, 'p') AS (what, value) FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT stack(2, 'a', amount, 'b', CAST(user_id AS DECIMAL(10, 2))) AS (what, value) FROM events;

-- stack of two types
CREATE VIEW v AS
SELECT stack(2, 'a', amount, 'b', user_id) AS (what, value) FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT stack(2, 'a', amount, 'b', CAST(user_id AS DECIMAL(10, 2))) AS (what, value) FROM events;

-- two explodes among columns
CREATE VIEW v AS
SELECT explode(tags) AS a, explode(tags) AS b FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT explode(tags) AS a, tag FROM events LATERAL VIEW explode(tags) t AS tag;

-- explode of a text
CREATE VIEW v AS
SELECT word, count(*) AS n FROM events LATERAL VIEW explode(kind) t AS word GROUP BY word;
-- instead, as printed
CREATE VIEW v AS
SELECT word, count(*) AS n FROM events LATERAL VIEW explode(split(kind, ' ')) t AS word GROUP BY word;

-- explode with too many names
CREATE VIEW v AS
SELECT tag, count(*) AS n FROM events LATERAL VIEW explode(tags) t AS pos, tag GROUP BY tag;
-- instead
CREATE VIEW v AS
SELECT tag, count(*) AS n FROM events LATERAL VIEW posexplode(tags) t AS pos, tag GROUP BY tag;

-- explode next to aggregates
CREATE VIEW v AS
SELECT explode(tags) AS tag, count(*) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT tag, count(*) AS n FROM (SELECT explode(tags) AS tag FROM events) GROUP BY tag;

-- another generator
CREATE VIEW v AS
SELECT a, count(*) AS n FROM events LATERAL VIEW inline(tags) t AS a GROUP BY a;
-- instead
CREATE VIEW v AS
SELECT a, count(*) AS n FROM events LATERAL VIEW explode(tags) t AS a GROUP BY a;

-- constants alone
CREATE VIEW v AS
SELECT code FROM (VALUES ('NL'), ('FR')) AS names(code);
-- instead
CREATE VIEW v AS
SELECT code, n FROM hourly RIGHT JOIN (VALUES ('NL'), ('FR')) AS names(code) ON country = code;

-- constants of two types
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL'), (1) AS names(code) ON country = code;
-- instead
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL'), ('1') AS names(code) ON country = code;

-- constants of another width
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL', 1), ('FR') AS names(code, x) ON country = code;
-- instead
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL', 1), ('FR', NULL) AS names(code, x) ON country = code;

-- too few names of constants
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL', 1) AS names(code) ON country = code;
-- instead
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL', 1) AS names(code, x) ON country = code;

-- constants without parentheses and with a name
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES 'NL', 'FR' AS names(code) ON country = code;
-- instead, as printed
CREATE VIEW v AS
SELECT hourly.n FROM hourly JOIN VALUES (1), (2) AS numbers(n) ON hourly.n = numbers.n;

-- a query among constants
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ((SELECT max(country) FROM hourly)) AS names(code) ON country = code;
-- instead
CREATE VIEW v AS
SELECT n FROM hourly JOIN (SELECT max(country) AS code FROM hourly) AS names ON country = code;

-- nested constants
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL', array('a', 'b')) AS names(code, more) ON country = code;
-- instead
CREATE VIEW v AS
SELECT n FROM hourly JOIN VALUES ('NL', 'a', 'b') AS names(code, one, other) ON country = code;

-- explode of constants
CREATE VIEW v AS
SELECT n, m FROM hourly JOIN (SELECT explode(split('NL FR', ' ')) AS m) AS ms ON country = m;
-- instead, as printed
CREATE VIEW v AS
SELECT n, m FROM hourly JOIN VALUES (1), (2) AS ms(m) ON n = m;

-- the positions of a map above the aggregation
CREATE VIEW v AS
SELECT country, p, k, v FROM hourly LATERAL VIEW posexplode(map('n', n)) t AS p, k, v;
-- instead, as printed
CREATE VIEW v AS
SELECT country, k, v FROM hourly LATERAL VIEW explode(map('n', n)) t AS k, v;

-- UNNEST
CREATE VIEW v AS
SELECT event_id, tag FROM events CROSS JOIN UNNEST(tags) AS t(tag);
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, tag FROM events CROSS JOIN LATERAL explode(tags) AS t(tag);

-- explode of groups in another order
CREATE VIEW v AS
SELECT country, explode(collect_set(kind)) AS kind FROM events GROUP BY country ORDER BY count(*), kind LIMIT 3;
-- instead
CREATE VIEW v AS
SELECT country, kind FROM (SELECT country, count(*) AS n, collect_set(kind) AS kinds FROM events GROUP BY country) LATERAL VIEW explode(kinds) t AS kind ORDER BY n, kind, country LIMIT 3;

-- explode next to ROLLUP
CREATE VIEW v AS
SELECT country, explode(collect_set(kind)) AS kind FROM events GROUP BY ROLLUP (country);
-- instead
CREATE VIEW v AS
SELECT country, explode(kinds) AS kind FROM (SELECT country, collect_set(kind) AS kinds FROM events GROUP BY ROLLUP (country));

-- explode next to HAVING
CREATE VIEW v AS
SELECT country, explode(collect_set(kind)) AS kind FROM events GROUP BY country HAVING count(*) > 3;
-- instead
CREATE VIEW v AS
SELECT country, explode(kinds) AS kind FROM (SELECT country, collect_set(kind) AS kinds FROM events GROUP BY country HAVING count(*) > 3);

-- a sequence of numbers of a record
CREATE VIEW v AS
SELECT event_id, explode(sequence(1, user_id)) AS i FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, explode(sequence(1, user_id)) AS i FROM events WHERE user_id BETWEEN 1 AND 100;

-- a series that ends today
CREATE VIEW v AS
SELECT d FROM (SELECT explode(sequence(DATE '2024-01-01', current_date(), INTERVAL 1 DAY)) AS d) CROSS JOIN (SELECT count(*) AS n FROM events);
-- instead, as printed
CREATE VIEW v AS
SELECT d FROM (SELECT explode(sequence(DATE '2024-01-01', DATE '2034-12-31', INTERVAL 1 DAY)) AS d) CROSS JOIN (SELECT count(*) AS n FROM events) WHERE d <= current_date();

-- generate_series in FROM
CREATE VIEW v AS
SELECT d FROM generate_series(1, 10) AS t(d) CROSS JOIN events;
-- instead, as printed
CREATE VIEW v AS
SELECT d FROM range(1, 11) AS t(d) CROSS JOIN events;

-- an empty array in FROM
CREATE VIEW v AS
SELECT h.country, t.n FROM hourly AS h CROSS JOIN explode(array()) AS t(n);
-- instead, as printed
CREATE VIEW v AS
SELECT h.country, t.n FROM hourly AS h CROSS JOIN (VALUES (1), (2)) AS t(n);
