CREATE TABLE orders (order_id STRING, customer STRING, country STRING, amount DECIMAL(10,2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json');

-- records whose customer is one of those of a query: the cells are kept by customer, and asked when they are read
CREATE VIEW of_regulars AS
SELECT country, count(*) AS orders, sum(amount) AS amount
FROM orders
WHERE amount > 0 AND customer IN (SELECT customer FROM orders GROUP BY customer HAVING count(*) >= 10)
GROUP BY country;

-- about each row: the average of its own customer
CREATE VIEW above_average AS
SELECT order_id, amount
FROM orders o
WHERE amount > (SELECT avg(amount) FROM orders i WHERE i.customer = o.customer);

-- SEMI and ANTI joins are such questions, too
CREATE VIEW lost AS
SELECT c.customer, c.amount
FROM (SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer) c
LEFT ANTI JOIN orders late ON late.customer = c.customer AND late.ts >= TIMESTAMP '2026-01-01 00:00:00';

-- of one aggregate alone: the block is read again, with the condition
CREATE VIEW share_of_regulars AS
SELECT country, count(*) AS orders, sum(amount) FILTER (WHERE customer IN (SELECT customer FROM of_all WHERE orders >= 10)) AS amount
FROM orders
GROUP BY country;
CREATE VIEW of_all AS SELECT customer, count(*) AS orders FROM orders GROUP BY customer;
