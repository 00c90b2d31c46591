CREATE TABLE orders (
  id          INT,
  customer_id INT,
  good_id     INT,
  currency    STRING,
  amount      DECIMAL(8, 2),
  ts          TIMESTAMP COMMENT 'when it was placed'
) USING kafka OPTIONS (topic 'orders', format 'json')
COMMENT 'what customers order; made up'
TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');

CREATE TABLE payments (
  order_id INT,
  ts       TIMESTAMP COMMENT 'when it was paid'
) USING kafka OPTIONS (topic 'payments', format 'json')
COMMENT 'what is paid; made up'
TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '2');
