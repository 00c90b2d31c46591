CREATE TABLE invoice_lines (
  line_no      BIGINT COMMENT 'number of the line, in order of arrival',
  invoice_no   STRING COMMENT 'number of the invoice; one that begins with C cancels',
  stock_code   STRING COMMENT 'the article',
  description  STRING COMMENT 'the article, in words',
  quantity     INT COMMENT 'pieces; negative in a cancellation',
  invoice_date TIMESTAMP COMMENT 'when the invoice was written',
  unit_price   DECIMAL(10, 3) COMMENT 'pounds sterling for a piece',
  customer_id  BIGINT COMMENT 'empty where the customer is not known',
  country      STRING COMMENT 'where the customer lives'
) USING kafka OPTIONS (topic 'invoice_lines', format 'json')
COMMENT 'every invoice line of a UK online shop, 2010-12-01 to 2011-12-09'
TBLPROPERTIES ('event_time' = 'invoice_date', 'partitions' = '4');
