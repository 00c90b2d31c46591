CREATE VIEW twice_within_a_minute (order_id, next_id)
COMMENT 'orders of one customer less than a minute apart: perhaps one that was sent twice' AS
SELECT a.id, b.id
FROM orders a
JOIN orders b ON b.customer_id = a.customer_id AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 1 MINUTE;
