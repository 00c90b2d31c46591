CREATE VIEW stops (way, stop, orders)
COMMENT 'how many orders take each way over each stop' AS
SELECT delivery.way, stop, count(*)
FROM orders LATERAL VIEW explode(delivery.stops) AS stop
GROUP BY delivery.way, stop;
