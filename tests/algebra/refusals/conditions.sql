-- WHERE NULL
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE NULL;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE CAST(NULL AS BOOLEAN);

-- pairs of values
CREATE VIEW v AS
SELECT kind FROM events WHERE (kind, country) = ('a', 'b');
-- instead, as printed
CREATE VIEW v AS
SELECT kind FROM events WHERE user_id = 1 AND event_id = 2;

-- text and truth in a list
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kind IN (true);
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE CAST(kind AS BOOLEAN) IN (true);

-- a time and a text
CREATE VIEW v AS
SELECT event_id, CAST(ts - '2024-01-01' AS BIGINT) AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(ts - CAST('2024-01-01' AS TIMESTAMP) AS BIGINT) AS s FROM events;

-- a number as a condition
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE user_id;
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE user_id <> 0;

-- count(DISTINCT (a, b))
CREATE VIEW v AS
SELECT count(DISTINCT (user_id, kind)) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT count(DISTINCT to_json(struct(user_id, kind))) AS n FROM events;

-- to_char of a number
CREATE VIEW v AS
SELECT to_char(amount, '999.99') AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT format_number(amount, 2) AS t FROM events;

-- an escape in the middle of a pattern
CREATE VIEW v AS
SELECT country FROM events WHERE kind LIKE 'a\\b';
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM events WHERE kind LIKE 'a\\\\b';

-- several values in a list
CREATE VIEW v AS
SELECT country FROM hourly WHERE (country, n) IN (('NL', 1), ('BE', 2));
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM hourly WHERE (length(country) = 1 AND n = 2) OR (length(country) = 3 AND n = 4);

-- ESCAPE before a character that needs none
CREATE VIEW v AS
SELECT country FROM hourly WHERE country LIKE '!NL' ESCAPE '!';
-- instead
CREATE VIEW v AS
SELECT country FROM hourly WHERE country LIKE '!!NL' ESCAPE '!';

-- a BOOLEAN compared with a fraction
CREATE VIEW v AS
SELECT event_id, (user_id > 1) = 0.5 AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(user_id > 1 AS INT) = 0.5 AS x FROM events;

-- structs compared
CREATE VIEW v AS
SELECT event_id, payload.user < payload.user AS less FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, payload.user.id < payload.user.id AS less FROM events;

-- maps compared
CREATE VIEW v AS
SELECT event_id, map('a', kind) = map('a', country) AS same FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, to_json(map('a', kind)) = to_json(map('a', country)) AS same FROM events;

-- lists of fractions compared above the aggregation
CREATE VIEW v AS
SELECT country, array(avg(n)) = array(max(n) + 0.5D) AS same FROM hourly GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, avg(n) = max(n) + 0.5D AS same FROM hourly GROUP BY country;

-- greater than ALL
CREATE VIEW v AS
SELECT country FROM hourly WHERE n >= ALL (SELECT n FROM hourly);
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM hourly WHERE n >= (SELECT max(n) FROM hourly);

-- IN of maps
CREATE VIEW v AS
SELECT map('a', kind) IN (map('a', kind)) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT map('a', kind)['a'] IN ('x', 'y') AS x FROM events;

-- pairs in a list
CREATE VIEW v AS
SELECT user_id FROM events WHERE (kind, country) IN (('a', 'NL'), ('b', 'FR'));
-- instead, as printed
CREATE VIEW v AS
SELECT user_id FROM events WHERE (user_id = 1 AND price = 2) OR (user_id = 3 AND price = 4);

-- a value in any element of an array
CREATE VIEW v AS
SELECT event_id FROM events WHERE 'x' = ANY(tags);
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE array_contains(tags, 'x');
