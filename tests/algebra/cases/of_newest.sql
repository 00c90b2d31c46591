CREATE TABLE orders (
  id BIGINT, customer BIGINT, placed BIGINT, note STRING
) USING kafka OPTIONS (topic 'orders', format 'json');

CREATE TABLE customers (
  id BIGINT, name STRING, joined STRING, PRIMARY KEY (id)
) USING kafka OPTIONS (topic 'customers', format 'json');

CREATE VIEW notes AS
SELECT id, note, placed FROM orders WHERE note IS NOT NULL;

CREATE VIEW noted AS
SELECT timestamp_millis(placed) AS at, initcap(note) AS note FROM notes;

CREATE VIEW joined AS
SELECT date_trunc('month', to_date(joined)) AS month, count(*) AS customers
FROM customers GROUP BY date_trunc('month', to_date(joined));

CREATE VIEW greeted AS
SELECT orders.id, to_date(timestamp_millis(orders.placed)) AS day, coalesce(initcap(customers.name), 'You') AS name
FROM orders LEFT JOIN customers ON customers.id = orders.customer;

CREATE VIEW again AS
WITH again AS (SELECT customer, count(*) AS orders FROM orders GROUP BY customer)
SELECT customer FROM again WHERE orders > 1;

CREATE VIEW by_customer AS
SELECT c, count(*) AS orders FROM orders AS o(i, c, p, n) WHERE p > 0 GROUP BY c;
