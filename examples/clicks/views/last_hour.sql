CREATE VIEW last_hour (
  until COMMENT 'end of the hour', page_views, visitors COMMENT 'different users'
)
COMMENT 'page views and visitors of the last hour, every five seconds: WHERE until = … reads one' AS
SELECT window.end, count(*), count(DISTINCT user_id)
FROM events
GROUP BY window(ts, '1 hour', '5 seconds');
