CREATE TABLE customers (
  id       INT PRIMARY KEY,
  city     STRING COMMENT 'where they live from then on',
  moved_at TIMESTAMP
) USING kafka OPTIONS (topic 'customers', format 'avro', key_format 'avro')
COMMENT 'who buys; made up'
TBLPROPERTIES ('event_time' = 'moved_at', 'newest_by' = 'event_time', 'partitions' = '2');

CREATE TABLE goods (
  id     INT PRIMARY KEY,
  name   STRING,
  origin STRING COMMENT 'the city where it is made'
) USING kafka OPTIONS (topic 'goods', format 'protobuf', key_format 'int')
COMMENT 'what is sold; made up'
TBLPROPERTIES ('partitions' = '1');

CREATE TABLE rates (
  currency STRING PRIMARY KEY,
  rate     DECIMAL(8, 4) COMMENT 'euros for one of it',
  since    TIMESTAMP
) USING kafka OPTIONS (topic 'rates', format 'avro', key_format 'string')
COMMENT 'rates of exchange; made up'
TBLPROPERTIES ('event_time' = 'since', 'newest_by' = 'event_time', 'partitions' = '1');
