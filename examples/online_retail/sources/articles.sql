CREATE TABLE articles (
  stock_code   STRING PRIMARY KEY COMMENT 'the article',
  description  STRING COMMENT 'in words, as the newest invoice line has it',
  invoice_date TIMESTAMP COMMENT 'when that line was written'
) USING kafka OPTIONS (topic 'invoice_lines', format 'json')
COMMENT 'every article that was ever sold: the same topic, read as a table'
TBLPROPERTIES ('event_time' = 'invoice_date', 'newest_by' = 'event_time');
