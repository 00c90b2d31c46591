CREATE VIEW bestsellers (
  description COMMENT 'the article as it is called now, in old invoices too',
  pieces,
  revenue COMMENT 'pounds sterling'
)
COMMENT 'what was sold of each article: a join of a stream with a table' AS
SELECT a.description, sum(l.quantity) AS pieces, sum(l.quantity * l.unit_price) AS revenue
FROM invoice_lines l
JOIN articles a ON a.stock_code = l.stock_code
GROUP BY a.description;
