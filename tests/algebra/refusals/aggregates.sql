-- the greatest struct with a list
CREATE VIEW v AS
SELECT country, max(struct(ts, tags)).tags AS tags FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, max(struct(ts, to_json(tags) AS tags)).tags AS tags FROM events GROUP BY country;

-- the greatest struct over a window
CREATE VIEW v AS
SELECT country, max(struct(n, hour)) OVER (PARTITION BY country) AS m FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, m FROM hourly JOIN (SELECT country, max(struct(n, hour)) AS m FROM hourly GROUP BY country) AS best USING (country);

-- a set of structs above
CREATE VIEW v AS
SELECT collect_set(struct(country, n)) AS s FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT sort_array(collect_list(struct(country, n))) AS s FROM (SELECT DISTINCT country, n FROM hourly);

-- a lambda above
CREATE VIEW v AS
SELECT country, aggregate(collect_set(user_id), 0L, (a, x) -> a + x) AS s FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(e) AS s FROM (SELECT country, collect_set(user_id) AS ids FROM events GROUP BY country) LATERAL VIEW explode(ids) t AS e GROUP BY country;

-- a percentile that is hardly approximate
CREATE VIEW v AS
SELECT country, percentile_approx(amount, 0.9, 1000000) AS p FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, percentile_approx(amount, 0.9, 100) AS p FROM events GROUP BY country;

-- a percentile of text
CREATE VIEW v AS
SELECT country, percentile_approx(kind, 0.9) AS p FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, percentile_approx(CAST(kind AS DOUBLE), 0.9) AS p FROM events GROUP BY country;

-- a percentile of more than all
CREATE VIEW v AS
SELECT country, percentile(amount, 90) AS p FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, percentile(amount, 0.99) AS p FROM events GROUP BY country;

-- a percentile that a record decides
CREATE VIEW v AS
SELECT country, percentile(amount, price) AS p FROM events GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, percentile(amount, 0.5) AS p FROM events GROUP BY country;

-- an estimate above the aggregation
CREATE VIEW v AS
SELECT approx_count_distinct(n) AS m FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT count(DISTINCT n) AS m FROM hourly;

-- different arrays
CREATE VIEW v AS
SELECT count(DISTINCT split(kind, ' ')) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT count(DISTINCT to_json(split(kind, ' '))) AS n FROM events;

-- SELECT DISTINCT of an array
CREATE VIEW v AS
SELECT DISTINCT country, split(kind, ' ') AS words FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT DISTINCT country, to_json(split(kind, ' ')) AS words FROM events;

-- a percentile of FLOAT
CREATE VIEW v AS
SELECT percentile_approx(CAST(price AS FLOAT), 0.9) AS p FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT percentile_approx(CAST(price AS DOUBLE), 0.9) AS p FROM events;

-- percentile_disc in descending order
CREATE VIEW v AS
SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY n DESC) AS p FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT max(n) AS p FROM (SELECT n, cume_dist() OVER (ORDER BY n DESC) AS share FROM hourly WHERE n IS NOT NULL) WHERE share >= 0.9;

-- mode in descending order
CREATE VIEW v AS
SELECT mode() WITHIN GROUP (ORDER BY amount DESC) AS m FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT amount AS m FROM (SELECT amount, row_number() OVER (ORDER BY count(*) DESC, amount DESC) AS r FROM events WHERE amount IS NOT NULL GROUP BY amount) WHERE r = 1;

-- percentile_cont without its order
CREATE VIEW v AS
SELECT percentile_cont(amount, 0.9) AS p FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY amount) AS p FROM events;

-- WITHIN GROUP of an aggregate without order
CREATE VIEW v AS
SELECT sum(amount) WITHIN GROUP (ORDER BY ts) AS s FROM events;
-- instead
CREATE VIEW v AS
SELECT sum(amount) AS s FROM events;

-- listagg up and down
CREATE VIEW v AS
SELECT listagg(kind, ',') WITHIN GROUP (ORDER BY ts, user_id DESC) AS k FROM events;
-- instead
CREATE VIEW v AS
SELECT listagg(kind, ',') WITHIN GROUP (ORDER BY ts, -user_id) AS k FROM events;

-- listagg of distinct values in another order
CREATE VIEW v AS
SELECT listagg(DISTINCT kind) WITHIN GROUP (ORDER BY user_id) AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT listagg(DISTINCT kind) WITHIN GROUP (ORDER BY kind) AS k FROM events;

-- a list of distinct values
CREATE VIEW v AS
SELECT collect_list(DISTINCT kind) AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT collect_set(kind) AS k FROM events;

-- a set of structs of doubles
CREATE VIEW v AS
SELECT collect_set(struct(price, kind)) AS a FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT collect_set(to_json(struct(price, kind))) AS a FROM events;

-- a session of joined rows whose gap each row states
CREATE VIEW v AS
SELECT h.n, session_window(e.ts, e.kind).start AS s, count(*) AS c FROM events e JOIN hourly h ON h.country = e.country GROUP BY h.n, session_window(e.ts, e.kind);
-- instead
CREATE VIEW v AS
SELECT h.n, session_window(e.ts, '5 minutes').start AS s, count(*) AS c FROM events e JOIN hourly h ON h.country = e.country GROUP BY h.n, session_window(e.ts, '5 minutes');

-- the last above the aggregation
CREATE VIEW v AS
SELECT country, last(n) AS n FROM hourly GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, max_by(n, hour) AS n FROM hourly GROUP BY country;

-- the last element of each record
CREATE VIEW v AS
SELECT country, last(letter) AS l FROM events LATERAL VIEW explode(split(kind, '')) t AS letter GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, max(struct(ts, right(kind, 1) AS x)).x AS l FROM events GROUP BY country;

-- max_by of one argument
CREATE VIEW v AS
SELECT max_by(kind) AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT max_by(kind, ts) AS k FROM events;

-- IGNORE NULLS of max()
CREATE VIEW v AS
SELECT max(kind) IGNORE NULLS AS k FROM events;
-- instead
CREATE VIEW v AS
SELECT max(kind) AS k FROM events;

-- an estimate with too small an error
CREATE VIEW v AS
SELECT approx_count_distinct(user_id, 0.001) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT count(DISTINCT user_id) AS n FROM events;

-- a relative error above 0.39
CREATE VIEW v AS
SELECT approx_count_distinct(user_id, 10) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT approx_count_distinct(user_id, 0.05) AS n FROM events;

-- a histogram
CREATE VIEW v AS
SELECT country, histogram_numeric(amount, 10) AS k FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, floor(amount / 10) AS bucket, count(*) AS n FROM events GROUP BY country, floor(amount / 10);

-- count_if of a number
CREATE VIEW v AS
SELECT count_if(price) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT count_if(price > 0) AS n FROM events;

-- count distinct of everything
CREATE VIEW v AS
SELECT country, count(DISTINCT *) AS users FROM events GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, count(DISTINCT user_id) AS users FROM events GROUP BY country;

-- DISTINCT values next to an ungrouped column
CREATE VIEW v AS
SELECT country, kind, count(DISTINCT user_id) AS users FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, max(kind) AS kind, count(DISTINCT user_id) AS users FROM events GROUP BY country;

-- sum of times
CREATE VIEW v AS
SELECT sum(ts) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT sum(CAST(ts AS BIGINT)) AS n FROM events;

-- a list of different values in an order
CREATE VIEW v AS
SELECT country, array_agg(DISTINCT kind ORDER BY kind) AS kinds FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, sort_array(collect_set(kind)) AS kinds FROM events GROUP BY country;

-- a list in an order that turns
CREATE VIEW v AS
SELECT country, array_agg(kind ORDER BY price, ts DESC) AS kinds FROM events GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, array_agg(kind ORDER BY price DESC, ts DESC) AS kinds FROM events GROUP BY country;

-- TRY_CAST of a double above
CREATE VIEW v AS
SELECT try_cast(sum(price) AS INT) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(sum(price) AS INT) AS n FROM events;

-- a list of structs with maps
CREATE VIEW v AS
SELECT user_id, collect_list(struct(map('kind', kind))) AS found FROM events GROUP BY user_id;
-- instead, as printed
CREATE VIEW v AS
SELECT user_id, collect_list(to_json(struct(map('kind', kind)))) AS found FROM events GROUP BY user_id;

-- a map by numbers
CREATE VIEW v AS
SELECT country, map_from_entries(collect_list(struct(user_id, price))) AS m FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, map_from_entries(collect_list(struct(CAST(user_id AS STRING) AS name, price))) AS m FROM events GROUP BY country;

-- lists in an order
CREATE VIEW v AS
SELECT user_id, array_agg(tags ORDER BY price) AS found FROM events GROUP BY user_id;
-- instead
CREATE VIEW v AS
SELECT user_id, array_agg(tags) AS found FROM events GROUP BY user_id;

-- a share of the total by another system's function
CREATE VIEW v AS
SELECT country, ratio_to_report(sum(n)) OVER () AS share FROM hourly GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, sum(n) / sum(sum(n)) OVER () AS share FROM hourly GROUP BY country;

-- rows told apart by a column without a name
CREATE VIEW v AS
SELECT n, lag(n) OVER (ORDER BY n) AS l FROM (SELECT rpad(country, 2), count(*) AS n FROM events GROUP BY rpad(country, 2));
-- instead
CREATE VIEW v AS
SELECT n, lag(n) OVER (ORDER BY n) AS l FROM (SELECT rpad(country, 2) AS c, count(*) AS n FROM events GROUP BY rpad(country, 2));

-- case folded above
CREATE VIEW v AS
SELECT initcap(country) AS c, n FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT initcap(country) AS c, count(*) AS n FROM events GROUP BY initcap(country);

-- a map made of rows
CREATE VIEW v AS
SELECT country, map_agg(kind, amount) AS m FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, collect_list(struct(kind, amount)) AS m FROM events GROUP BY country;

-- a median over an order
CREATE VIEW v AS
SELECT country, n, median(n) OVER (PARTITION BY country ORDER BY hour) AS m FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, n, percentile(n, 0.5) OVER (PARTITION BY country ORDER BY hour) AS m FROM hourly;

-- a text cast to FLOAT above the aggregation
CREATE VIEW v AS
SELECT CAST(country AS FLOAT) AS c FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(country AS DOUBLE) AS c FROM hourly;

-- a number as a date
CREATE VIEW v AS
SELECT CAST(user_id AS DATE) AS d, count(*) AS n FROM events GROUP BY CAST(user_id AS DATE);
-- instead, as printed
CREATE VIEW v AS
SELECT date_add(DATE '1970-01-01', CAST(user_id AS INT)) AS d, count(*) AS n FROM events GROUP BY date_add(DATE '1970-01-01', CAST(user_id AS INT));

-- FILTER after a scalar function
CREATE VIEW v AS
SELECT abs(user_id) FILTER (WHERE kind = 'a') AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CASE WHEN kind = 'a' THEN abs(user_id) END AS n FROM events;

-- a FILTER on a function of another system
CREATE VIEW v AS
SELECT jsonb_agg(kind) FILTER (WHERE kind <> 'a') AS kinds FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT collect_list(kind) FILTER (WHERE kind <> 'a') AS kinds FROM events;

-- first() of sorted records
CREATE VIEW v AS
SELECT kind, first(price) AS p FROM (SELECT kind, price FROM events ORDER BY price) GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, min_by(price, ts) AS p FROM events GROUP BY kind;

-- collect_list() of sorted records
CREATE VIEW v AS
SELECT kind, collect_list(user_id) AS p FROM (SELECT kind, user_id FROM events ORDER BY user_id) GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, max_by(user_id, ts) AS p FROM events GROUP BY kind;

-- an error too small for Python's floats
CREATE VIEW v AS
SELECT kind, approx_count_distinct(user_id, 1e-200) AS n FROM events GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, count(DISTINCT user_id) AS n FROM events GROUP BY kind;
