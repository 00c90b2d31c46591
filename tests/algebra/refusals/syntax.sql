-- a syntax error
CREATE VIEW v AS SELECT count(* FROM events;
-- instead
CREATE VIEW v AS SELECT count(*) AS n FROM events;

-- a sign without a number
CREATE VIEW v AS SELECT + FROM events;
-- instead
CREATE VIEW v AS SELECT +amount AS x FROM events;

-- an open quote
CREATE VIEW v AS SELECT 'x FROM events;
-- instead
CREATE VIEW v AS SELECT 'x' AS x FROM events;

-- a misspelled keyword
CREATE VIEW v AS SELEC country FROM events;
-- instead
CREATE VIEW v AS SELECT country FROM events;

-- a comma too many
CREATE VIEW v AS
SELECT country,, kind FROM events;
-- instead
CREATE VIEW v AS
SELECT country, kind FROM events;

-- a comma at the end
CREATE VIEW v AS
SELECT country, FROM events;
-- instead
CREATE VIEW v AS
SELECT country FROM events;

-- nothing selected
CREATE VIEW v AS
SELECT FROM events;
-- instead
CREATE VIEW v AS
SELECT country FROM events;

-- OVER without parentheses
CREATE VIEW v AS
SELECT sum(user_id) OVER AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT sum(user_id) OVER () AS n FROM events;

-- no condition
CREATE VIEW v AS
SELECT country FROM events WHERE;
-- instead
CREATE VIEW v AS
SELECT country FROM events;

-- half a sum
CREATE VIEW v AS
SELECT user_id + FROM events;
-- instead
CREATE VIEW v AS
SELECT user_id + 1 AS n FROM events;

-- nested too deeply
CREATE VIEW v AS
SELECT ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((user_id)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))) AS u FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT user_id IN (1, 2) AS u FROM events;

-- a sum after ||
CREATE VIEW v AS
SELECT event_id, kind || user_id + 1 AS k FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, kind || (user_id + 1) AS k FROM events;

-- LIKE after =
CREATE VIEW v AS
SELECT event_id, (amount > 1) = kind LIKE 'a%' AS k FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, (amount > 1) = (kind LIKE 'a%') AS k FROM events;

-- a shift next to another bitwise operator
CREATE VIEW v AS
SELECT user_id & 3 >> 1 AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT (user_id & 3) >> 1 AS n FROM events;

-- a sum next to ||
CREATE VIEW v AS
SELECT country || user_id + 1 AS t FROM events;
-- instead
CREATE VIEW v AS
SELECT country || (user_id + 1) AS t FROM events;

-- a comparison next to IN
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE user_id > 1 = kind IN ('a', 'b');
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE (user_id > 1) = (kind IN ('a', 'b'));

-- a comparison next to LIKE
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kind LIKE 'a%' = true;
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE (kind LIKE 'a%') = true;

-- a unit in quotes
CREATE VIEW v AS
SELECT datediff('day', ts, kafka_timestamp) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT datediff(DAY, ts, kafka_timestamp) AS n FROM events;

-- FILTER without WHERE
CREATE VIEW v AS
SELECT count(*) FILTER (kind = 'x') AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) FILTER (WHERE kind = 'x') AS n FROM events;

-- TOP
CREATE VIEW v AS
SELECT TOP 10 kind, count(*) AS n FROM events GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events GROUP BY kind ORDER BY n DESC LIMIT 10;

-- ISNULL after a value
CREATE VIEW v AS
SELECT event_id FROM events WHERE country ISNULL;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE country IS NULL;

-- NOT NULL without IS
CREATE VIEW v AS
SELECT event_id FROM events WHERE country NOT NULL;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE country IS NOT NULL;

-- IS before a value
CREATE VIEW v AS
SELECT event_id FROM events WHERE country IS event_id;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE country IS NOT DISTINCT FROM event_id;

-- OFFSET with ROWS
CREATE VIEW v AS
SELECT event_id FROM events ORDER BY event_id OFFSET 10 ROWS;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events ORDER BY event_id OFFSET 10;

-- RESPECT NULLS inside the call
CREATE VIEW v AS
SELECT kind, first_value(amount RESPECT NULLS) AS f FROM events GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, first_value(amount) RESPECT NULLS AS f FROM events GROUP BY kind;

-- a type before a text
CREATE VIEW v AS
SELECT event_id FROM events WHERE amount > DECIMAL '1.5';
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE amount > CAST('1.5' AS DECIMAL);

-- COLLATE
CREATE VIEW v AS
SELECT country COLLATE UTF8_LCASE AS c, count(*) AS n FROM events GROUP BY 1;
-- instead
CREATE VIEW v AS
SELECT lower(country) AS c, count(*) AS n FROM events GROUP BY 1;

-- IN of a query in two pairs of parentheses
CREATE VIEW v AS
SELECT event_id FROM events WHERE user_id IN ((SELECT user_id FROM orders));
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE user_id IN (SELECT user_id FROM orders);

-- bits without parentheses
CREATE VIEW v AS
SELECT country, n | n & 3 AS b FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, n | (n & 3) AS b FROM hourly;

-- IS NULL next to =
CREATE VIEW v AS
SELECT country, country IS NULL = true AS x FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, (country IS NULL) = true AS x FROM hourly;

-- IS NULL of IN
CREATE VIEW v AS
SELECT country, country IN ('NL') IS NULL AS x FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, (country IN ('NL')) IS NULL AS x FROM hourly;

-- an operator of Postgres for regular expressions
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind !~ '^a';
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE NOT kind RLIKE '^a';

-- FLOOR TO
CREATE VIEW v AS
SELECT FLOOR(ts TO HOUR) AS h FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT date_trunc('hour', ts) AS h FROM events;

-- a template
CREATE VIEW v AS
SELECT kind FROM {{ ref('events') }};
-- instead, as printed
CREATE VIEW v AS
SELECT id FROM orders;

-- a lone AS
CREATE VIEW v AS SELECT country FROM hourly; AS
-- instead
CREATE VIEW v AS SELECT country FROM hourly;

-- a point before a fraction
CREATE VIEW v AS
SELECT event_id FROM events WHERE price > . 0.5;
-- instead
CREATE VIEW v AS
SELECT event_id FROM events WHERE price > 0.5;

-- FILTER at the end of the file
CREATE VIEW v AS
SELECT count(*) FILTER (
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) FILTER (WHERE n > 1) AS n FROM hourly;
