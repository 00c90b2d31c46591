-- retain without a time
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT count(*) AS n FROM events;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT date_trunc('day', ts) AS t, count(*) AS n FROM events GROUP BY date_trunc('day', ts);

-- retain over what is exploded of groups
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT d, count(*) AS n FROM hourly LATERAL VIEW explode(array(hour)) t AS d GROUP BY d;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT d, count(*) AS n FROM events LATERAL VIEW explode(array(date_trunc('day', ts))) t AS d GROUP BY d;

-- retain with a subquery
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events WHERE user_id IN (SELECT user_id FROM orders) GROUP BY day;
-- instead
CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT day, user_id, count(*) AS n FROM events GROUP BY day, user_id; CREATE VIEW v AS SELECT day, sum(n) AS n FROM w WHERE user_id IN (SELECT user_id FROM orders) GROUP BY day;

-- retain with a window function
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, sum(count(*)) OVER (ORDER BY day) AS n FROM events GROUP BY day;
-- instead
CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events GROUP BY day; CREATE VIEW v AS SELECT day, sum(n) OVER (ORDER BY day) AS n FROM w;

-- retain with LIMIT
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events GROUP BY day ORDER BY day LIMIT 7;
-- instead
CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT day, count(*) AS n FROM events GROUP BY day; CREATE VIEW v AS SELECT day, n FROM w ORDER BY day LIMIT 7;

-- retain with a hopping window
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT day, window(ts, '1 hour', '5 minutes').start AS w, count(*) AS n FROM events GROUP BY day, window(ts, '1 hour', '5 minutes');
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT window(ts, '5 minutes').start AS w, count(*) AS n FROM events GROUP BY window(ts, '5 minutes');

-- the order of events of a view that retains
CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT user_id, kind, ts FROM events; CREATE VIEW v AS SELECT user_id, last(kind) AS kind FROM w GROUP BY user_id;
-- instead, as printed
CREATE VIEW w TBLPROPERTIES ('retain' = '90 days') AS SELECT user_id, kind, ts FROM events; CREATE VIEW v AS SELECT user_id, max_by(kind, ts) AS kind FROM w GROUP BY user_id;

-- a CTE that hides the source of a view over it
CREATE VIEW x AS SELECT user_id, kind FROM events WHERE amount > 1; CREATE VIEW v AS WITH events AS (SELECT 1 AS one) SELECT user_id, last(kind) AS kind FROM x GROUP BY user_id;
-- instead, as printed
CREATE VIEW x AS SELECT user_id, kind FROM events WHERE amount > 1; CREATE VIEW v AS WITH one AS (SELECT 1 AS one) SELECT user_id, max_by(kind, user_id) AS kind FROM x GROUP BY user_id;

-- retain by the time of a side that may be missing
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT e.day, count(*) AS n FROM orders o LEFT JOIN events e ON e.user_id = o.user_id GROUP BY e.day;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT date_trunc('day', e.ts) AS day, count(*) AS n FROM orders o JOIN events e ON e.user_id = o.user_id GROUP BY date_trunc('day', e.ts);

-- retain by a time that cells do not hold
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT date_add(e.day, 1) AS x FROM events e JOIN orders o ON e.user_id = o.user_id AND date_add(e.day, 1) > o.ts;
-- instead, as printed
CREATE VIEW v TBLPROPERTIES ('retain' = '90 days') AS SELECT date_trunc('day', o.ts) AS day FROM events e JOIN orders o ON e.user_id = o.user_id AND date_add(e.day, 1) > o.ts;
