CREATE TABLE orders (
  id          BIGINT,
  customer_id BIGINT,
  good_id     INT,
  currency    STRING COMMENT 'an enum in its schema',
  amount      DECIMAL(8, 2),
  ts          TIMESTAMP COMMENT 'when it was placed',
  delivery    STRUCT<way: STRING, stops: ARRAY<STRING>>
) USING kafka OPTIONS (topic 'orders', format 'avro')
COMMENT 'what customers order; made up'
TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');

CREATE TABLE payments (
  order_id BIGINT,
  ts       TIMESTAMP COMMENT 'when it was paid',
  card     STRUCT<brand: STRING, digits: STRING> COMMENT 'a card or an iban, or neither',
  iban     STRING,
  parts    ARRAY<STRUCT<cents: BIGINT, note: STRING>>
) USING kafka OPTIONS (topic 'payments', format 'protobuf')
COMMENT 'what is paid; made up'
TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
