CREATE VIEW paid_in_time (order_id, paid_at COMMENT 'NULL: not within 15 minutes')
COMMENT 'every order, and when it was paid, if it was within 15 minutes' AS
SELECT o.id, p.ts
FROM orders o
LEFT JOIN payments p ON p.order_id = o.id AND p.ts BETWEEN o.ts AND o.ts + INTERVAL 15 MINUTES;
