CREATE TABLE events (id BIGINT, user_id BIGINT, kind STRING, amount DECIMAL(10, 2), price FLOAT, ts TIMESTAMP)
  USING kafka OPTIONS (topic 'events', format 'json');
CREATE TABLE users (user_id BIGINT PRIMARY KEY, name STRING, since TIMESTAMP)
  USING kafka OPTIONS (topic 'users', format 'json') TBLPROPERTIES ('event_time' = 'since');

-- Views of one block over a source are below the cells whatever they compute.
CREATE VIEW plain AS SELECT id, initcap(kind) AS kind, price * 2 AS price FROM events;
CREATE VIEW by_user AS SELECT user_id, last(kind) AS kind, count(*) AS n FROM events GROUP BY user_id;

-- A view of rows is read as its rows, unless something needs the records.
CREATE VIEW chosen AS SELECT user_id, kind, amount, price FROM events WHERE amount > 1;
CREATE VIEW count_of_view AS SELECT user_id, count(*) AS n FROM chosen GROUP BY user_id;
CREATE VIEW last_of_view AS SELECT user_id, last(kind) AS kind FROM chosen GROUP BY user_id;
CREATE VIEW title_of_view AS SELECT initcap(kind) AS kind, count(*) AS n FROM chosen GROUP BY initcap(kind);
CREATE VIEW doubled AS SELECT user_id, sum(price * price) AS price FROM chosen GROUP BY user_id;
CREATE VIEW texts AS SELECT user_id, max(CAST(price AS STRING)) AS price FROM chosen GROUP BY user_id;
CREATE VIEW about AS SELECT user_id, approx_count_distinct(kind) AS kinds FROM chosen GROUP BY user_id;
CREATE VIEW median_of_view AS SELECT user_id, percentile_approx(amount, 0.5) AS amount FROM chosen GROUP BY user_id;
CREATE VIEW sets AS SELECT kind, sort_array(collect_set(struct(amount, user_id))) AS s FROM chosen GROUP BY kind;

-- A view over groups has rows alone.
CREATE VIEW of_groups AS SELECT n, count(*) AS users, max(kind) AS kind FROM by_user GROUP BY n;

-- A table is read as its rows, unless the order of events is asked for.
CREATE VIEW names AS SELECT name, count(*) AS n FROM users GROUP BY name;
CREATE VIEW last_name AS SELECT last(name) AS name FROM users;
CREATE VIEW last_kind AS SELECT u.name, last(c.kind) AS kind FROM chosen c JOIN users u ON u.user_id = c.user_id GROUP BY u.name;
