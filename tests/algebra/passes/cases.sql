CREATE TABLE clicks (user_id BIGINT, country STRING, amount DECIMAL(10, 2), tags ARRAY<STRING>, ts TIMESTAMP)
USING kafka OPTIONS (topic 'clicks', format 'json') TBLPROPERTIES ('event_time' = 'ts');
CREATE TABLE users (id BIGINT, country STRING, since TIMESTAMP, PRIMARY KEY (id))
USING kafka OPTIONS (topic 'users', format 'json') TBLPROPERTIES ('event_time' = 'since');

-- An aggregate: every name found, every type known, one cell per group.
CREATE VIEW aggregate AS
SELECT country, count(*) AS clicks, avg(amount) AS mean, last(user_id) AS last_user
FROM clicks WHERE amount > 1 GROUP BY country HAVING count(*) > 1;

-- DISTINCT in an aggregate: the values are keys of cells.
CREATE VIEW distinct_values AS SELECT country, count(*) AS clicks, count(DISTINCT user_id) AS users FROM clicks GROUP BY country;

-- A tie of LIMIT is broken by what tells rows apart.
CREATE VIEW top AS SELECT country, sum(amount) AS total FROM clicks GROUP BY country ORDER BY total DESC LIMIT 3;

-- A function OVER rows of records, which goes by the order of events.
CREATE VIEW second_click AS
SELECT user_id, ts FROM (SELECT user_id, ts, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS n FROM clicks)
WHERE n = 2;

-- Hopping windows are put together of panes.
CREATE VIEW hopping AS
SELECT window.start AS s, count(*) AS clicks FROM clicks GROUP BY window(ts, '1 hour', '15 minutes');

-- So are sessions.
CREATE VIEW visits AS
SELECT user_id, session_window.start AS began, count(*) AS clicks FROM clicks
GROUP BY user_id, session_window(ts, '30 minutes');

-- A projection is folded into the block that reads it; explode() makes rows of a record.
CREATE VIEW by_tag AS
SELECT tag, sum(double_amount) AS total
FROM (SELECT tags, amount * 2 AS double_amount FROM clicks WHERE country IS NOT NULL) LATERAL VIEW explode(tags) t AS tag
GROUP BY tag;

-- Groupings are blocks over the same cells.
CREATE VIEW rolled_up AS SELECT country, user_id, sum(amount) AS total FROM clicks GROUP BY ROLLUP(country, user_id);

-- A join is asked of the cells of both sides.
CREATE VIEW joined AS
SELECT u.country, count(*) AS clicks FROM clicks AS c JOIN users AS u ON c.user_id = u.id GROUP BY u.country;

-- A join as of a time reads the versions of the table.
CREATE VIEW joined_as_of AS
SELECT u.country, sum(c.amount) AS total
FROM clicks AS c JOIN users FOR SYSTEM_TIME AS OF c.ts AS u ON c.user_id = u.id GROUP BY u.country;

-- What a record alone does not decide is asked of the cells.
CREATE VIEW of_known_users AS
SELECT country, count(*) AS clicks FROM clicks WHERE user_id IN (SELECT id FROM users) GROUP BY country;

-- A view of a view reads its rows.
CREATE VIEW shares AS SELECT country, total / sum(total) OVER () AS share FROM top;
