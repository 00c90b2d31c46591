CREATE VIEW visits
COMMENT 'visits from login to logout, or to ten minutes of silence, whichever comes first' AS
SELECT user_id, min(ts) AS began, max(ts) AS ended, count_if(kind = 'click') AS clicks,
       max(CASE WHEN kind = 'logout' THEN 1 ELSE 0 END) AS logged_out
FROM (
  SELECT user_id, kind, ts,
         sum(begins) OVER (PARTITION BY user_id ORDER BY ts, part, place
                           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS visit
  FROM (
    SELECT user_id, kind, ts, part, place,
           CASE WHEN kind = 'login' OR before IS NULL OR before = 'logout'
                  OR unix_timestamp(ts) - unix_timestamp(silent_since) > 600 THEN 1 ELSE 0 END AS begins
    FROM (
      SELECT user_id, kind, ts, part, place,
             lag(kind) OVER (PARTITION BY user_id ORDER BY ts, part, place) AS before,
             lag(ts) OVER (PARTITION BY user_id ORDER BY ts, part, place) AS silent_since
      FROM steps)))
GROUP BY user_id, visit;
