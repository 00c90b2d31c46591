CREATE TABLE events (user_id BIGINT, kind STRING, amount DECIMAL(10, 2), ts TIMESTAMP)
USING kafka OPTIONS (topic 'events', format 'json');

CREATE VIEW last_hour AS
SELECT window.start AS s, window.end AS e, count(*) AS page_views, count(DISTINCT user_id) AS visitors
FROM events GROUP BY window(ts, '1 hour', '5 seconds');

CREATE VIEW visits AS
SELECT user_id, session_window.start AS began, session_window.end AS ended, count_if(kind = 'click') AS clicks,
       sum(amount) AS amount
FROM events GROUP BY user_id, session_window(ts, '30 minutes');

CREATE VIEW by_kind AS
SELECT session_window.start AS began, count(*) AS n
FROM events GROUP BY session_window(ts, CASE WHEN kind = 'click' THEN '5 minutes' ELSE '1 hour' END);

CREATE VIEW hours AS
SELECT w.start AS s, kind, n, w
FROM (SELECT window AS w, kind, count(*) AS n FROM events GROUP BY window(ts, '1 hour'), kind) ORDER BY w, kind;
