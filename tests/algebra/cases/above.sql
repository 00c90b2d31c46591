CREATE TABLE sales (country STRING, product STRING, quantity INT, price DECIMAL(10, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'sales', format 'json');
CREATE TABLE returns (country STRING, product STRING) USING kafka OPTIONS (topic 'returns', format 'json');

CREATE VIEW per_day AS
SELECT date_trunc('DAY', ts) AS day, country, sum(quantity * price) AS revenue, count(*) AS lines
FROM sales WHERE quantity > 0 GROUP BY 1, 2 HAVING count(*) > 1;

CREATE VIEW top_products AS
WITH sold AS (SELECT country, product, sum(quantity) AS n FROM sales GROUP BY country, product)
SELECT country, product, n, n / sum(n) OVER (PARTITION BY country) AS share, r
FROM (SELECT *, row_number() OVER (PARTITION BY country ORDER BY n DESC, product) AS r FROM sold)
WHERE r <= 3;

CREATE VIEW return_rate AS
SELECT s.country, s.n AS sold, coalesce(r.n, 0) AS returned, 100.0 * coalesce(r.n, 0) / s.n AS percent,
       CASE WHEN r.n > 10 THEN 'many' WHEN r.n IS NULL THEN 'none' ELSE 'some' END AS judgement
FROM (SELECT country, count(*) AS n FROM sales GROUP BY country) s
LEFT JOIN (SELECT country, count(*) AS n FROM returns GROUP BY country) r ON s.country <=> r.country;

CREATE VIEW days AS
SELECT CAST(day AS DATE) AS day, sum(revenue) AS revenue, avg(lines) AS lines, max(country) AS last_country
FROM per_day WHERE day >= '2024-01-01' AND country IS NOT NULL GROUP BY CAST(day AS DATE) ORDER BY day DESC LIMIT 30;

CREATE VIEW places AS SELECT DISTINCT country FROM sales UNION SELECT country FROM returns;

CREATE VIEW best AS SELECT * FROM (SELECT country, count(*) AS n FROM sales GROUP BY country ORDER BY n DESC) LIMIT 1;

CREATE VIEW latest AS SELECT day, revenue AS r FROM days LIMIT 1;
