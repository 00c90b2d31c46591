CREATE VIEW local_buyers_now (hour, buyers)
COMMENT 'by hour, how many customers bought what is made where they live now' AS
SELECT window(o.ts, '1 hour').start, count(DISTINCT o.customer_id)
FROM orders o
JOIN customers c ON c.id = o.customer_id
JOIN goods g ON g.id = o.good_id
WHERE g.origin = c.city
GROUP BY window(o.ts, '1 hour');

CREATE VIEW local_buyers_then (hour, buyers)
COMMENT 'by hour, how many customers bought what is made where they lived when they ordered' AS
SELECT window(o.ts, '1 hour').start, count(DISTINCT o.customer_id)
FROM orders o
JOIN customers FOR SYSTEM_TIME AS OF o.ts AS c ON c.id = o.customer_id
JOIN goods g ON g.id = o.good_id
WHERE g.origin = c.city
GROUP BY window(o.ts, '1 hour');
