-- ORDER BY a column of a UNION that has no name
CREATE VIEW v AS
SELECT n FROM (SELECT country, count(*) % 5 FROM events GROUP BY country UNION SELECT 'x', 1 ORDER BY 2 LIMIT 1) AS q(country, n);
-- instead, as printed
CREATE VIEW v AS
SELECT n FROM (SELECT country, count(*) % 5 AS m FROM events GROUP BY country UNION SELECT 'x', 1 ORDER BY 2 LIMIT 1) AS q(country, n);

-- CORRESPONDING
CREATE VIEW v AS
SELECT user_id FROM orders UNION CORRESPONDING SELECT user_id FROM users;
-- instead
CREATE VIEW v AS
SELECT user_id FROM orders UNION SELECT user_id FROM users;

-- sides of a UNION ALL with the same literal
CREATE VIEW v AS
SELECT k, lag(n) OVER (ORDER BY k) AS l FROM (SELECT 'a' AS k, count(*) AS n FROM events UNION ALL SELECT 'a', count(*) FROM orders);
-- instead
CREATE VIEW v AS
SELECT k, lag(n) OVER (ORDER BY k) AS l FROM (SELECT 'a' AS k, count(*) AS n FROM events UNION ALL SELECT 'b', count(*) FROM orders);

-- columns of a set operation
CREATE VIEW v AS
SELECT country, n FROM hourly UNION ALL SELECT country FROM hourly;
-- instead
CREATE VIEW v AS
SELECT country, n FROM hourly UNION ALL SELECT country, n FROM hourly;

-- an aggregate in ORDER BY of a set operation
CREATE VIEW v AS
SELECT country FROM hourly UNION ALL SELECT kind FROM events ORDER BY count(*) LIMIT 2;
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM (SELECT country FROM hourly UNION ALL SELECT kind FROM events) GROUP BY country ORDER BY n LIMIT 2;
