CREATE TABLE requests (
  line_no  BIGINT,
  ip       STRING,
  ts       TIMESTAMP COMMENT 'when the request arrived',
  method   STRING,
  path     STRING,
  status   INT,
  bytes    BIGINT COMMENT 'size of the answer',
  referrer STRING,
  agent    STRING
) USING kafka OPTIONS (topic 'requests', format 'json')
COMMENT 'the access log of a web site, May 2015; out of order within seconds to minutes'
TBLPROPERTIES ('event_time' = 'ts');
