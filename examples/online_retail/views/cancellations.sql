CREATE VIEW cancellations (
  country,
  lines,
  cancelled COMMENT 'lines of cancelling invoices',
  share COMMENT 'of the lines, between 0 and 1'
)
COMMENT 'how much is cancelled, by country' AS
SELECT country, count(*),
       count(*) FILTER (WHERE invoice_no LIKE 'C%'),
       count(*) FILTER (WHERE invoice_no LIKE 'C%') / count(*)
FROM invoice_lines
GROUP BY country;
