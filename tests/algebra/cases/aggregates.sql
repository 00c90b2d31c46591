CREATE TABLE lines (country STRING, n INT, price DECIMAL(10, 2), wide DECIMAL(30, 6), weight DOUBLE, day DATE)
USING kafka OPTIONS (topic 'lines', format 'json');

CREATE VIEW every_aggregate AS
SELECT country, count(*) AS c, count(n) AS cn, count(n, day) AS cnd, sum(n) AS s, sum(price) AS sp, sum(wide) AS sw,
       sum(weight) AS sd, min(day) AS first_day, max(country) AS m, avg(n) AS a, avg(price) AS ap, avg(wide) AS aw,
       sum(n) FILTER (WHERE price > 1) AS sf, avg(price) FILTER (WHERE n = 2) AS af
FROM lines GROUP BY country;

CREATE VIEW everything AS SELECT count(*) AS c, sum(price) AS s, avg(n) AS a FROM lines WHERE n > 0;
