CREATE VIEW in_euro (currency, orders, amount COMMENT 'in euros, at the rate of the time of each order')
COMMENT 'what was ordered, by the currency that it was ordered in' AS
SELECT o.currency, count(*), sum(o.amount * r.rate)
FROM orders o
JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON r.currency = o.currency
GROUP BY o.currency;
