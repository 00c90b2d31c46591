CREATE VIEW average_basket (
  country,
  invoices,
  average COMMENT 'pounds sterling for an invoice that is no cancellation'
)
COMMENT 'what an invoice comes to, by country' AS
SELECT country, count(*), avg(total)
FROM invoices
WHERE total > 0
GROUP BY country;
