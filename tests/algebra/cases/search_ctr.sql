CREATE TABLE search_events (
  event_id STRING, user_id BIGINT, kind STRING COMMENT 'show or click', country STRING, city STRING, ts TIMESTAMP
) USING kafka OPTIONS (topic 'search_events', format 'json')
COMMENT 'what people searched and clicked' TBLPROPERTIES ('event_time' = 'ts', 'partitions' = '4');

CREATE VIEW search_ctr (hour COMMENT 'start of the hour', country, city, impressions, clicks, ctr)
COMMENT 'click-through rate by place and hour' AS
SELECT window(ts, '1 hour').start, country, city,
       count(*) FILTER (WHERE kind = 'show'), count(*) FILTER (WHERE kind = 'click'),
       count(*) FILTER (WHERE kind = 'click') / count(*) FILTER (WHERE kind = 'show')
FROM search_events
GROUP BY window(ts, '1 hour'), country, city;
