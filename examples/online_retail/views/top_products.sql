CREATE VIEW top_products (
  day,
  place COMMENT '1 sold for the most that day',
  stock_code,
  pieces,
  revenue COMMENT 'pounds sterling'
)
COMMENT 'the ten articles that sold for the most on each day' AS
WITH sold AS (
  SELECT date_trunc('DAY', invoice_date) AS day, stock_code,
         sum(quantity) AS pieces, sum(quantity * unit_price) AS revenue
  FROM invoice_lines
  WHERE stock_code IS NOT NULL
  GROUP BY date_trunc('DAY', invoice_date), stock_code
), ranked AS (
  SELECT day, rank() OVER (PARTITION BY day ORDER BY revenue DESC) AS place, stock_code, pieces, revenue
  FROM sold
)
SELECT day, place, stock_code, pieces, revenue
FROM ranked
WHERE place <= 10;
