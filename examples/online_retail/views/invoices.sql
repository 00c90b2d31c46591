CREATE VIEW invoices (
  invoice_no,
  country,
  written_at,
  lines,
  total COMMENT 'pounds sterling; negative for a cancellation'
)
COMMENT 'one row per invoice' AS
SELECT invoice_no, country, min(invoice_date), count(*), sum(quantity * unit_price)
FROM invoice_lines
GROUP BY invoice_no, country;
