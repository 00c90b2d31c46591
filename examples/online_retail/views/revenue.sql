CREATE VIEW revenue (
  hour COMMENT 'start of the hour',
  country,
  lines COMMENT 'invoice lines, cancellations included',
  pieces,
  revenue COMMENT 'pounds sterling, cancellations subtracted'
)
COMMENT 'what was sold, by hour and country' AS
SELECT window(invoice_date, '1 hour').start, country, count(*), sum(quantity), sum(quantity * unit_price)
FROM invoice_lines
GROUP BY window(invoice_date, '1 hour'), country;
