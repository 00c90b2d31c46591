CREATE VIEW customers (
  country,
  customers COMMENT 'different customers, without the unknown ones',
  revenue COMMENT 'pounds sterling'
)
COMMENT 'how many different customers bought, by country' AS
SELECT country, count(*), sum(revenue)
FROM (
  SELECT country, customer_id, sum(quantity * unit_price) AS revenue
  FROM invoice_lines
  WHERE customer_id IS NOT NULL
  GROUP BY country, customer_id
) AS by_customer
GROUP BY country;
