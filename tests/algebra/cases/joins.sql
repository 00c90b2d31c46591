CREATE TABLE orders (id BIGINT, customer BIGINT, ts TIMESTAMP)
USING kafka OPTIONS (topic 'orders', format 'json') TBLPROPERTIES ('event_time' = 'ts');

CREATE TABLE payments (order_id BIGINT, amount DECIMAL(10, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'payments', format 'json') TBLPROPERTIES ('event_time' = 'ts');

CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING, ts TIMESTAMP)
USING kafka OPTIONS (topic 'customers', format 'json') TBLPROPERTIES ('event_time' = 'ts');

CREATE TABLE notes (note STRING, ts TIMESTAMP) USING kafka OPTIONS (topic 'notes', format 'json');

CREATE VIEW by_city AS
SELECT c.city, count(*) AS orders FROM orders o LEFT JOIN customers c ON c.id = o.customer GROUP BY c.city;

CREATE VIEW paid_by_day TBLPROPERTIES ('retain' = '30 days') AS
SELECT date_trunc('DAY', o.ts) AS day, count(*) AS orders, sum(p.amount) AS amount
FROM orders o LEFT JOIN payments p
ON p.order_id = o.id AND p.ts BETWEEN o.ts - INTERVAL 15 MINUTES AND o.ts + INTERVAL 15 MINUTES
GROUP BY 1;

CREATE VIEW again_within_a_day TBLPROPERTIES ('retain' = '30 days') AS
SELECT o.id, o.ts, before.id AS earlier
FROM orders o JOIN orders before ON before.customer = o.customer AND o.ts < before.ts + INTERVAL 1 DAY AND before.id < o.id;

CREATE VIEW named_city AS
SELECT c.city, count(*) AS notes FROM notes n JOIN customers c ON contains(n.note, c.city) GROUP BY c.city;
