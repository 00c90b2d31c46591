CREATE VIEW pauses (user_id, began, ended, clicks, seconds COMMENT 'from the first to the last event')
COMMENT 'visits that end with ten minutes of silence' AS
SELECT user_id, began, ended, clicks, unix_timestamp(ended) - unix_timestamp(began) - 600
FROM (
  SELECT user_id, session_window.start AS began, session_window.end AS ended, count_if(kind = 'click') AS clicks
  FROM events
  GROUP BY user_id, session_window(ts, '10 minutes'));
