CREATE TABLE lines (country STRING, n INT, price DECIMAL(10, 2), wide DECIMAL(30, 6), weight DOUBLE, day DATE)
USING kafka OPTIONS (topic 'lines', format 'json');

CREATE VIEW every_aggregate AS
SELECT country, count(*) AS c, count(n) AS cn, count(n, day) AS cnd, sum(n) AS s, sum(price) AS sp, sum(wide) AS sw,
       sum(weight) AS sd, min(day) AS first_day, max(country) AS m, avg(n) AS a, avg(price) AS ap, avg(wide) AS aw,
       sum(n) FILTER (WHERE price > 1) AS sf, avg(price) FILTER (WHERE n = 2) AS af
FROM lines GROUP BY country;

CREATE VIEW everything AS SELECT count(*) AS c, sum(price) AS s, avg(n) AS a FROM lines WHERE n > 0;

CREATE VIEW of_conditions_and_bits AS
SELECT country, count_if(price > 1) AS dear, any(n > 1) AS some_n, every(n > 1) AS all_n, bool_or(n = 2) AS two,
       bit_and(n) AS b_and, bit_or(n) AS b_or, bit_xor(n) AS b_xor, count_if(n = 1) FILTER (WHERE price > 1) AS one
FROM lines GROUP BY country;

CREATE VIEW above_conditions_and_bits AS
SELECT count_if(some_n) AS countries, bool_and(two) AS all_two, bit_xor(b_xor) AS b_xor, bit_or(b_or) AS b_or
FROM of_conditions_and_bits;
