CREATE TABLE orders (order_id STRING, country STRING, amount DECIMAL(10,2))
USING kafka OPTIONS (topic 'orders', format 'json');

CREATE VIEW by_country AS SELECT country, count(*) AS orders FROM orders GROUP BY country;

-- above the aggregation, constants are rows as any
CREATE VIEW named AS
SELECT name, orders
FROM (VALUES ('NL', 'Netherlands', 1), ('FR', NULL, 2.5)) AS names(code, name, factor)
LEFT JOIN by_country ON country = code;

-- records are exploded to the rows that they meet
CREATE VIEW by_band AS
WITH bands AS (SELECT 'low' AS band, 0 AS least, 10 AS below UNION ALL SELECT 'high', 10, NULL)
SELECT band, count(*) AS orders, sum(amount) AS amount
FROM orders LEFT JOIN bands ON amount >= least AND (amount < below OR below IS NULL)
GROUP BY band;

-- a record by itself decides whether it is one of them
CREATE VIEW of_benelux AS
SELECT count(*) AS orders, count(*) FILTER (WHERE country IN (SELECT 'BE' UNION ALL SELECT 'NL')) AS benelux FROM orders;
