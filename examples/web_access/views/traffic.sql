CREATE VIEW traffic (
  minute,
  requests,
  errors COMMENT 'answers with status 400 and above',
  error_rate COMMENT 'between 0 and 1',
  bytes
)
COMMENT 'requests by minute' AS
SELECT window(ts, '1 minute').start, count(*),
       count(*) FILTER (WHERE status >= 400),
       count(*) FILTER (WHERE status >= 400) / count(*),
       sum(bytes)
FROM requests
GROUP BY window(ts, '1 minute');
