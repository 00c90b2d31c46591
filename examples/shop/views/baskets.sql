CREATE VIEW baskets (city, began, orders)
COMMENT 'what was ordered from a city, in its order, until a pause of half an hour' AS
SELECT c.city, session_window(o.ts, '30 minutes').start, collect_list(o.id)
FROM orders o
JOIN customers c ON c.id = o.customer_id
GROUP BY c.city, session_window(o.ts, '30 minutes');
