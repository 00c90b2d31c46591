CREATE VIEW means (means, payments, parts, cents)
COMMENT 'how it is paid, in how many parts' AS
SELECT CASE WHEN card IS NOT NULL THEN card.brand WHEN iban IS NOT NULL THEN 'transfer' ELSE 'cash' END,
       count(*), sum(size(parts)), sum(aggregate(parts, 0L, (sum, part) -> sum + part.cents))
FROM payments
GROUP BY 1;
