-- two windows of a record
CREATE VIEW v AS
SELECT window(ts, '1 hour').start AS h, window(kafka_timestamp, '1 hour').start AS k FROM events;
-- instead
CREATE VIEW v AS
SELECT h, window(at, '1 hour').start AS k FROM (SELECT window(ts, '1 hour').start AS h, kafka_timestamp AS at FROM events) AS e;

-- a window in ON
CREATE VIEW v AS
SELECT o.id FROM orders o JOIN events e ON o.user_id = e.user_id AND window(o.ts, '1 hour').start = e.ts;
-- instead
CREATE VIEW v AS
SELECT o.id FROM (SELECT id, user_id, window(ts, '1 hour').start AS h FROM orders) o JOIN events e ON o.user_id = e.user_id AND o.h = e.ts;

-- a window with an INTERVAL
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, INTERVAL 1 HOUR);
-- instead, as printed
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour');

-- a window that hops further than it is long
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '5 minutes', '1 hour');
-- instead, as printed
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes');

-- a window of too many panes
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '7 milliseconds');
-- instead
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '10 seconds');

-- two hopping windows of one record
CREATE VIEW v AS
SELECT user_id, window(ts, '1 hour', '5 minutes').start AS v, window(ts, '2 hours', '5 minutes').start AS w FROM events;
-- instead
CREATE VIEW v AS
SELECT user_id, window(ts, '1 hour', '5 minutes').start AS v FROM events;

-- a hopping window inside of a key
CREATE VIEW v AS
SELECT date_trunc('day', window(ts, '1 hour', '5 minutes').start) AS d, count(*) AS n FROM events GROUP BY date_trunc('day', window(ts, '1 hour', '5 minutes').start);
-- instead, as printed
CREATE VIEW v AS
SELECT date_trunc('day', s) AS d, sum(n) AS n FROM (SELECT window.start AS s, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes')) GROUP BY date_trunc('day', s);

-- two windows
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes'), session_window(ts, '5 minutes');
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes');

-- sessions grouped once more
CREATE VIEW v AS
SELECT s, count(*) AS n FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) GROUP BY s;
-- instead
CREATE VIEW v AS
SELECT s.start, s.end, count(*) AS n FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) GROUP BY s.start, s.end;

-- different sessions
CREATE VIEW v AS
SELECT DISTINCT session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes');
-- instead
CREATE VIEW v AS
SELECT DISTINCT session_window(ts, '5 minutes').start AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes');

-- sessions of two queries
CREATE VIEW v AS
SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) UNION SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes'));
-- instead
CREATE VIEW v AS
SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes')) UNION ALL SELECT s FROM (SELECT user_id, session_window(ts, '5 minutes') AS s FROM events GROUP BY user_id, session_window(ts, '5 minutes'));

-- a letter after a number that is too large for it
CREATE VIEW v AS
SELECT kind, 300Y AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT kind, 300S AS n FROM events;

-- a session of months
CREATE VIEW v AS
SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '1 month');
-- instead
CREATE VIEW v AS
SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '30 days');

-- a session with an interval
CREATE VIEW v AS
SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, INTERVAL 30 MINUTES);
-- instead, as printed
CREATE VIEW v AS
SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '30 minutes');

-- a session with a gap of 0
CREATE VIEW v AS
SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '0 minutes');
-- instead, as printed
CREATE VIEW v AS
SELECT user_id, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '30 minutes');

-- a session that is not grouped by
CREATE VIEW v AS
SELECT user_id, session_window(ts, '30 minutes').start AS s FROM events;
-- instead
CREATE VIEW v AS
SELECT user_id, session_window.start AS s FROM events GROUP BY user_id, session_window(ts, '30 minutes');

-- a sum of DISTINCT values in a session
CREATE VIEW v AS
SELECT user_id, sum(DISTINCT amount) AS s FROM events GROUP BY user_id, session_window(ts, '30 minutes');
-- instead
CREATE VIEW v AS
SELECT user_id, sum(amount) AS s FROM events GROUP BY user_id, session_window(ts, '30 minutes');

-- a window of months
CREATE VIEW v AS
SELECT window(ts, '1 month').start AS w, count(*) AS n FROM events GROUP BY window(ts, '1 month');
-- instead, as printed
CREATE VIEW v AS
SELECT date_trunc('month', ts) AS w, count(*) AS n FROM events GROUP BY date_trunc('month', ts);

-- the bounds of a window by a star
CREATE VIEW v AS
SELECT window.*, count(*) AS n FROM events GROUP BY window(ts, '1 hour');
-- instead, as printed
CREATE VIEW v AS
SELECT window.start, window.end, count(*) AS n FROM events GROUP BY window(ts, '1 hour');

-- the lesser of two windows
CREATE VIEW v AS
SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') HAVING min(window) IS NOT NULL;
-- instead, as printed
CREATE VIEW v AS
SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') HAVING min(ts) IS NOT NULL;

-- windows compared
CREATE VIEW v AS
SELECT a.window, a.n FROM (SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour')) a JOIN (SELECT window FROM events GROUP BY window(ts, '2 hours')) b ON a.window < b.window;
-- instead, as printed
CREATE VIEW v AS
SELECT a.window, a.n FROM (SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour')) a JOIN (SELECT window FROM events GROUP BY window(ts, '2 hours')) b ON a.window.start < b.window.start;

-- different sessions of records
CREATE VIEW v AS
SELECT DISTINCT session_window(ts, '1 hour') AS w FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT session_window AS w FROM events GROUP BY session_window(ts, '1 hour');

-- different windows in order
CREATE VIEW v AS
SELECT DISTINCT w FROM (SELECT window AS w, country FROM events GROUP BY window(ts, '1 hour'), country) ORDER BY w;
-- instead
CREATE VIEW v AS
SELECT w FROM (SELECT DISTINCT w FROM (SELECT window AS w, country FROM events GROUP BY window(ts, '1 hour'), country)) ORDER BY w;

-- a union in the order of windows
CREATE VIEW v AS
SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') UNION ALL SELECT window, count(*) AS n FROM events GROUP BY window(ts, '2 hours') ORDER BY window;
-- instead
CREATE VIEW v AS
SELECT * FROM (SELECT window, count(*) AS n FROM events GROUP BY window(ts, '1 hour') UNION ALL SELECT window, count(*) AS n FROM events GROUP BY window(ts, '2 hours')) ORDER BY window;

-- an unknown field of EXTRACT
CREATE VIEW v AS
SELECT EXTRACT(EPOCH FROM ts) AS e FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT unix_timestamp(ts) AS e FROM events;

-- an array of shares with a column
CREATE VIEW v AS
SELECT percentile_approx(amount, array(0.5, user_id)) AS p FROM events;
-- instead
CREATE VIEW v AS
SELECT percentile_approx(amount, array(0.5, 0.9)) AS p FROM events;

-- a hopping window in WHERE
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events WHERE window(ts, '1 hour', '5 minutes').start IN (SELECT max(ts) FROM events) GROUP BY window(ts, '1 hour', '5 minutes');
-- instead, as printed
CREATE VIEW v AS
SELECT window.start AS w, count(*) AS n FROM events WHERE kind IN (SELECT max(kind) FROM events) GROUP BY window(ts, '1 hour', '5 minutes');

-- a window in a lambda
CREATE VIEW v AS
SELECT transform(array(ts), x -> window(x, '1 hour').start) AS t FROM events;
-- instead
CREATE VIEW v AS
SELECT transform(array(ts), x -> date_trunc('hour', x)) AS t FROM events;

-- windows in FROM
CREATE VIEW v AS
SELECT window_start, count(*) AS n FROM TUMBLE(events, ts, INTERVAL '15' MINUTE) GROUP BY window_start;
-- instead, as printed
CREATE VIEW v AS
SELECT window(ts, '15 minutes').start AS window_start, count(*) AS n FROM events GROUP BY window(ts, '15 minutes');

-- windows of a table in FROM
CREATE VIEW v AS
SELECT window_start, count(*) AS n FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '15' MINUTES)) GROUP BY window_start;
-- instead, as printed
CREATE VIEW v AS
SELECT window(ts, '15 minutes').start AS window_start, count(*) AS n FROM events GROUP BY window(ts, '15 minutes');

-- window_start without a window
CREATE VIEW v AS
SELECT window_start, count(*) AS n FROM events GROUP BY window_start;
-- instead, as printed
CREATE VIEW v AS
SELECT window(ts, '15 minutes').start AS window_start, count(*) AS n FROM events GROUP BY window(ts, '15 minutes');

-- a window's start by a function
CREATE VIEW v AS
SELECT TUMBLE_START(ts, INTERVAL '15' MINUTES) AS s, count(*) AS n FROM events GROUP BY TUMBLE(ts, INTERVAL '15' MINUTES);
-- instead, as printed
CREATE VIEW v AS
SELECT window(ts, '15 minutes').start AS s, count(*) AS n FROM events GROUP BY window(ts, '15 minutes').start;

-- a window behind FROM
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events WINDOW TUMBLING (SIZE 15 MINUTES) GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, window(ts, '15 minutes').start AS s, count(*) AS n FROM events GROUP BY kind, window(ts, '15 minutes');

-- EMIT CHANGES
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events GROUP BY kind EMIT CHANGES;
-- instead
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events GROUP BY kind;

-- a window of time in ORDER BY alone
CREATE VIEW v AS
SELECT event_id FROM events ORDER BY window(ts, '1 hour').start LIMIT 3;
-- instead
CREATE VIEW v AS
SELECT event_id FROM (SELECT event_id, window(ts, '1 hour').start AS hour FROM events) ORDER BY hour, event_id LIMIT 3;

-- a hopping window that is left out of a grouping
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY ROLLUP (country, window(ts, '1 hour', '5 minutes'));
-- instead
CREATE VIEW v AS
SELECT country, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '5 minutes'), ROLLUP (country);

-- the last instant of a window where it is made
CREATE VIEW v AS
SELECT window_time(window) AS until, count(*) AS n FROM events GROUP BY window(ts, '1 hour');
-- instead, as printed
CREATE VIEW v AS
SELECT window.end - INTERVAL 1 MICROSECOND AS until, count(*) AS n FROM events GROUP BY window(ts, '1 hour');

-- a subquery in GROUP BY next to a hopping window
CREATE VIEW v AS
SELECT CASE WHEN user_id IN (SELECT user_id FROM orders) THEN 'buys' END AS w, window.start AS s, count(*) AS n FROM events GROUP BY 1, window(ts, '1 hour', '10 minutes');
-- instead
CREATE VIEW v AS
SELECT CASE WHEN user_id IN (SELECT user_id FROM orders) THEN 'buys' END AS w, s, sum(n) AS n FROM (SELECT user_id, window.start AS s, count(*) AS n FROM events GROUP BY user_id, window(ts, '1 hour', '10 minutes')) GROUP BY 1, 2;

-- two tumbling windows
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY window(ts, '5 minutes'), window(ts, '7 minutes');
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events GROUP BY window(ts, '5 minutes');

-- a window of a number
CREATE VIEW v AS
SELECT window(user_id, '1 hour').start AS t, count(*) AS n FROM events GROUP BY window(user_id, '1 hour');
-- instead, as printed
CREATE VIEW v AS
SELECT window(timestamp_millis(user_id), '1 hour').start AS t, count(*) AS n FROM events GROUP BY window(timestamp_millis(user_id), '1 hour');
