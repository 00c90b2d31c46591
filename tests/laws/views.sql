CREATE VIEW search_ctr (hour COMMENT 'start of the hour', country, city, impressions, clicks, ctr, revenue, a)
COMMENT 'click-through rate' AS
SELECT window(ts, '1 hour').start, country, city,
       count(*) FILTER (WHERE kind = 'show'), count(*) FILTER (WHERE kind = 'click'),
       count(*) FILTER (WHERE kind = 'click') / count(*) FILTER (WHERE kind = 'show'), sum(amount), avg(amount)
FROM events
GROUP BY window(ts, '1 hour'), country, city;
CREATE VIEW r AS SELECT event_id, user_id * 2 AS u2, upper(kind) k, payload.user.id uid, payload.tags tags, kafka_offset o FROM events WHERE country = 'NL';
CREATE VIEW top AS SELECT country, sum(impressions) AS n FROM search_ctr GROUP BY country ORDER BY n DESC, country LIMIT 3;
CREATE VIEW g AS SELECT sum(user_id) s, avg(user_id) a, min(user_id) mi, max(price) mx, min(price) mip, count(price) c, sum(price) sp, min(kind) mk, max(country) mc, count(kind, country) kk FROM events;
CREATE VIEW g2 AS SELECT kind, sum(user_id) s, avg(user_id) a, min(user_id) mi, max(price) mx, min(price) mip, count(price) c, min(kind) mk, max(country) mc, count(kind, country) kk, sum(user_id) FILTER (WHERE city = 'a') fs, avg(amount) FILTER (WHERE city='b') fa FROM events GROUP BY 1 HAVING count(*) > 3;
CREATE VIEW pk AS SELECT price, count(*) n FROM events GROUP BY price;
CREATE VIEW wide AS SELECT city, sum(amount * amount * CAST(1 AS DECIMAL(18,6))) s, avg(amount * amount * CAST(1 AS DECIMAL(18,6))) a FROM events GROUP BY city;
CREATE VIEW w2 AS SELECT window.start s, window.end e, count(*) n FROM events GROUP BY window(ts, '7 hours', '7 hours', '90 minutes');
CREATE VIEW d AS SELECT DISTINCT country, city FROM events WHERE kind = 'show';
CREATE VIEW u AS SELECT 'a' AS what, count(*) AS n FROM events UNION ALL SELECT country, count(*) FROM events GROUP BY country;
CREATE VIEW n2 AS WITH h AS (SELECT country, kind, count(*) n, sum(amount) a FROM events GROUP BY country, kind) SELECT country, max(n) m, sum(n) s, sum(a) sa, avg(a) aa, avg(n) an, count(*) c FROM h GROUP BY country;
CREATE VIEW rk AS SELECT *, row_number() OVER (PARTITION BY country ORDER BY n DESC, kind) rn, rank() OVER (ORDER BY n) rk, sum(n) OVER (PARTITION BY country) t, lag(n) OVER (PARTITION BY country ORDER BY kind) l FROM (SELECT country, kind, count(*) n FROM events GROUP BY country, kind);
CREATE VIEW arith AS SELECT country, count(*) * 100 / count(kind) p, 100.0 * count(kind) / count(*) q, sum(user_id) + 1 s1, sum(user_id) * 3 s3, -sum(user_id) ng, sum(user_id) % 7 md, sum(user_id) div 3 dv, sum(amount) / 3 d3, sum(amount) * 1.5 d15, round(avg(price), 2) rp, CAST(sum(amount) AS BIGINT) ab, CAST(avg(price) AS INT) ai, CAST(sum(user_id) AS STRING) st, coalesce(sum(amount), 0) cs, CASE WHEN count(*) > 10 THEN 'many' ELSE country END c, concat(country, '-', count(*)) cc, min(ts) + INTERVAL 1 DAY td, date_trunc('DAY', max(ts)) dt, year(min(ts)) y, hour(max(ts)) h, CAST(max(ts) AS DATE) dd, CAST(max(ts) AS STRING) sts
FROM events
GROUP BY country;
CREATE VIEW latest AS SELECT country, event_id, price
FROM (SELECT country, event_id, price, row_number() OVER (PARTITION BY country ORDER BY ts DESC, kafka_partition, kafka_offset) r FROM events)
WHERE r = 1;
CREATE VIEW cumulative AS SELECT kind, sum(count(*)) OVER (ORDER BY kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n
FROM events GROUP BY kind;
CREATE VIEW both_sides AS SELECT a.country, a.n, b.n AS m, a.n / b.n AS q
FROM (SELECT country, count(*) n FROM events WHERE kind = 'show' GROUP BY country) a
FULL JOIN (SELECT country, count(*) n FROM events WHERE kind = 'click' GROUP BY country) b ON a.country <=> b.country;
CREATE VIEW compared AS SELECT country, n FROM u2 WHERE n > (SELECT avg(n) AS a FROM u2);
CREATE VIEW u2 AS SELECT country, count(*) AS n, sum(price) FILTER (WHERE price < 10) AS p FROM events GROUP BY country;
CREATE VIEW sets AS SELECT country FROM events EXCEPT SELECT country FROM events WHERE kind = 'show';
CREATE VIEW fields AS SELECT payload.user.id AS id, payload.tags[0] AS tag, count(*) AS n FROM events GROUP BY payload.user.id, payload.tags[0];
CREATE VIEW keys AS SELECT coalesce(country, 'none') AS c, length(city) AS l, date_trunc('month', ts) AS m, user_id % 2 AS odd, count(*) AS n
FROM events GROUP BY ALL;
CREATE VIEW uv AS SELECT window.start AS hour, country, count(*) AS pv, count(DISTINCT user_id) AS uv,
  count(DISTINCT user_id) FILTER (WHERE kind = 'click') AS clickers, count(DISTINCT kind, city) AS pairs,
  sum(DISTINCT amount) AS sa, avg(DISTINCT user_id) AS au, max(DISTINCT price) AS mp, avg(amount) AS aa,
  count(DISTINCT user_id) / count(*) AS share, bit_xor(DISTINCT user_id) AS bx, sum(DISTINCT price) AS sp
FROM events GROUP BY window(ts, '1 hour'), country HAVING count(DISTINCT kind) > 0;
CREATE VIEW values_only AS SELECT kind, count(DISTINCT price) AS prices, sum(DISTINCT user_id) FILTER (WHERE price > 1) AS su
FROM events WHERE city <> 'b' GROUP BY kind;
CREATE VIEW all_values AS SELECT count(DISTINCT user_id) AS u, count(DISTINCT payload.user.id) AS i, count(DISTINCT ts) AS t, min(price) AS m,
  count(DISTINCT length(city) + 1) AS l, count(DISTINCT 1) AS one FROM events;
CREATE VIEW none_values AS SELECT count(DISTINCT user_id) AS u, sum(DISTINCT amount) AS a FROM events WHERE city = 'nowhere';
CREATE VIEW of_views AS SELECT count(DISTINCT country) AS c, sum(DISTINCT uv) AS s, avg(DISTINCT uv) AS a FROM uv;
CREATE VIEW distinct_from AS SELECT country IS DISTINCT FROM 'NL' AS abroad, kind IS NOT DISTINCT FROM NULL AS no_kind, count(*) AS n
FROM events WHERE user_id IS DISTINCT FROM 1 GROUP BY country IS DISTINCT FROM 'NL', kind IS NOT DISTINCT FROM NULL HAVING max(city) IS DISTINCT FROM 'x';

CREATE VIEW rollup_places AS
SELECT country, city, grouping(country) AS g, grouping(city) AS h, grouping_id(country, city) AS i, grouping_id() AS j,
       count(*) AS n, sum(amount) AS total, avg(price) AS mean, min(kind) AS first_kind, max(city) AS last_city
FROM events GROUP BY ROLLUP(country, city);

CREATE VIEW cube_distinct AS
SELECT kind, coalesce(country, 'all') AS place, count(DISTINCT user_id) AS users, count(*) AS n, sum(DISTINCT amount) AS s
FROM events WHERE user_id IS NOT NULL GROUP BY kind, CUBE(country, city) HAVING count(*) > 2;

CREATE VIEW sets_of_hours AS
SELECT date_trunc('hour', ts) AS hour, (kind) AS kind, upper(city) AS town, count(city) AS n,
       rank() OVER (ORDER BY count(city) DESC) AS place
FROM events GROUP BY GROUPING SETS ((date_trunc('hour', ts), kind), (upper(city)), ROLLUP(kind, upper(city)), ());

CREATE VIEW hopping_sets AS
SELECT window.start AS s, kind, grouping(kind) AS g, count(*) AS n, sum(amount) AS total, count(DISTINCT country) AS c
FROM events GROUP BY window(ts, '1 hour', '20 minutes'), GROUPING SETS ((kind), ());

CREATE VIEW session_sets AS
SELECT session_window.start AS s, session_window.end AS e, kind, city, count(*) AS n, sum(amount) AS total
FROM events GROUP BY session_window(ts, '30 minutes'), ROLLUP(kind, city);

CREATE VIEW with_rollup AS
SELECT country, city, sum(n) AS n, max(total) AS most FROM rollup_places WHERE g + h = 0 GROUP BY country, city WITH ROLLUP;

CREATE VIEW with_cube AS SELECT kind, city, count(*) AS n FROM events GROUP BY kind, city WITH CUBE;

CREATE VIEW one_set AS SELECT kind, max(price) AS m FROM events GROUP BY kind GROUPING SETS ((kind));

CREATE VIEW words AS SELECT word, count(*) AS n, count(DISTINCT user_id) AS users FROM events
LATERAL VIEW explode(split(concat_ws(' ', country, kind, city), ' ')) w AS word GROUP BY word;

CREATE VIEW words_of_a_subquery AS SELECT upper(word) AS word, count(*) AS n, max(amount) AS most
FROM (SELECT explode(split(concat_ws(' ', kind, city), ' ')) AS word, amount FROM events WHERE user_id > 0)
WHERE word <> 'x' GROUP BY upper(word) ORDER BY n DESC, word LIMIT 3;

CREATE VIEW tags AS SELECT country, t.tag, pos, count(*) AS n, sum(amount) AS s FROM events
LATERAL VIEW OUTER posexplode(payload.tags) t AS pos, tag WHERE country IS NOT NULL GROUP BY country, tag, pos;

CREATE VIEW letters AS SELECT letter, count(*) AS n FROM (SELECT split(word, '') AS letters FROM events
LATERAL VIEW explode(split(concat_ws(' ', kind, kind), ' ')) w AS word) LATERAL VIEW explode(letters) l AS letter
GROUP BY ROLLUP(letter);

CREATE VIEW tag_rows AS SELECT event_id, tag FROM events LATERAL VIEW explode(payload.tags) t AS tag;

CREATE VIEW lists_of_exploded AS SELECT country, collect_list(city) AS cities, collect_list(struct(kind, user_id % 2 AS odd)) AS kinds,
  collect_list(city) FILTER (WHERE kind = 'show') AS shown, listagg(city, '-') AS joined, collect_set(city) AS every, count(*) AS n
FROM events LATERAL VIEW OUTER explode(payload.tags) t AS tag LATERAL VIEW explode(array(1, 2)) u AS x GROUP BY country;
CREATE VIEW outer_rows AS SELECT e.event_id, p, t.tag, w.word FROM events e LATERAL VIEW OUTER posexplode(payload.tags) t AS p, tag
LATERAL VIEW explode(split(kind, 'l')) w AS word WHERE user_id = 1;

CREATE VIEW last_tags AS SELECT country, tag, ts FROM (SELECT country, tag, ts, row_number() OVER (PARTITION BY country
ORDER BY ts DESC, kafka_partition, kafka_offset, p DESC) AS r FROM events LATERAL VIEW posexplode(payload.tags) t AS p, tag) WHERE r < 3;

CREATE VIEW latest_values AS SELECT country, last(kind) AS k, last_value(price) AS p, first(amount) AS a, first_value(city) AS c,
  last(kind, true) AS known, first_value(amount) IGNORE NULLS AS fa, last(user_id) FILTER (WHERE price > 1) AS u,
  last_value(ts) FILTER (WHERE kind = 'show') IGNORE NULLS AS t, count(*) AS n, last(upper(city)) AS up, first(price > 1) AS b
FROM events GROUP BY country;

CREATE VIEW by_extremes AS SELECT kind, max_by(city, price) AS mp, min_by(event_id, amount) AS ma, max_by(country, city) AS cc,
  max_by(user_id, ts) FILTER (WHERE user_id > 0) AS u, min_by(price, user_id) AS p, max_by(length(event_id), price > 1) AS l,
  max_by(DATE '2024-01-01', user_id) AS d
FROM events e GROUP BY kind;

CREATE VIEW last_of_all AS SELECT last(event_id) AS e, max_by(kind, amount) AS k, first(payload.user.id) AS i FROM events WHERE country <> 'NL';

CREATE VIEW last_of_windows AS SELECT window.start AS s, kind, last(event_id) AS e, first(price) AS p, count(DISTINCT city) AS c
FROM events GROUP BY window(ts, '2 hours', '1 hour'), kind;

CREATE VIEW last_of_sessions AS SELECT session_window.start AS s, user_id, last(kind) AS k, first(event_id) AS e
FROM events GROUP BY session_window(ts, '1 hour'), user_id;

CREATE VIEW last_of_places AS SELECT country, city, last(event_id) AS e, min_by(kind, price) AS k FROM events GROUP BY CUBE(country, city);

CREATE VIEW middles AS SELECT country, median(amount) AS m, percentile(price, 0.9) AS p, percentile(user_id, 0) AS least,
  percentile_cont(0.25) WITHIN GROUP (ORDER BY amount) AS q, percentile_cont(0.1) WITHIN GROUP (ORDER BY amount DESC) AS d,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY user_id) AS disc, count(*) AS n, count(DISTINCT city) AS c,
  median(length(event_id)) FILTER (WHERE kind = 'show') AS f, percentile(amount, 1.0) AS most, median(amount) * 2 AS twice
FROM events GROUP BY country;

CREATE VIEW modes AS SELECT city, mode(kind) AS k, mode() WITHIN GROUP (ORDER BY country) AS c, mode(price) AS p, mode(ts) AS t,
  mode(user_id) FILTER (WHERE user_id < 3) AS u, mode(price > 1) AS b, sum(amount) AS s FROM events GROUP BY city;

CREATE VIEW lists AS SELECT kind, collect_set(country) AS countries, collect_set(user_id) FILTER (WHERE city = 'a') AS users,
  collect_list(city) AS cities, array_agg(user_id) FILTER (WHERE user_id < 3) AS ids, listagg(city, '-') AS joined,
  string_agg(country) AS texts, listagg(city, ', ') WITHIN GROUP (ORDER BY city) AS sorted,
  listagg(DISTINCT country, '|') WITHIN GROUP (ORDER BY country) AS each, listagg(event_id, ',') FILTER (WHERE country = 'ü') AS some,
  collect_set(CAST(ts AS DATE)) AS days, collect_list(price > 1) AS dear, last(city) AS l
FROM events WHERE price IS NOT NULL GROUP BY kind;

CREATE VIEW lists_of_all AS SELECT collect_set(city) AS c, collect_list(kind) AS k, median(amount) AS m, mode(city) AS mc, listagg(kind) AS l
FROM events WHERE country = 'FR';

CREATE VIEW medians_of_windows AS SELECT window.start AS s, median(amount) AS m, collect_set(kind) AS k, count(*) AS n
FROM events GROUP BY window(ts, '3 hours', '1 hour');

CREATE VIEW medians_of_places AS SELECT country, kind, percentile(amount, 0.75) AS p, collect_list(event_id) AS e, count(*) AS n
FROM events GROUP BY ROLLUP(country, kind);

CREATE VIEW spreads AS SELECT country, var_pop(amount) AS vp, var_samp(amount) AS vs, stddev(amount) AS sd, stddev_pop(amount) AS sp,
  variance(length(event_id)) AS vl, std(user_id) FILTER (WHERE user_id < 4) AS su, stddev(price) AS pp, avg(amount) AS a,
  stddev(amount) / avg(amount) AS relative, var_pop(DISTINCT amount) AS vd
FROM events GROUP BY country;

CREATE VIEW relations AS SELECT kind, covar_pop(amount, length(event_id)) AS cp, covar_samp(amount, length(event_id)) AS cs,
  corr(amount, length(event_id)) AS c, regr_slope(amount, length(event_id)) AS s, regr_intercept(amount, length(event_id)) AS i,
  regr_r2(amount, length(event_id)) AS r, corr(amount, amount) AS one, corr(amount, 1) AS none, regr_r2(1, amount) AS flat,
  regr_slope(amount, length(event_id)) FILTER (WHERE city = 'a') AS f
FROM events GROUP BY kind;

CREATE VIEW spread_of_all AS SELECT stddev(amount) AS s, var_pop(user_id) AS v, corr(amount, price) AS c FROM events WHERE city = 'nowhere';

CREATE VIEW spread_of_windows AS SELECT window.start AS s, stddev(amount) AS sd, corr(amount, length(event_id)) AS c, count(DISTINCT kind) AS k
FROM events GROUP BY window(ts, '2 hours', '1 hour');

CREATE VIEW spread_of_places AS SELECT country, city, stddev(amount) AS sd, var_samp(amount) AS v FROM events GROUP BY CUBE(country, city);

CREATE VIEW spread_of_spreads AS SELECT count(sd) AS n, stddev(vs) AS s, var_pop(sp) AS v, corr(vp, sd) AS c FROM spreads;

CREATE VIEW about AS SELECT country, approx_count_distinct(event_id) AS e, approx_count_distinct(user_id, 0.01) AS u,
  approx_count_distinct(price) FILTER (WHERE city = 'a') AS p, approx_count_distinct(ts, 0.09) AS t, count(DISTINCT event_id) AS exact
FROM events GROUP BY country;

CREATE VIEW about_all AS SELECT approx_count_distinct(event_id) AS e, approx_count_distinct(kind) AS k FROM events;

CREATE VIEW about_windows AS SELECT window.start AS s, approx_count_distinct(event_id) AS e, max(price) AS m
FROM events GROUP BY window(ts, '2 hours', '1 hour');

CREATE VIEW stars AS SELECT count(*) AS n, sum(user_id) AS s FROM (SELECT DISTINCT * EXCEPT (payload, event_id) FROM events);
CREATE VIEW star_rows AS SELECT * EXCEPT (payload) FROM events AS e WHERE user_id = 2;
CREATE VIEW stars_and_more AS SELECT event_id, r FROM (SELECT e.*, row_number() OVER (PARTITION BY kind ORDER BY kafka_partition, kafka_offset)
AS r FROM events e) WHERE r < 3;
CREATE VIEW steps AS SELECT step, n.name, count(*) AS c FROM events LATERAL VIEW explode(sequence(1, 3)) s AS step
LATERAL VIEW explode(array(kind, upper(city), 'x')) n AS name WHERE user_id = step GROUP BY step, n.name;

CREATE VIEW qualified_top AS SELECT country, city, count(*) AS n FROM events GROUP BY country, city
QUALIFY row_number() OVER (PARTITION BY country ORDER BY count(*) DESC, city) <= 2 ORDER BY n DESC, country, city LIMIT 5;
CREATE VIEW qualified_alias AS SELECT kind, sum(w.n) AS s, rank() OVER (ORDER BY sum(w.n) DESC) AS r
FROM rollup_places p JOIN with_cube w ON w.city = p.city WHERE p.n > 0 GROUP BY kind QUALIFY r < 3 AND s > 0;
CREATE VIEW qualified_rows AS SELECT * EXCEPT (payload) FROM events
QUALIFY row_number() OVER (PARTITION BY country ORDER BY ts DESC, kafka_partition, kafka_offset) = 1;
CREATE VIEW sliding AS SELECT country, h, n, sum(n) OVER w AS lately, max(amount) OVER (w) AS most,
  count(*) OVER (PARTITION BY country ORDER BY h DESC RANGE BETWEEN INTERVAL 10 DAYS PRECEDING AND INTERVAL '69' DAY FOLLOWING) AS near
FROM (SELECT country, date_trunc('hour', ts) AS h, count(*) AS n, sum(amount) AS amount FROM events GROUP BY 1, 2)
WINDOW w AS (PARTITION BY country ORDER BY h RANGE BETWEEN INTERVAL 100 DAYS PRECEDING AND CURRENT ROW);
CREATE VIEW sliding_days AS SELECT to_date(ts) AS d, avg(count(*)) OVER (ORDER BY to_date(ts) RANGE BETWEEN INTERVAL 69 DAYS PRECEDING AND INTERVAL 0 DAYS FOLLOWING) AS season
FROM events GROUP BY to_date(ts);
CREATE VIEW near_numbers AS SELECT d, u, n, sum(n) OVER (PARTITION BY d ORDER BY u RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS u2,
  count(*) OVER (ORDER BY n DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n1, sum(n) OVER (ORDER BY d RANGE BETWEEN 90 PRECEDING AND CURRENT ROW) AS season,
  min(amount) OVER (ORDER BY amount RANGE BETWEEN 5 PRECEDING AND UNBOUNDED FOLLOWING) AS a5, count(*) OVER (ORDER BY p RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS p1
FROM (SELECT to_date(ts) AS d, user_id div 4 AS u, count(*) AS n, sum(amount) AS amount, max(price) AS p FROM events GROUP BY 1, 2);
CREATE VIEW sketched AS SELECT kind, percentile_approx(price, 0.5) AS p, approx_percentile(amount, 0.9, 20) AS a, percentile_approx(user_id, 0.1) AS u,
  percentile_approx(length(city) * 1000, 0.5) FILTER (WHERE country <> '') AS l, percentile_approx(-amount, 1) AS least, median(price) AS m
FROM events GROUP BY kind;
CREATE VIEW sketched_all AS SELECT percentile_approx(amount, 0.5) AS a, percentile_approx(price, 0.9) FILTER (WHERE kind = 'nobody') AS n FROM events;
CREATE VIEW any_values AS SELECT kind, any_value(city) AS a, any_value(country, true) AS c, regr_count(amount, user_id) AS n,
  regr_avgx(amount, length(city)) AS x, regr_avgy(amount, price) FILTER (WHERE price < 10) AS y
FROM events GROUP BY kind;
CREATE VIEW by_country_and_kind AS SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind;
CREATE VIEW top_countries AS SELECT country, count(*) AS n FROM events GROUP BY country ORDER BY n DESC LIMIT 3;
CREATE VIEW some_countries AS SELECT country, count(*) AS n FROM events GROUP BY country LIMIT 3;
CREATE VIEW top_visits AS SELECT count(DISTINCT user_id) AS u FROM events GROUP BY date_trunc('hour', ts), city ORDER BY u DESC LIMIT 3;
CREATE VIEW latest_by_kind AS SELECT kind, ts, row_number() OVER (PARTITION BY kind ORDER BY ts DESC) AS r FROM events;
CREATE VIEW latest_rows AS SELECT * FROM (SELECT user_id, amount, row_number() OVER (PARTITION BY user_id ORDER BY ts DESC) AS r FROM events) WHERE r = 1;
CREATE VIEW ranked_base AS SELECT country, n, row_number() OVER (PARTITION BY country ORDER BY n) AS r FROM by_country_and_kind;
CREATE VIEW lagged AS SELECT q.country, lag(m) OVER (ORDER BY m) AS r FROM (SELECT country, sum(n) AS m FROM by_country_and_kind GROUP BY 1) q;
CREATE VIEW lagged_alone AS SELECT lag(m) OVER (ORDER BY m) AS r FROM (SELECT country, sum(n) AS m FROM by_country_and_kind GROUP BY 1);
CREATE VIEW last_ten AS SELECT user_id, kind FROM events ORDER BY ts DESC LIMIT 10;
CREATE VIEW ranked_windows AS SELECT window.start AS s, kind, row_number() OVER (PARTITION BY window.start ORDER BY count(*) DESC) AS r FROM events GROUP BY window(ts, '1 hour'), kind;
CREATE VIEW long_sessions AS SELECT session_window.start AS s, kind, count(*) AS n FROM events GROUP BY session_window(ts, '1 hour'), kind ORDER BY n DESC LIMIT 5;
CREATE VIEW joined_tied AS SELECT a.country, b.n FROM by_country_and_kind a JOIN by_country_and_kind b ON a.country = b.country ORDER BY b.n LIMIT 4;
CREATE VIEW some_of_both AS SELECT country, n FROM by_country_and_kind UNION ALL SELECT country, n FROM by_country_and_kind ORDER BY n LIMIT 3;
CREATE VIEW two_countries AS SELECT DISTINCT country FROM by_country_and_kind LIMIT 2;
CREATE VIEW top_groupings AS SELECT country, kind, count(*) AS n FROM events GROUP BY ROLLUP(country, kind) ORDER BY n DESC LIMIT 5;
CREATE VIEW qualified_tied AS SELECT country, count(*) AS n FROM events GROUP BY country QUALIFY row_number() OVER (ORDER BY count(*) DESC) <= 3;
CREATE VIEW over_all AS SELECT country, n, stddev(n) OVER () AS s, corr(n, n) OVER (PARTITION BY country) AS c FROM by_country_and_kind;
CREATE VIEW full_joined AS SELECT country, n, m FROM (SELECT country, count(*) AS n FROM events GROUP BY 1) a FULL JOIN (SELECT country, sum(amount) AS m FROM events WHERE kind = 'click' GROUP BY 1) b USING (country);
CREATE VIEW joined_using AS SELECT * FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY 1, 2) a JOIN (SELECT kind, country, sum(amount) AS m FROM events GROUP BY 1, 2) b USING (country, kind);
CREATE VIEW using_once AS SELECT country, kind, n FROM by_country_and_kind JOIN (SELECT country FROM by_country_and_kind WHERE n > 20) c USING (country) WHERE country IS NOT NULL;
CREATE VIEW cast_functions AS SELECT int(amount) AS i, string(user_id) AS s, date(ts) AS d, double(amount) AS e, zeroifnull(amount) AS z, nullifzero(user_id) AS nz, try_divide(amount, user_id) AS t, mod(user_id, 3) AS m, decode(kind, 'show', 1, NULL, 2, 3) AS dc, decode(kind, 'show', 'S') AS dd FROM events;
CREATE VIEW apart AS SELECT timestampdiff(MINUTE, min(ts), max(ts)) AS a, datediff(SECOND, min(ts), max(ts)) AS b, datediff(max(ts), min(ts)) AS c, date_diff(max(to_date(ts)), min(ts)) AS d, timestampdiff(DAY, max(ts), min(ts)) AS e, dateadd(HOUR, 3, max(ts)) AS f, timestampadd(MONTH, 1, max(ts)) AS g, timestampdiff(MICROSECOND, min(ts), max(ts)) AS h, int(sum(user_id)) AS i, string(count(*)) AS s FROM events GROUP BY kind;
CREATE VIEW apart_records AS SELECT timestampdiff(MINUTE, ts, kafka_timestamp) AS a, datediff(ts, kafka_timestamp) AS b, date_add(DAY, 2, ts) AS c, kind ILIKE 'S%' AS d, kind NOT ILIKE '%W' AS e, r'a\d' AS r, width_bucket(user_id, 0, 10, 5) AS w FROM events;
CREATE VIEW of_lists AS SELECT element_at(split(city, ''), 1) AS e, array_join(sort_array(split(kind, ''), false), '-') AS s, slice(split(kind, ''), 2, 2)[0] AS l, size(array_distinct(split(kind, ''))) AS d, reverse(split(kind, ''))[0] AS r, array_position(split(kind, ''), 'c') AS p, array_join(array_sort(split(kind, '')), '') AS s2 FROM events;
CREATE VIEW aggregates_over AS SELECT country, stddev(n) OVER (PARTITION BY country) AS s, bool_or(n > 3) OVER () AS b, count_if(n > 3) OVER (ORDER BY n) AS c, regr_slope(n, n) OVER () AS r, var_pop(n) OVER (ORDER BY n, country, kind ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM by_country_and_kind;
CREATE VIEW last_below AS SELECT kind, last(amount) AS l, collect_list(city) AS c FROM (SELECT kind, amount, city FROM events WHERE amount > 0) GROUP BY kind;
CREATE VIEW latest_in_cte AS WITH src AS (SELECT user_id, kind, ts, amount * 2 AS a2 FROM events WHERE user_id IS NOT NULL) SELECT user_id, kind, a2 FROM (SELECT *, row_number() OVER (PARTITION BY user_id ORDER BY ts DESC) AS rn FROM src) WHERE rn = 1;
CREATE VIEW last_in_ctes AS WITH a AS (SELECT user_id, kind, ts FROM events), b AS (SELECT * FROM a WHERE kind = 'show') SELECT user_id, first(kind) AS f, last(ts) AS t, count(*) AS n FROM b GROUP BY user_id;
CREATE VIEW last_in_alias AS SELECT q.kind, max_by(q.city, q.amount) AS m, listagg(q.city, ',') AS l FROM (SELECT e.kind, e.city, e.amount FROM events e) q GROUP BY q.kind;
CREATE VIEW last_five AS SELECT kind, ts FROM (SELECT kind, ts FROM events) ORDER BY ts DESC LIMIT 5;
CREATE VIEW joined_last AS WITH s AS (SELECT user_id, kind FROM events) SELECT a.user_id, n, k FROM (SELECT user_id, count(*) AS n FROM s GROUP BY user_id) a JOIN (SELECT user_id, last(kind) AS k FROM s GROUP BY user_id) b USING (user_id);
CREATE VIEW lagged_in_cte AS WITH s AS (SELECT user_id, kind FROM events) SELECT *, lag(kind) OVER (PARTITION BY user_id ORDER BY kind) AS p FROM s;
CREATE VIEW medians_above AS SELECT country, median(n) AS m, percentile(n, 0.9) AS p, percentile_cont(0.1) WITHIN GROUP (ORDER BY n DESC) AS pc, percentile_disc(0.5) WITHIN GROUP (ORDER BY n) AS pd, median(n) FILTER (WHERE kind = 'show') AS ms FROM by_country_and_kind GROUP BY country;
CREATE VIEW extremes_above AS SELECT max_by(kind, n) AS m, min_by(kind, n) AS l, max_by(country, kind) AS c, min_by(country, kind) FILTER (WHERE n > 2) AS d, any_value(kind) AS a, max_by(n, country) AS x FROM by_country_and_kind;
CREATE VIEW values_above AS SELECT country, mode(kind) AS m, mode(n) FILTER (WHERE n > 1) AS mn, collect_set(kind) AS s, collect_set(n) AS sn, listagg(kind, ',') WITHIN GROUP (ORDER BY kind) AS l, string_agg(kind, '-') WITHIN GROUP (ORDER BY kind) AS l2 FROM by_country_and_kind GROUP BY country;
CREATE VIEW medians_of_doubles AS SELECT median(s) AS m, mode(s) AS o, percentile(a, 0.25) AS q FROM (SELECT country, sum(price) AS s, avg(amount) AS a FROM events GROUP BY country, kind);
CREATE VIEW median_of_medians AS SELECT kind, percentile(m, 0.5) AS p FROM (SELECT kind, median(amount) AS m FROM events GROUP BY kind, country) GROUP BY kind;
CREATE VIEW unnamed AS SELECT country, COUNT(*), sum(amount), min(ts), count(DISTINCT kind), count(DISTINCT kind, city), Avg(PRICE) FROM events e GROUP BY country;
CREATE VIEW unnamed_below AS SELECT country, sum(amount) FROM (SELECT country, sum(amount) AS amount FROM events GROUP BY country, kind) GROUP BY country;
CREATE VIEW groups_replaced AS SELECT regexp_replace(city, '([aB])', '<$1>') AS k, regexp_replace(kind, '(s)(h)', '$2$1$0') AS l FROM events;
CREATE VIEW regressed_above AS SELECT country, regr_intercept(n, m) AS i, regr_r2(n, m) AS r, regr_sxx(n, m) AS sxx, regr_sxy(n, m) AS sxy, regr_syy(m, n) AS syy, regr_count(m, n) AS c, regr_avgx(m, n) AS ax, regr_avgy(m, n) AS ay, regr_slope(m, n) FILTER (WHERE n > 1) AS s, regr_avgy(m, n) FILTER (WHERE n > 3) AS fy, regr_count(n, m) FILTER (WHERE n > 1000) AS fc FROM (SELECT country, kind, count(*) AS n, sum(amount) AS m FROM events WHERE amount < 100 GROUP BY country, kind, city) GROUP BY country;
CREATE VIEW powers_above AS SELECT pow(corr(n, m), 2) AS r2, pow(avg(n), 0.5) AS q, power(2, max(n)) AS p FROM (SELECT country, kind, count(*) AS n, avg(amount) AS m FROM events GROUP BY country, kind, city);
CREATE VIEW star_exploded AS WITH a AS (SELECT kind, city, user_id FROM events) SELECT * FROM a LATERAL VIEW explode(split(city, '')) t AS part;
CREATE VIEW star_using AS WITH a AS (SELECT kind, city FROM events) SELECT * FROM (SELECT kind, last(city) AS l FROM a GROUP BY kind) x JOIN (SELECT kind, count(*) AS n FROM a GROUP BY kind) y USING (kind);
CREATE VIEW star_union AS WITH a AS (SELECT kind, city FROM events) SELECT * FROM (SELECT kind, last(city) AS l FROM a GROUP BY kind) UNION ALL SELECT * FROM a;
CREATE VIEW joined_tied_more AS SELECT a.country, b.n FROM by_country_and_kind a JOIN by_country_and_kind b ON a.country = b.country ORDER BY b.n LIMIT 4;
CREATE VIEW tie_hidden AS SELECT user_id % 10 AS user_id, count(*) AS n FROM events GROUP BY user_id ORDER BY n LIMIT 3;
CREATE VIEW tie_hidden_too AS SELECT n % 2 AS kind, n AS m FROM by_country_and_kind ORDER BY n % 3 LIMIT 2;
CREATE VIEW full_joined_tied AS SELECT kind, n, m FROM (SELECT kind, count(*) n FROM events GROUP BY kind) FULL JOIN (SELECT kind, sum(amount) m FROM events WHERE amount > 1 GROUP BY kind) USING (kind) ORDER BY n LIMIT 3;
CREATE VIEW kafka_columns AS SELECT * FROM (SELECT kafka_partition, count(*) AS n FROM events GROUP BY kafka_partition);
CREATE VIEW in_parentheses AS SELECT s.country, s.a, y.b, z.z FROM ((SELECT country, sum(n) AS a FROM by_country_and_kind GROUP BY 1) s JOIN (SELECT country, max(n) AS b FROM by_country_and_kind WHERE n > 10 GROUP BY 1) y ON s.country = y.country) LEFT JOIN (SELECT country, min(n) AS z FROM by_country_and_kind GROUP BY 1) z ON z.country = s.country AND z.z < 10;
CREATE VIEW records_in_parentheses AS SELECT e.country, name, count(*) AS n FROM (events e JOIN VALUES ('NL', 'N'), ('FR', 'F') AS names(code, name) ON e.country = code) GROUP BY 1, 2;
CREATE VIEW narrower AS SELECT kind, city, shiftleft(CAST(count(*) AS SMALLINT), 12) AS a, shiftleft(CAST(count(*) AS TINYINT), 20) AS b, rint(CAST(count(*) AS DECIMAL(10, 0)) / 2) AS c, isnan(count(*)) AS d, nanvl(count(*), 2) AS e, nanvl(sum(amount), 1) AS f FROM events GROUP BY kind, city;
CREATE VIEW window_by_two_names AS SELECT country, kind, sum(n) OVER v AS s, any_value(n) OVER u AS a, rank() OVER (u) AS r FROM by_country_and_kind WINDOW v AS (w), w AS (PARTITION BY country), x AS (PARTITION BY country ORDER BY kind), u AS x;
CREATE VIEW cast_literals AS SELECT kind, sum(amount) * CAST(2 AS INT) AS a, sum(amount) / CAST('3' AS INT) AS b, avg(amount) / INT(7) AS c, sum(amount) / 3 AS d, max(amount * CAST(2 AS INT)) AS e FROM events GROUP BY kind;
CREATE VIEW using_twice AS SELECT * FROM (SELECT country, kind, sum(n) AS a FROM by_country_and_kind GROUP BY 1, 2) JOIN (SELECT country, max(n) AS b FROM by_country_and_kind GROUP BY 1) USING (country) JOIN (SELECT kind, min(n) AS c FROM by_country_and_kind GROUP BY 1) USING (kind);
CREATE VIEW using_then_on AS SELECT x.country, a, b, w.country AS other, z FROM (SELECT country, sum(n) AS a FROM by_country_and_kind GROUP BY 1) x JOIN (SELECT country, max(n) AS b FROM by_country_and_kind GROUP BY 1) y USING (country) JOIN (SELECT country, min(n) AS z FROM by_country_and_kind GROUP BY 1) w ON x.country = w.country;
CREATE VIEW crossed_stars AS SELECT n FROM (SELECT * FROM (SELECT kind, count(*) n FROM events GROUP BY 1) CROSS JOIN (SELECT kind, sum(amount) m FROM events GROUP BY 1));
CREATE VIEW subquery_twice AS SELECT kind = (SELECT kind FROM (SELECT kind, ts FROM events) ORDER BY ts LIMIT 1) AS k, count(*) AS n FROM by_country_and_kind GROUP BY kind = (SELECT kind FROM (SELECT kind, ts FROM events) ORDER BY ts LIMIT 1);
CREATE VIEW filter_of_subquery AS SELECT country, collect_set(kind) FILTER (WHERE n > (SELECT any_value(n) FROM by_country_and_kind)) AS c FROM by_country_and_kind GROUP BY country;
CREATE VIEW quoted_alias AS SELECT kind, last(amount) AS l FROM (SELECT kind, amount FROM events AS `my e`) GROUP BY kind;
CREATE VIEW null_ifs AS SELECT nullif(kind, 'a') AS a, nullifzero(user_id) AS b, count(*) OVER (PARTITION BY kind) AS c FROM events;
CREATE VIEW powers AS SELECT pow(NULL, 0) AS a, pow(max(price), 0) AS y, pow(2, 1000 + count(*)) AS z FROM events;
CREATE VIEW at_signs AS SELECT max(concat(country, '@', kind)) AS m, count_if(contains(concat(kind, '@{1}'), '@{1}')) FILTER (WHERE kind <> '@') AS c, sum(n) FILTER (WHERE concat('@', country) <> '@NL') AS s FROM by_country_and_kind;
CREATE VIEW nested_ctes AS SELECT x.kind, x.n, y.n AS m FROM (WITH w AS (SELECT kind, count(*) AS n FROM events GROUP BY kind) SELECT * FROM w) AS x
  JOIN (WITH w AS (SELECT kind, count(*) AS n FROM events WHERE amount > 1 GROUP BY kind) SELECT * FROM w) AS y ON x.kind = y.kind;
CREATE VIEW late_in AS SELECT country, count(*) AS n, count(DISTINCT kind) AS k, sum(amount) AS s, last(city) AS l FROM events WHERE amount > 1 AND user_id IN (SELECT user_id FROM events GROUP BY user_id HAVING count(*) > 20) GROUP BY country;
CREATE VIEW late_average AS SELECT count(*) AS n, max(price) AS m, sum(user_id) AS s FROM events WHERE amount > (SELECT avg(amount) FROM events WHERE kind = 'show');
CREATE VIEW late_none AS SELECT count(*) AS n, max(price) AS m FROM events WHERE amount > (SELECT max(amount) FROM events);
CREATE VIEW late_rows AS SELECT event_id, price FROM events WHERE amount = (SELECT max(amount) FROM events WHERE country = 'NL');
CREATE VIEW late_not_in AS SELECT window(ts, '12 hours', '3 hours').start AS w, count(*) AS n, count(DISTINCT city) AS c FROM events WHERE country NOT IN (SELECT country FROM events WHERE kind = 'show' AND amount > 200 AND country IS NOT NULL) GROUP BY window(ts, '12 hours', '3 hours');
CREATE VIEW late_not_in_null AS SELECT kind, count(*) AS n FROM events WHERE country NOT IN (SELECT country FROM events) OR user_id > 5 GROUP BY kind;
CREATE VIEW late_distinct AS SELECT DISTINCT kind, city FROM events WHERE country IN (SELECT max(country) FROM events);
CREATE VIEW late_rolled_up AS SELECT country, kind, count(*) AS n FROM events WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click') GROUP BY ROLLUP (country, kind);
CREATE VIEW late_ranked AS SELECT event_id, row_number() OVER (PARTITION BY country ORDER BY amount) AS r FROM events WHERE EXISTS (SELECT 1 FROM events WHERE amount > 10) AND city IN (SELECT min(city) FROM events GROUP BY kind);
CREATE VIEW late_exploded AS SELECT tag, count(*) AS n FROM events LATERAL VIEW explode(payload.tags) t AS tag WHERE tag IN (SELECT max(kind) FROM events GROUP BY country) OR tag = (SELECT min(tag) FROM events LATERAL VIEW explode(payload.tags) t AS tag) GROUP BY tag;
CREATE VIEW late_median AS SELECT country, median(price) AS m, collect_list(kind) AS k FROM events WHERE city IN (SELECT city FROM events WHERE amount > 20) GROUP BY country;
CREATE VIEW above_each AS SELECT o.country, o.kind, o.n FROM by_country_and_kind o WHERE o.n > (SELECT avg(i.n) FROM by_country_and_kind i WHERE i.country = o.country);
CREATE VIEW above_count AS SELECT o.country, o.n, (SELECT count(*) FROM by_country_and_kind i WHERE i.kind = o.country) AS none, (SELECT count(*) FROM by_country_and_kind i WHERE i.kind = o.kind) AS some, (SELECT max(amount) FROM events i WHERE i.country = o.country) AS m FROM by_country_and_kind o;
CREATE VIEW of_each AS SELECT country, count(*) AS n, sum(amount) AS s FROM events o WHERE amount > (SELECT avg(amount) FROM events i WHERE i.country = o.country) GROUP BY country;
CREATE VIEW rows_of_each AS SELECT event_id, amount, (SELECT avg(amount) FROM events i WHERE i.country <=> o.country) AS a, (SELECT count(*) FROM events i WHERE i.user_id = o.user_id AND i.kind = 'show') AS c FROM events o WHERE kind = 'show';
CREATE VIEW exists_each AS SELECT kind, count(*) AS n FROM events o WHERE EXISTS (SELECT 1 FROM events i WHERE i.country = o.country AND i.amount > o.amount + 200) AND city IS NOT NULL GROUP BY kind;
CREATE VIEW not_exists AS SELECT * FROM by_country_and_kind o WHERE NOT EXISTS (SELECT * FROM events i WHERE i.country = o.country AND i.amount > 240);
CREATE VIEW in_each AS SELECT * FROM by_country_and_kind o WHERE n IN (SELECT i.n FROM by_country_and_kind i WHERE i.kind = o.kind AND i.country <> o.country);
CREATE VIEW semi AS SELECT o.* FROM by_country_and_kind o LEFT SEMI JOIN (SELECT country, max(amount) AS m FROM events GROUP BY country) i ON o.country = i.country AND o.n > 3;
CREATE VIEW anti AS SELECT o.country, sum(o.n) AS n FROM by_country_and_kind o LEFT ANTI JOIN events ON o.country = events.country AND events.amount > 200 GROUP BY o.country;
CREATE VIEW semi_records AS SELECT kind, count(*) AS n FROM events o LEFT SEMI JOIN by_country_and_kind i ON o.country = i.country AND i.n > 9 WHERE amount > 3 GROUP BY kind;
CREATE VIEW of_a_subquery AS SELECT t.c, t.n FROM (SELECT country AS c, count(*) AS n FROM events GROUP BY country) t WHERE EXISTS (SELECT 1 FROM (SELECT country, kind, amount FROM events WHERE kind = 'show') s WHERE s.country = t.c AND s.amount > 100);
CREATE VIEW coalesced AS SELECT o.country, coalesce((SELECT sum(amount) FROM events i WHERE i.city = o.country), 0) AS s FROM by_country_and_kind o;
CREATE VIEW bits AS SELECT user_id & 3 AS a, user_id | 4 AS b, user_id ^ 5 AS c, ~user_id AS d, shiftleft(user_id, 62) AS sl, shiftright(user_id, 1) AS sr, bit_count(-user_id) AS bc, (user_id | 8) & 12 AS m, shiftleft(hour(ts), 31) AS si, hour(ts) & 1 AS h FROM events;
CREATE VIEW bits_above AS SELECT n & 3 AS a, n | 4 AS b, n ^ 5 AS c, ~n AS d, shiftleft(n, 62) AS sl, shiftleft(n, -1) AS sm, shiftright(-n, 1) AS sr, bit_count(-n) AS bc, (n | 8) & 12 AS m, n & 5 = 1 AS e, h & 3 AS h3, ~h AS nh, shiftleft(h, 33) AS h33, sum(n) OVER () & 7 AS s FROM (SELECT kind, count(*) AS n, hour(max(ts)) AS h FROM events GROUP BY kind, country);
CREATE VIEW trimmed AS SELECT trim(BOTH 'aN' FROM country) AS b, trim(LEADING 'N' FROM country) AS l, trim(TRAILING 'L' FROM country) AS t, btrim(country, 'NL') AS c, trim('L', country) AS d, rtrim('sw', kind) AS e FROM events;
CREATE VIEW trimmed_above AS SELECT trim(BOTH 'aN' FROM country) AS b, trim(LEADING 'N' FROM country) AS l, trim(TRAILING 'L' FROM country) AS t, btrim(country, kind) AS c FROM by_country_and_kind;
CREATE VIEW folded_above AS SELECT lower(country) AS l, upper(kind) AS u, upper(concat(country, 'ß', kind, 'ŉǰΐﬁ', 'İı')) AS w, lower('ΑΣ ΑΣΒ Σ İI') AS s, sum(n) AS n FROM by_country_and_kind GROUP BY lower(country), upper(kind), country, kind;
CREATE VIEW likes AS SELECT kind, country FROM events WHERE (kind LIKE ANY ('s%', '%k') AND country NOT LIKE ALL ('N%', '%L')) OR city NOT LIKE ANY ('a%', 'b%') OR (kind LIKE 'sh!_' ESCAPE '!') IS NULL;
CREATE VIEW escaped AS SELECT concat(kind, '_%') LIKE 'sh__!_!%' ESCAPE '!' AS a, kind LIKE 's!!%' ESCAPE '!' AS b, concat(kind, '\\') LIKE '%\\' ESCAPE '/' AS c FROM events;
CREATE VIEW like_any_above AS SELECT country, kind LIKE ANY ('s%', 'c%') AS a, country LIKE ALL ('N%', '%L') AS b, country NOT LIKE ANY ('N%', 'B%') AS c, country ILIKE 'n%' AS d FROM by_country_and_kind;
CREATE VIEW lambdas AS SELECT event_id, transform(payload.tags, t -> upper(t)) AS u, filter(payload.tags, (t, i) -> i > 0 AND t <> kind) AS f, exists(payload.tags, t -> t LIKE 'a%') AS e, forall(payload.tags, T -> length(t) > 0) AS fa, aggregate(payload.tags, '', (a, t) -> concat(a, t), a -> concat(a, '!')) AS g, transform(payload.tags, t -> size(filter(payload.tags, u -> u = t))) AS c FROM events;
CREATE VIEW lambda_keys AS SELECT size(filter(tags, x -> x <> c)) AS n, count(*) AS k, sum(aggregate(tags, 0, (a, x) -> a + length(x))) AS s FROM (SELECT payload.tags AS tags, city AS c, kind AS x FROM events) GROUP BY 1;
CREATE VIEW structs AS SELECT event_id,  to_json(struct(user_id, kind AS k, user_id + 1)) AS j, struct(kind, ts) AS s, named_struct('a', amount, 'b', struct(city)).b.city AS b, map('a', kind, 'b', city)['b'] AS m FROM events;
CREATE VIEW unpivoted AS SELECT what, count(*) AS n, max(v) AS v FROM events LATERAL VIEW explode(map('kind', kind, 'city', city)) t AS what, v GROUP BY what;
CREATE VIEW rows_in AS SELECT country, kind FROM by_country_and_kind WHERE (country, kind) IN (SELECT country, max(kind) FROM by_country_and_kind GROUP BY country) OR (country, n) NOT IN (SELECT country, max(n) FROM by_country_and_kind GROUP BY country);
CREATE VIEW rows_in_below AS SELECT kind, count(*) AS n, sum(amount) AS s FROM events WHERE (country, amount) IN (SELECT country, max(amount) FROM events GROUP BY country) GROUP BY kind;
CREATE VIEW rows_not_in AS SELECT country, count(*) AS n FROM events WHERE (kind, city) NOT IN (SELECT kind, city FROM events WHERE amount > 200 AND kind IS NOT NULL AND city IS NOT NULL) GROUP BY country;
CREATE VIEW shares AS SELECT country, percentile(price, array(0.5, 0.9, 0)) AS p, percentile(amount, array(0.25)) FILTER (WHERE kind = 'show') AS q, percentile(user_id, array(0.1, 0.3)) AS u FROM events GROUP BY country;
CREATE VIEW shares_above AS SELECT percentile(n, array(0.5, 0.9)) AS p, percentile(n, array(0.3)) FILTER (WHERE n > 1000) AS q FROM by_country_and_kind;
CREATE VIEW natural_join AS SELECT * FROM by_country_and_kind NATURAL JOIN (SELECT country, max(amount) AS z FROM events GROUP BY country);
CREATE VIEW lists_of_times AS SELECT kind, collect_list(ts) AS t, collect_list(price) AS p, collect_list(amount) AS a, collect_list(CAST(ts AS DATE)) AS d, collect_list(CAST(ts AS TIMESTAMP_NTZ)) AS tn, collect_list(CAST(price AS FLOAT)) AS f FROM events GROUP BY kind;
CREATE VIEW sets_of_all AS SELECT country, collect_set(amount) AS a, collect_set(ts) AS t, collect_set(user_id) AS u FROM events GROUP BY country;
CREATE VIEW sets_above AS SELECT collect_set(t) AS t, collect_set(a) AS a FROM (SELECT kind, max(ts) AS t, sum(amount) AS a FROM events GROUP BY kind, country);
CREATE VIEW date_parts AS SELECT date_part('YEAR', ts) AS y, date_part('dow', ts) AS d, count(*) AS n FROM events GROUP BY 1, 2;
CREATE VIEW ordered_by_output AS SELECT -n AS n, kind, country FROM by_country_and_kind ORDER BY 0 - n, kind, country LIMIT 3;
CREATE VIEW ordered_by_swapped AS SELECT country AS kind, kind AS country, n FROM by_country_and_kind ORDER BY concat(kind, '!'), concat(country, '!') LIMIT 4;
CREATE VIEW ordered_by_column AS SELECT -n AS n, kind, country FROM by_country_and_kind b ORDER BY abs(b.n), b.kind, b.country LIMIT 3;
CREATE VIEW ordered_groups AS SELECT -user_id AS user_id, count(*) AS c FROM events GROUP BY user_id ORDER BY coalesce(user_id, 5) + 0 LIMIT 2;
CREATE VIEW having_output AS SELECT country, count(*) AS user_id, sum(amount) AS amount FROM events GROUP BY country HAVING user_id > 20 AND max(amount) > 10;
CREATE VIEW having_output_of_text AS SELECT country, max(kind) AS city FROM events GROUP BY country HAVING city > 'c';
CREATE VIEW having_group AS SELECT upper(country) AS country, count(*) AS n FROM events GROUP BY country HAVING country = 'NL' OR country IS NULL;
CREATE VIEW having_computed AS SELECT upper(country) AS country, user_id + 1 AS user_id, count(*) AS n FROM events GROUP BY upper(country), user_id + 1 HAVING country = 'NL' AND user_id + 1 > 5;
CREATE VIEW having_else AS SELECT user_id + 1 AS user_id, count(*) AS n FROM events GROUP BY user_id + 1 HAVING user_id > 5;
CREATE VIEW late_in_a_subquery AS SELECT kind, count(*) AS n FROM (SELECT * FROM events WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) GROUP BY kind;
CREATE VIEW late_in_a_cte AS WITH good AS (SELECT * FROM events o WHERE EXISTS (SELECT 1 FROM events i WHERE i.country = o.country AND i.amount > 200)) SELECT event_id, kind FROM good WHERE amount > 3;
CREATE VIEW late_in_a_semi_join AS SELECT kind, count(*) AS n FROM (SELECT o.kind FROM events o LEFT SEMI JOIN events i ON i.user_id = o.user_id AND i.kind = 'click') GROUP BY kind;
CREATE VIEW late_exploded_below AS SELECT tag, count(*) AS n FROM (SELECT payload.tags AS tags FROM events WHERE country IN (SELECT max(country) FROM events)) LATERAL VIEW explode(tags) t AS tag GROUP BY tag;
CREATE VIEW late_union AS SELECT kind FROM (SELECT kind FROM events WHERE amount > (SELECT avg(amount) FROM events)) UNION ALL SELECT country FROM events WHERE city IN (SELECT min(city) FROM events);
CREATE VIEW late_float AS SELECT kind, count(*) AS n FROM events WHERE CAST(price AS FLOAT) >= (SELECT avg(CAST(amount AS FLOAT)) FROM events) GROUP BY kind;
CREATE VIEW late_float_too AS SELECT kind, count(*) AS n FROM events WHERE CAST(amount AS FLOAT) >= (SELECT avg(CAST(amount AS FLOAT)) FROM events) GROUP BY kind;
CREATE VIEW floats_and_doubles AS SELECT CAST(amount AS FLOAT) AS x FROM events UNION ALL SELECT price FROM events;
CREATE VIEW late_one_row AS SELECT 1 AS x FROM events WHERE user_id IN (SELECT user_id FROM events) HAVING true;
CREATE VIEW late_threshold AS SELECT kind, count(*) AS n FROM events WHERE (SELECT count(*) FROM events) > 3 GROUP BY kind;
CREATE VIEW ordered_inside AS SELECT kind FROM by_country_and_kind WHERE country IN (SELECT country FROM by_country_and_kind b ORDER BY n) AND EXISTS (SELECT kind FROM by_country_and_kind b WHERE b.kind = by_country_and_kind.kind ORDER BY n);
CREATE VIEW late_ordered AS SELECT kind, count(*) AS n FROM events WHERE user_id IN (SELECT user_id FROM events ORDER BY amount) GROUP BY kind;
CREATE VIEW struct_names AS SELECT event_id, transform(payload.tags, t -> struct(t)) AS s, struct((user_id), map('x', kind)['x'], kind) AS t FROM events;
CREATE VIEW lambda_of_any_case AS SELECT event_id, transform(payload.tags, E -> concat(e, 'x')) AS x FROM events e;
CREATE VIEW struct_of_bytes AS SELECT event_id, struct(get_json_object(concat('{"a": "\\\\u0000', coalesce(kind, ''), '"}'), '$.a') IS NULL AS a, kind) AS s FROM events;
CREATE VIEW escapes AS SELECT concat(kind, '%') LIKE 's%%' ESCAPE '%' AS b, kind LIKE 'sho!_' ESCAPE '!' AS c FROM events;
CREATE VIEW joined_where AS SELECT a.country, a.kind FROM by_country_and_kind a JOIN by_country_and_kind b ON a.country = b.country AND a.kind = b.kind AND a.country IN (SELECT country FROM search_ctr);
CREATE VIEW each_record AS SELECT kafka_offset AS o, event_id, user_id, hour(ts) AS h, kind, country, city, amount, price, ts, CAST(ts AS DATE) AS day, count(*) AS n FROM events GROUP BY ALL;
CREATE VIEW numbers_as_text AS SELECT o, format_number(amount, 0) AS a, format_number(amount, 1) AS b, format_number(amount, 5) AS c, format_number(user_id, 3) AS d, format_number(-h, 0) AS e, format_number(amount / 100000, 2) AS f, format_number(amount / -1000000, 2) AS g, format_number(CAST(amount AS DECIMAL(38,6)) * 12345678901234567890, 3) AS hh, format_number(amount, 40) AS i FROM each_record;
CREATE VIEW overlaid AS SELECT o, overlay(kind PLACING 'xyz' FROM 2) AS a, overlay(kind PLACING '' FROM 2 FOR 2) AS b, overlay(kind, country, 9) AS c, overlay(kind, 'ü', 1, 0) AS d, overlay(kind, 'é', 3, 99) AS e FROM each_record;
CREATE VIEW split_parts AS SELECT o, split_part(concat(kind, ',', country, ',', city), ',', 1) AS a, split_part(concat(kind, ',', country, ',', city), ',', -1) AS b, split_part(concat(kind, ',', country, ',', city), ',', 7) AS c, split_part(concat(kind, 'aa', city, 'aaa'), 'aa', 2) AS d, substring_index(concat(kind, ',', country, ',', city), ',', 2) AS e, substring_index(kind, 'h', 0) AS f, substring_index(kind, 'z', 1) AS g, substring(kind, -3) AS h, substring(kind, -1) AS i, substring(kind, -99) AS j, lpad(kind, 3) AS k, rpad(kind, 7) AS l FROM each_record;
CREATE VIEW times_as_text AS SELECT o, dayname(ts) AS a, monthname(day) AS b, date_format(ts, 'EEEE, d MMMM y') AS c, date_format(ts, 'EEE dd-MMM-yy h:mm a') AS d, date_format(day, 'yyyyMMdd') AS e, date_format(ts, 'Q D DDD H m s S SSS SSSSSS') AS f, date_format(ts, 'ddE') AS g, next_day(day, 'Mon') AS h, next_day(ts, 'sunday') AS i, next_day(day, 'we') AS j, last_day(ts) AS k, add_months(ts, -1) AS l, add_months(day, -13) AS m, trunc(ts, 'year') AS n, date_add(ts, 3) AS oo, date_sub(ts, 2) AS p, timestamp_seconds(user_id) AS q, timestamp_seconds(unix_seconds(ts)) AS r, datediff(ts, day) AS s FROM each_record WHERE user_id IS NULL;
CREATE VIEW tried AS SELECT o, try_add(user_id, 1) AS a, try_subtract(user_id, 1) AS b, try_multiply(user_id, 2) AS c, try_add(h, 2147483647) AS d, try_multiply(amount, amount) AS e, try_add(price, 1e308D) AS f, try_mod(user_id, h) AS g, negative(user_id) AS i, -h AS j, try_add(user_id, h) AS k, try_multiply(user_id, -1) AS l, try_add(amount, 1) AS m, factorial(h) AS nn, factorial(-h) AS p FROM each_record;
CREATE VIEW rounded_evenly AS SELECT o, bround(amount, 1) AS a, bround(amount) AS b, bround(amount, -2) AS c, round(amount, -2) AS d, round(amount, -9) AS d9, round(user_id, -3) AS e, round(user_id, -18) AS e18, round(user_id, -19) AS e19, round(h, -1) AS f, round(price, -1) AS g, bround(price, 0) AS i, bround(price) AS j, rint(price) AS k, rint(amount) AS l, cbrt(price) AS m, log2(price) AS q, log2(n) AS r, e() AS s, pmod(h - 20, 7) AS t, pmod(-h, -7) AS u, pmod(user_id, h) AS v, bround(h) AS w, bround(user_id, 3) AS x, pmod(h, 0) AS y, bround(amount / 3, 3) AS z FROM each_record;
CREATE VIEW arrays_of_tags AS SELECT event_id, concat_ws('-', payload.tags) AS a, concat_ws('-', kind, payload.tags, city) AS b, array_join(payload.tags, ',', '?') AS c, array_union(payload.tags, payload.tags) AS d, array_except(payload.tags, array(kind)) AS e, array_append(payload.tags, kind) AS f, array_prepend(payload.tags, kind) AS g, array_remove(payload.tags, 'a') AS h, array_compact(payload.tags) AS i, array_repeat(kind, 2) AS j, concat(payload.tags, payload.tags) AS k, flatten(array(payload.tags, payload.tags)) AS l, element_at(payload.tags, -1) AS m, try_element_at(payload.tags, 3) AS n, get(payload.tags, 1) AS o, arrays_overlap(payload.tags, array('a')) AS p, flatten(array(array(1), array(2, 3))) AS q FROM events;
CREATE VIEW json_read AS SELECT event_id, map('a', kind, 'B', city).a AS a, map('a', kind, 'B', city).B AS b, map('a', kind).z AS z, map_entries(map('a', kind, 'B', city)) AS c, map_contains_key(map('a', kind), 'a') AS d, from_json(concat('{"a": ', user_id, ', "b": ["', kind, '", null], "m": {"x": 1.5}, "s": {"y": true}}'), 'a BIGINT, b ARRAY<STRING>, m MAP<STRING, DOUBLE>, s STRUCT<y: BOOLEAN>, d DECIMAL(5,2)') AS e, from_json(kind, 'a INT') AS f, from_json(concat('{"a": "\\\\u0000', coalesce(kind, ''), '"}'), 'a STRING').a AS g, from_json(concat('[1, "2", 3.5, ', user_id, ']'), 'ARRAY<INT>') AS h, from_json(concat('{"k": ', user_id, '}'), 'MAP<STRING, STRING>').k AS i, json_array_length(concat('[', user_id, ', 2]')) AS j, from_json('{"a": "NaN", "b": 1e400, "c": 12345678901, "d": 99999.999}', 'a DOUBLE, b DOUBLE, c INT, d DECIMAL(5,2)') AS k FROM events;
CREATE VIEW json_read_by AS SELECT from_json(concat('{"a": ', user_id, ', "b": "', kind, '"}'), 'a BIGINT, b STRING').b AS b, sum(from_json(concat('{"a": ', user_id, ', "b": "x"}'), 'a BIGINT, b STRING').a) AS s, count(*) AS n, max(conv(hex(user_id), 16, 10)) AS m, max(try_add(user_id, user_id)) AS ta, sum(round(user_id, -2)) AS rr, max(bround(amount, 1)) AS br FROM events GROUP BY 1;
CREATE VIEW bytes_and_places AS SELECT event_id, CAST(unhex(hex(country)) AS STRING) AS a, hex(unhex(country)) AS b, url_encode(country) AS c, find_in_set(kind, 'show,click') AS d, locate('o', kind, 4) AS e, levenshtein(kind, city, 2) AS f, months_between(ts, TIMESTAMP '2024-01-31 00:00:00', false) AS g, regexp_instr(kind, 'o(w)?') AS h, regexp_substr(kind, 'o(w)?') AS i, log1p(price) AS j, expm1(amount) AS k, sinh(price) AS l, hypot(price, amount) AS m, sec(amount) AS n, split_part(kind, 'o', -1) AS o, substring_index(kind, 'o', -1) AS p, overlay(kind, 'x', -1, 1) AS q, base64(country) AS r, last_day(ts) AS s, date_add(ts, 1) AS t, factorial(hour(ts)) AS u, format_number(price, 2) AS v, format_number(amount, 2) AS w FROM events;
CREATE VIEW texts_of_bytes AS SELECT o, hex(user_id) AS a, hex(country) AS b, hex(h) AS c, bin(user_id) AS d, bin(-h) AS e, sha2(country, 256) AS f, sha2(country, 0) AS g, sha2(kind, 512) AS i, sha2(kind, 384) AS j, sha2(kind, 224) AS k, crc32(country) AS l, base64(country) AS m, base64(repeat(kind, 57)) AS p, sha2(kind, 99) AS q FROM each_record;
CREATE VIEW known_values AS SELECT event_id, first_value(kind) IGNORE NULLS OVER (PARTITION BY country ORDER BY event_id ROWS UNBOUNDED PRECEDING) AS a, last_value(price, true) OVER (PARTITION BY country ORDER BY event_id ROWS UNBOUNDED PRECEDING) AS b, last_value(amount) IGNORE NULLS OVER (ORDER BY event_id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS c, lag(kind) IGNORE NULLS OVER (PARTITION BY country ORDER BY event_id) AS d, lead(user_id, 1, 7) IGNORE NULLS OVER (PARTITION BY country ORDER BY event_id) AS e, lag(amount, 1, 0) IGNORE NULLS OVER (ORDER BY event_id DESC) AS f, lead(ts) IGNORE NULLS OVER (PARTITION BY kind ORDER BY price, event_id) AS g, first(city, true) OVER (ORDER BY event_id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS h, last(kind) OVER (ORDER BY event_id ROWS UNBOUNDED PRECEDING) AS i, first_value(upper(kind)) IGNORE NULLS OVER (PARTITION BY country ORDER BY event_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS j, last_value(kind) RESPECT NULLS OVER (ORDER BY event_id ROWS UNBOUNDED PRECEDING) AS k, last_value(kind) IGNORE NULLS OVER (PARTITION BY user_id ORDER BY amount, kafka_partition, kafka_offset) AS l, lead(kind) IGNORE NULLS OVER (PARTITION BY user_id ORDER BY amount DESC) AS m FROM events;
CREATE VIEW known_of_groups AS SELECT country, kind, last_value(m) IGNORE NULLS OVER (ORDER BY country, kind) AS a, lag(m, 1, 0) IGNORE NULLS OVER (ORDER BY n) AS b, lead(concat(kind, 'x')) IGNORE NULLS OVER (PARTITION BY country ORDER BY n DESC) AS c, lag('x') IGNORE NULLS OVER (ORDER BY n) AS d FROM (SELECT country, kind, max(amount) AS m, count(*) AS n FROM events GROUP BY country, kind);
CREATE VIEW entries AS SELECT event_id, map_filter(map('a', user_id, 'b', 2), (k, v) -> v > 1 AND k <> kind) AS f, transform_values(map('a', kind, 'b', city), (k, v) -> concat(k, v)) AS t, regexp_extract_all(concat(kind, kind), '(h|c)(.)', 2) AS r, array_insert(payload.tags, 1, kind) AS i, floor(amount, 1) AS fl, ceil(amount, -1) AS c FROM events;
CREATE VIEW constants_named AS SELECT k.country, names.name, k.n FROM by_country_and_kind k JOIN (VALUES ('NL', 'Netherlands'), ('FR', NULL), ('', 'none')) AS names(code, name) ON k.country = names.code;
CREATE VIEW constants_left AS SELECT k.*, t.* FROM by_country_and_kind k LEFT JOIN VALUES ('NL', 1, 2.5, DATE '2024-01-01'), ('FR', 2.25, 3000000000, NULL) t ON k.country = t.col1;
CREATE VIEW constants_full AS SELECT * FROM (SELECT country, sum(n) AS n FROM by_country_and_kind GROUP BY country) k FULL JOIN (VALUES ('NL', 1e0), ('XX', 2)) AS names(code, x) ON k.country = names.code;
CREATE VIEW constants_right AS WITH names AS (SELECT 'NL' AS code, 1 AS w UNION ALL SELECT 'FR', NULL UNION ALL SELECT NULL, 2.5) SELECT names.code, w, coalesce(sum(n), 0) AS n FROM by_country_and_kind RIGHT JOIN names ON code = country GROUP BY names.code, w;
CREATE VIEW constants_cte AS WITH names(code, name) AS (VALUES ('NL', 'N'), ('ü', 'U')) SELECT name, count(*) AS c, sum(n * 2) AS n FROM by_country_and_kind k JOIN names ON names.code = k.country GROUP BY name;
CREATE VIEW constants_united AS SELECT country, n FROM by_country_and_kind UNION ALL SELECT 'total', 2.5 UNION ALL VALUES ('a', 1), (NULL, NULL);
CREATE VIEW constants_null AS SELECT NULL AS c, 1 AS n UNION ALL SELECT country, n FROM by_country_and_kind UNION SELECT NULL, NULL;
CREATE VIEW constants_in AS SELECT country, n FROM by_country_and_kind WHERE country IN (SELECT * FROM VALUES ('NL'), ('FR')) OR n NOT IN (SELECT x FROM (VALUES (1), (NULL)) AS t(x)) OR kind = (SELECT 'show');
CREATE VIEW constants_in_of_records AS SELECT kind, count(*) AS n, count(*) FILTER (WHERE country IN (SELECT 'NL' UNION ALL SELECT 'FR')) AS f, sum(CASE WHEN city NOT IN (SELECT c FROM VALUES ('a'), ('x') AS t(c)) THEN 1 ELSE 0 END) AS x FROM events WHERE user_id IN (SELECT * FROM VALUES (1), (2), (3)) GROUP BY kind;
CREATE VIEW constants_as_values AS SELECT kind, n + (SELECT 5) AS a, n * 1.5 * (SELECT 2) AS b, n * (SELECT max(x) FROM VALUES (1.25), (2) AS t(x)) AS c FROM by_country_and_kind;
CREATE VIEW constants_ranked AS SELECT code, n, row_number() OVER (PARTITION BY code ORDER BY n DESC) AS r FROM by_country_and_kind k JOIN (VALUES ('NL', 1), ('FR', 2)) AS names(code, name) ON k.country = names.code;
CREATE VIEW constants_top AS SELECT code, name, n FROM by_country_and_kind, (VALUES ('NL', 1), ('FR', 2)) AS names(code, name) ORDER BY n DESC LIMIT 5;
CREATE VIEW constants_computed AS SELECT t.a, t.b, t.c, t.d, t.e, k.n FROM (SELECT sum(n) AS n FROM by_country_and_kind) k CROSS JOIN VALUES (upper('x'), 1 + 1, -5, true, TIMESTAMP '2024-01-01 10:00:00'), (concat('a', 'b'), 7 / 2, 9223372036854775807, NULL, DATE '2020-02-02') AS t(a, b, c, d, e);
CREATE VIEW constants_without_from AS SELECT n FROM by_country_and_kind UNION ALL SELECT 7 WHERE 1 > 2 UNION ALL SELECT count(*) UNION ALL SELECT 8 WHERE EXISTS (SELECT 1 FROM by_country_and_kind WHERE n > 3);
CREATE VIEW constants_asked AS SELECT * FROM by_country_and_kind k WHERE EXISTS (SELECT 1 FROM VALUES ('NL', 3), ('FR', 9) AS t(c, m) WHERE t.c = k.country AND k.n > t.m) AND NOT EXISTS (SELECT * FROM VALUES ('x') AS u(k) WHERE u.k = kind);
CREATE VIEW constants_asked_of_records AS SELECT kind, count(*) AS n FROM events e LEFT SEMI JOIN VALUES ('NL', 3), ('FR', 9) AS t(c, m) ON t.c = e.country AND e.amount > t.m GROUP BY kind;
CREATE VIEW constants_for_records AS SELECT name, count(*) AS n, sum(amount * w) AS s, count(DISTINCT city) AS d, max(w) AS m FROM events JOIN (VALUES ('NL', 'Netherlands', 1), ('FR', 'France', 2.5), ('FR', NULL, NULL)) AS names(code, name, w) ON events.country = names.code GROUP BY name;
CREATE VIEW constants_or_none AS SELECT name, kind, count(*) AS n, count(name) AS c, median(price) AS p FROM events e LEFT JOIN (VALUES ('NL', 'Netherlands'), ('', 'none')) AS names(code, name) ON e.country = names.code AND e.amount > 0 WHERE name IS NULL OR kind = 'show' GROUP BY name, kind;
CREATE VIEW constants_of_rows AS SELECT event_id, e.country, names.* FROM events e LEFT JOIN VALUES ('NL', 1, 2.5, DATE '2024-01-01', TIMESTAMP '2024-01-01 10:00:00'), ('FR', 2.25, 3000000000, NULL, NULL), ('FR', 0, 1, NULL, NULL) names(code, a, b, d, t) ON e.country = code;
CREATE VIEW constants_crossed AS SELECT w, sum(amount) AS s, count(*) AS n FROM events, (SELECT 1 AS w UNION ALL SELECT 2) ws WHERE user_id > w GROUP BY w;
CREATE VIEW constants_bands AS WITH bands AS (SELECT 'low' AS band, 0 AS f, 10 AS t UNION ALL SELECT 'high', 10, 1e9) SELECT band, count(*) AS n FROM bands JOIN events ON amount >= f AND amount < t GROUP BY band;
CREATE VIEW constants_using AS SELECT country, name, count(*) AS n FROM events JOIN (VALUES ('NL', 'Netherlands'), ('FR', 'France')) AS names(country, name) USING (country) GROUP BY country, name;
CREATE VIEW constants_chained AS SELECT a.name, b.w, count(*) AS n FROM events JOIN (VALUES ('NL', 'N'), ('FR', 'F')) AS a(code, name) ON country = a.code LEFT JOIN (VALUES ('N', 3)) AS b(name, w) ON a.name = b.name GROUP BY a.name, b.w;
CREATE VIEW constants_in_a_subquery AS SELECT name, window(ts, '1 hour').start AS h, count(*) AS n FROM (SELECT e.ts, n.name FROM events e JOIN VALUES ('NL', 'N'), ('FR', 'F') AS n(code, name) ON e.country = n.code WHERE amount > 0) GROUP BY name, window(ts, '1 hour');
CREATE VIEW constants_for_a_subquery AS SELECT upper(n.name) AS u, sum(x) AS s FROM (SELECT lower(country) AS c, amount * 2 AS x FROM events WHERE kind = 'show') e JOIN VALUES ('nl', 'N'), ('fr', 'f') AS n(code, name) ON e.c = n.code GROUP BY upper(n.name);
CREATE VIEW constants_limited AS SELECT event_id, name FROM events JOIN VALUES ('NL', 'N'), ('FR', 'F') AS n(code, name) ON country = code ORDER BY event_id LIMIT 7;
CREATE VIEW filtered_by_filter AS SELECT country, count(*) AS n, sum(amount) AS s, count(*) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c, max(city) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click') AND amount > 1) AS m, avg(amount) FILTER (WHERE amount > (SELECT avg(amount) FROM events)) AS a FROM events GROUP BY country;
CREATE VIEW filtered_by_case AS SELECT kind, sum(CASE WHEN user_id IN (SELECT user_id FROM events WHERE city = 'a' AND user_id > 1) THEN 1 ELSE 0 END) AS n, sum(CASE WHEN country NOT IN (SELECT country FROM events WHERE amount > 200 AND country IS NOT NULL AND country <> '') THEN amount END) AS s, count_if(country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS c, count(CASE WHEN country = (SELECT max(country) FROM events) THEN city ELSE NULL END) AS k, min(CASE WHEN price > (SELECT avg(amount) FROM events) THEN price END) AS p, sum(CASE WHEN amount > (SELECT avg(amount) FROM events) THEN amount ELSE user_id END) AS t, sum(CASE WHEN amount > (SELECT min(amount) FROM events) THEN price ELSE amount END) AS u FROM events GROUP BY kind;
CREATE VIEW filtered_by_all AS SELECT count(*) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS c, sum(CASE WHEN country IN (SELECT country FROM by_country_and_kind WHERE n > 11) THEN 2 ELSE 0 END) AS s, bool_or(amount > 3) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 1100)) AS b FROM events;
CREATE VIEW filtered_by_all_and_more AS SELECT count(*) AS n, count(user_id) FILTER (WHERE (country, kind) IN (SELECT country, max(kind) FROM by_country_and_kind GROUP BY country)) AS c, max(ts) AS t, stddev_pop(amount) FILTER (WHERE EXISTS (SELECT 1 FROM events WHERE amount > 10)) AS d FROM events WHERE amount > 1;
CREATE VIEW filtered_by_distinct AS SELECT country, count(DISTINCT kind) AS d, count(DISTINCT kind, city) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c, sum(DISTINCT amount) FILTER (WHERE amount >= (SELECT avg(amount) FROM events)) AS s, median(price) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS m, approx_count_distinct(city) AS z, last(city) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS l, mode(city) AS o FROM events GROUP BY country;
CREATE VIEW filtered_by_window AS SELECT window(ts, '12 hours', '3 hours').end AS w, kind, count(*) AS n, count(*) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS c, count(DISTINCT city) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS d FROM events GROUP BY window(ts, '12 hours', '3 hours'), kind;
CREATE VIEW filtered_by_day AS SELECT date_trunc('day', ts) AS d, upper(kind) AS k, count(*) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) * 2 + 1 AS c FROM events GROUP BY date_trunc('day', ts), upper(kind) HAVING count(*) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 1)) > 2 ORDER BY c DESC LIMIT 5;
CREATE VIEW filtered_by_rollup AS SELECT country, kind, count(*) AS n, count(*) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c FROM events GROUP BY ROLLUP (country, kind);
CREATE VIEW filtered_by_late_too AS SELECT kind, count(*) AS n, sum(amount) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS c FROM events WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click') GROUP BY kind;
CREATE VIEW filtered_by_in_a_subquery AS SELECT k, sum(c) AS c, max(x) AS x FROM (SELECT kind AS k, count(*) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS c, rank() OVER (ORDER BY count(*) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11))) AS x FROM (SELECT * FROM events WHERE amount > 0) GROUP BY kind, city) GROUP BY k;
CREATE VIEW filtered_by_exploded AS SELECT tag, count(*) AS n, count(*) FILTER (WHERE tag IN (SELECT max(kind) FROM events GROUP BY country)) AS c FROM events LATERAL VIEW explode(payload.tags) t AS tag GROUP BY tag;
CREATE VIEW filtered_by_by_constants AS SELECT name, count(*) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c FROM events LEFT JOIN VALUES ('NL', 'N') AS t(code, name) ON country = code GROUP BY name;
CREATE VIEW filtered_by_group_only AS SELECT DISTINCT count_if(country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) > 3 AS c FROM events GROUP BY kind, city;
CREATE VIEW filtered_by_not AS SELECT kind, count_if(NOT (country IN (SELECT country FROM by_country_and_kind WHERE n > 11 AND country IS NOT NULL) AND amount > 1)) AS c, count_if(country NOT IN (SELECT country FROM by_country_and_kind)) AS n, count_if(country IN (SELECT country FROM by_country_and_kind WHERE n > 11) OR amount IS NULL) AS o FROM events GROUP BY kind;
CREATE VIEW filtered_by_above AS SELECT kind, sum(n) FILTER (WHERE country IN (SELECT country FROM by_country_and_kind WHERE n > 11)) AS c, sum(CASE WHEN country IN (SELECT country FROM by_country_and_kind WHERE n > 11) THEN n ELSE 0 END) AS d FROM by_country_and_kind GROUP BY kind;
CREATE VIEW without_from_asked AS SELECT n FROM by_country_and_kind o WHERE EXISTS (SELECT 1 WHERE o.n > 11) OR n IN (SELECT 10 WHERE o.kind = 'show');
CREATE VIEW without_from_each AS SELECT kind, n, (SELECT 1 WHERE o.n = 10) AS x FROM by_country_and_kind o;
CREATE VIEW without_from_records AS SELECT kind, count(*) AS n FROM events o WHERE EXISTS (SELECT 1 WHERE o.amount > 3) GROUP BY kind;
CREATE VIEW filtered_by_of_all_types AS SELECT city, bit_xor(user_id) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c0, regr_count(amount, price) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c1, min(ts) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c2, max(CAST(ts AS DATE)) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c3, bool_and(amount > 1) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c4, any_value(kind) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c5, max(CAST(price AS FLOAT)) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c6, sum(user_id) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c7, corr(amount, user_id) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS c8, sum(CASE WHEN amount > (SELECT avg(amount) FROM events) THEN user_id ELSE -user_id END) AS w, sum(CASE WHEN amount > (SELECT avg(amount) FROM events) THEN 0.5 ELSE 1 END) AS h, sum(CASE WHEN amount > (SELECT avg(amount) FROM events) THEN CAST(price AS FLOAT) ELSE 0 END) AS f FROM events GROUP BY city;
CREATE VIEW constants_swapped_using AS SELECT country, name, count(*) AS c FROM (VALUES ('NL', 'N'), ('FR', 'F')) AS n(country, name) RIGHT OUTER JOIN events USING (country) GROUP BY country, name;
CREATE VIEW constants_natural AS SELECT * FROM (SELECT event_id, country, kind FROM events) NATURAL LEFT JOIN VALUES ('NL', 'N', 'show'), ('FR', 'F', NULL) AS n(country, name, kind);
CREATE VIEW constants_zeros AS SELECT x, s, count(*) AS c FROM events JOIN VALUES (-0e0, 'it''s "a" \\ %\n'), (0e0, 'ü—𝄞'), (1.5, ''), (double('NaN'), NULL) AS n(x, s) ON price = x GROUP BY x, s;
CREATE VIEW constants_zeros_rows AS SELECT event_id, x, s, b, i FROM events JOIN VALUES (-0e0, 'it''s "a" \\ %\n', true, -9223372036854775808), (0e0, 'ü—𝄞', NULL, 1), (1.5, '', false, 3) AS n(x, s, b, i) ON price = x;
CREATE VIEW constants_zeros_above AS SELECT k.kind, x, s, b, i, d FROM by_country_and_kind k CROSS JOIN VALUES (-0e0, 'it''s "a" \\ %\n{x}', true, -9223372036854775808, -1.10), (0e0, 'ü—𝄞', NULL, 1, 100), (1.5, '', false, 3, NULL) AS n(x, s, b, i, d);
CREATE VIEW constants_computed_below AS SELECT f, sum(amount * f) AS s, sum(amount / f) AS q FROM events JOIN (SELECT 1 * 2.5 AS f, 'NL' AS c UNION ALL SELECT 7 / 2.0, upper('fr') UNION ALL SELECT NULL, '') ON c = country GROUP BY f;
CREATE VIEW constants_literals_above AS SELECT f, n.i, kinds.n * f AS s, kinds.n / f AS q, f / 3 AS r, i * 2.5 AS t, f * 2 AS u FROM by_country_and_kind kinds JOIN VALUES (2.5, 3, 'NL'), (10.25, 700, 'FR') AS n(f, i, c) ON c = country;
CREATE VIEW constants_both AS WITH names AS (VALUES ('NL', 'N'), ('FR', 'F')) SELECT a.col2 AS name, t.n FROM (SELECT n.col2 AS x, count(*) AS n FROM events JOIN names n ON n.col1 = country GROUP BY n.col2) t JOIN names a ON a.col2 = t.x;
CREATE VIEW constants_ranked_by_key AS SELECT code, row_number() OVER (PARTITION BY x ORDER BY w) AS r FROM (SELECT country, code, w, kind AS x FROM by_country_and_kind kinds JOIN VALUES ('NL', 1), ('FR', 1), ('ü', 2) AS n(code, w) ON code = country);
CREATE VIEW constants_hop AS SELECT name, window(ts, '12 hours', '3 hours').start AS w, count(*) AS n, count(DISTINCT city) AS c FROM events LEFT JOIN VALUES ('NL', 'N'), ('FR', 'F') AS n(code, name) ON code = country GROUP BY name, window(ts, '12 hours', '3 hours');
CREATE VIEW constants_sess AS SELECT name, session_window(ts, '30 minutes').start AS w, count(*) AS n FROM events JOIN VALUES ('NL', 'N'), ('FR', 'F') AS n(code, name) ON code = country GROUP BY name, session_window(ts, '30 minutes');
CREATE VIEW constants_rolled AS SELECT name, w, count(*) AS n, grouping(name) AS g FROM events JOIN VALUES ('NL', 'N', 1), ('FR', 'F', 1) AS n(code, name, w) ON code = country GROUP BY CUBE (name, w);
CREATE VIEW constants_late AS SELECT name, count(*) AS n FROM events e JOIN VALUES ('NL', 'N', 1), ('FR', 'F', 2) AS n(code, name, w) ON code = country WHERE name IN (SELECT CASE WHEN max(country) > 'A' THEN 'N' END FROM events) AND EXISTS (SELECT 1 FROM events i WHERE i.user_id = w AND i.kind = e.kind) GROUP BY name;
CREATE VIEW constants_exploded_beside AS SELECT tag, name, count(*) AS n FROM events JOIN VALUES ('NL', 'N'), ('a', 'F') AS n(code, name) LATERAL VIEW explode(payload.tags) t AS tag WHERE code = tag OR code = country GROUP BY tag, name;
CREATE VIEW constants_lambda_on AS SELECT name, count(*) AS n FROM events JOIN VALUES ('a', 'A'), ('NL', 'N') AS n(code, name) ON exists(payload.tags, t -> t = code) OR size(filter(split(concat(kind, ',', country), ','), code0 -> code0 = code)) > 0 GROUP BY name;
CREATE VIEW filtered_by_if_sum AS SELECT kind, sum(if(user_id IN (SELECT user_id FROM events WHERE city = 'a' AND user_id > 1), 1, 0)) AS a, max(if(user_id IN (SELECT user_id FROM events WHERE city = 'a'), price, NULL)) AS b FROM events GROUP BY kind;
CREATE VIEW filtered_by_each_filter AS SELECT kind, count(*) FILTER (WHERE g) AS n, count(*) AS c FROM (SELECT kind, EXISTS (SELECT 1 FROM events i WHERE i.country = o.country AND i.amount > o.amount + 200) AS g FROM events o) GROUP BY kind;
CREATE VIEW filtered_by_list_of_shares AS SELECT kind, percentile(price, array(0.5, 0.9)) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS p, percentile_approx(price, 0.9) FILTER (WHERE user_id IN (SELECT user_id FROM events WHERE kind = 'click')) AS q FROM events GROUP BY kind;
CREATE VIEW filtered_by_simple_case AS SELECT city, sum(CASE kind WHEN (SELECT max(kind) FROM events) THEN 1 ELSE 0 END) AS n FROM events GROUP BY city;
CREATE VIEW date_parts_all AS SELECT EXTRACT(SECOND FROM ts) AS s, date_part('seconds', CAST(ts AS TIMESTAMP_NTZ)) AS sn, EXTRACT(SECONDS FROM to_date(ts)) AS sd, EXTRACT(DOW_ISO FROM ts) AS d, EXTRACT(DAYOFWEEK_ISO FROM to_date(ts)) AS dd, EXTRACT(YEAROFWEEK FROM ts) AS y, EXTRACT(YEAROFWEEK FROM DATE '9999-12-31') AS ym, date_part('YEAROFWEEK', DATE '0001-01-01') AS yl, EXTRACT(MINS FROM ts) AS m, date_part('W', ts) AS w, second(ts) AS si FROM events;
CREATE VIEW date_parts_above AS SELECT kind, EXTRACT(SECOND FROM min(ts)) AS s, date_part('S', max(CAST(ts AS TIMESTAMP_NTZ))) AS sn, EXTRACT(SECOND FROM min(to_date(ts))) AS sd, EXTRACT(DOW_ISO FROM min(ts)) AS d, EXTRACT(YEAROFWEEK FROM min(ts)) AS y, EXTRACT(YEAROFWEEK FROM max(to_date(ts))) AS yd, date_part('YEAROFWEEK', min(ts) + INTERVAL 1 DAY) AS y1, EXTRACT(SECOND FROM min(ts) + INTERVAL 123456 MICROSECONDS) * 2 AS s2, date_part('WEEKS', max(ts)) AS w FROM events GROUP BY kind, country;
CREATE VIEW sketched_shares AS SELECT kind, percentile_approx(price, array(0.5, 0.9, 0)) AS p, approx_percentile(amount, array(0.25), 20) AS a, percentile_approx(user_id, array(0.1, 1)) AS u, percentile_approx(amount, array(0.5, 0.9)) FILTER (WHERE kind = 'show') AS f, percentile_approx(amount, 0.9) AS one FROM events GROUP BY kind;
CREATE VIEW sketched_shares_all AS SELECT percentile_approx(price, array(0.5, 0.9)) FILTER (WHERE kind = 'nobody') AS n, percentile_approx(length(city) * 1000, array(0.5)) AS l FROM events;
CREATE VIEW whole_windows AS SELECT window, country, count(*) AS n FROM events GROUP BY window(ts, '1 hour'), country;
CREATE VIEW whole_hops AS SELECT window AS w, kind, count(*) AS n, count(DISTINCT city) AS c, last(city) AS l FROM events GROUP BY window(ts, '1 hour', '20 minutes'), kind ORDER BY window DESC, n, kind;
CREATE VIEW whole_sessions AS SELECT session_window, user_id, count(*) AS n, count(DISTINCT city) AS c FROM events GROUP BY session_window(ts, '30 minutes'), user_id;
CREATE VIEW whole_alias AS SELECT window(ts, '1 hour') AS w, window.end AS e, kind, count(*) AS n FROM events GROUP BY w, kind ORDER BY n DESC LIMIT 4;
CREATE VIEW whole_place AS SELECT session_window(ts, '1 hour') AS w, kind, count(*) AS n FROM events GROUP BY 1, 2 HAVING w.start > TIMESTAMP '2000-01-01 00:00:00' ORDER BY n LIMIT 3;
CREATE VIEW whole_all AS SELECT window(ts, '1 hour') AS w, kind, sum(amount) AS a FROM events GROUP BY ALL;
CREATE VIEW whole_rolled AS SELECT window, country, grouping(window) AS g, count(*) AS n FROM events GROUP BY ROLLUP(window(ts, '1 hour'), country);
CREATE VIEW whole_session_sets AS SELECT session_window AS w, kind, count(*) AS n FROM events GROUP BY session_window(ts, '30 minutes'), ROLLUP(kind);
CREATE VIEW whole_read AS SELECT w.start AS s, w.end AS e, n FROM (SELECT window AS w, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '30 minutes'));
CREATE VIEW whole_stars AS SELECT w.*, n FROM (SELECT session_window AS w, kind, count(*) AS n FROM events GROUP BY session_window(ts, '1 hour'), kind);
CREATE VIEW whole_regrouped AS SELECT w, w.end AS e, sum(n) AS n, max(w.start) AS s FROM (SELECT window AS w, country, count(*) AS n FROM events GROUP BY window(ts, '1 hour', '30 minutes'), country) GROUP BY w;
CREATE VIEW whole_below AS SELECT w, w.start AS s, count(*) AS n FROM (SELECT window(ts, '1 hour') AS w, kind FROM events WHERE kind = 'show') GROUP BY w;
CREATE VIEW whole_hop_rows AS SELECT event_id, window(ts, '1 hour', '30 minutes') AS w FROM events;
CREATE VIEW whole_full AS SELECT window, n, m FROM (SELECT window, count(*) AS n FROM events WHERE city = 'a' GROUP BY window(ts, '1 hour')) a FULL JOIN (SELECT window, count(*) AS m FROM events WHERE kind = 'click' GROUP BY window(ts, '1 hour', '30 minutes')) b USING (window);
CREATE VIEW whole_ranked AS SELECT window, country, rank() OVER (PARTITION BY window ORDER BY count(*) DESC, country) AS r, row_number() OVER (ORDER BY window DESC, count(*)) AS o FROM events GROUP BY window(ts, '1 hour'), country;
CREATE VIEW whole_of_view AS SELECT w.start AS s, sum(n) AS n FROM whole_hops GROUP BY w.start;
CREATE VIEW whole_union AS SELECT window AS w, n FROM whole_windows UNION ALL SELECT w, n FROM whole_hops;
CREATE VIEW whole_of_union AS SELECT w, count(*) AS c FROM (SELECT window AS w, n FROM whole_windows UNION ALL SELECT w, n FROM whole_hops) GROUP BY w ORDER BY w LIMIT 3;
CREATE VIEW whole_cased AS SELECT CASE WHEN count(*) > 20 THEN window END AS w, coalesce(window, window).start AS s, count(*) AS n FROM events GROUP BY window(ts, '1 hour'), kind;
CREATE VIEW whole_lagged AS SELECT country, lag(window) OVER (PARTITION BY country ORDER BY window) AS w, first_value(window) OVER (PARTITION BY country ORDER BY n, window).end AS f FROM whole_windows;
CREATE VIEW of_struct AS SELECT user.*, event_id FROM (SELECT payload.user AS user, event_id FROM events);
CREATE VIEW fields_of_structs AS SELECT s.a AS a, s.b.c AS c, count(*) AS n FROM (SELECT named_struct('a', kind, 'b', struct(city AS c)) AS s FROM events) GROUP BY s.a, s.b.c;
CREATE VIEW whole_distinct_hops AS SELECT DISTINCT window(ts, '1 hour', '20 minutes') AS w, kind FROM events;
CREATE VIEW whole_except AS SELECT window(ts, '1 hour') AS w FROM events WHERE kind = 'show' EXCEPT SELECT window(ts, '1 hour') FROM events WHERE kind = 'click' AND city = 'a';
CREATE VIEW whole_late AS SELECT window(ts + INTERVAL 7975 YEARS + INTERVAL 364 DAYS + INTERVAL 13 HOURS, '1 hour') AS w, count(*) AS n FROM events WHERE ts > TIMESTAMP '2023-01-01 00:00:00' AND ts < TIMESTAMP '2024-01-02 00:00:00' GROUP BY 1;
CREATE VIEW whole_late_read AS SELECT unix_micros(w.end) AS e, w.start AS s, w IS NOT NULL AS k FROM whole_late;
CREATE VIEW whole_late_rows AS SELECT event_id, window(ts + INTERVAL 7975 YEARS + INTERVAL 364 DAYS + INTERVAL 13 HOURS, '1 hour') AS w FROM events WHERE ts > TIMESTAMP '2023-01-01 00:00:00' AND ts < TIMESTAMP '2024-01-02 00:00:00';
CREATE VIEW whole_deep AS SELECT w.start AS s, max(n) AS n FROM (SELECT w, n FROM (SELECT window AS w, kind, count(*) AS n FROM events GROUP BY window(ts, '1 hour'), kind) WHERE w.end > TIMESTAMP '2000-01-01 00:00:00') GROUP BY w.start;
CREATE VIEW whole_limited AS SELECT w.start AS s, n FROM (SELECT window AS w, kind, count(*) AS n FROM events GROUP BY window(ts, '1 hour'), kind ORDER BY n DESC LIMIT 3) ORDER BY s;
CREATE VIEW whole_asked AS SELECT a.country, a.n FROM whole_windows a WHERE EXISTS (SELECT 1 FROM whole_hops b WHERE b.w.start = a.window.start AND b.n > 12);
CREATE VIEW whole_in_cte AS WITH h AS (SELECT window, country, count(*) AS n FROM events GROUP BY window(ts, '1 hour'), country) SELECT window, max_by(country, n) AS top, sum(n) AS n FROM h GROUP BY window ORDER BY window;
CREATE VIEW whole_hidden AS SELECT -count(*) AS window_start, window AS w, kind FROM events GROUP BY window(ts, '1 hour'), kind ORDER BY window, kind LIMIT 3;
CREATE VIEW exploded_of_any_text AS SELECT event_id, replace(x, '\0', '\ufffd') AS x FROM events LATERAL VIEW explode(split(get_json_object(concat('{"a": "\\\\u0000,', coalesce(kind, ''), '"}'), '$.a'), ',')) t AS x;
CREATE VIEW exploded_days AS SELECT d, count(*) AS n, max(date_add(d, 1)) AS m FROM events LATERAL VIEW explode(array(date_add(CAST(ts AS DATE), 3), CAST(ts AS DATE))) t AS d WHERE d > DATE '1960-01-01' GROUP BY d;
CREATE VIEW exploded_times AS SELECT kind, d.a AS a, count(*) AS n FROM events LATERAL VIEW explode(array(named_struct('a', ts + INTERVAL 2 MINUTES, 'b', 1))) t AS d GROUP BY kind, d.a;
CREATE VIEW nulls_regrouped AS SELECT NOT (country IS NULL) AS known, NOT (country <=> 'NL') AS abroad, sum(n) AS n FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind) GROUP BY country IS NULL, country <=> 'NL';
CREATE VIEW by_a_constant AS SELECT 'all' AS what, count(*) AS n, sum(amount) AS total FROM events GROUP BY 'all';
CREATE VIEW by_a_constant_of_none AS SELECT count(*) AS n FROM events WHERE kind = 'never' GROUP BY 1 + 1;
CREATE VIEW by_all_of_a_constant AS SELECT 7 AS seven, count(*) AS n FROM events WHERE kind = 'never' GROUP BY ALL;
CREATE VIEW by_a_constant_above AS SELECT 'all' AS what, sum(n) AS n FROM (SELECT kind, count(*) AS n FROM events GROUP BY kind) GROUP BY 1 HAVING sum(n) > 0;
CREATE VIEW counted_together AS SELECT count(country, kind) AS n, count(DISTINCT country, kind) AS d, count(DISTINCT country, price) FILTER (WHERE n > 1) AS f, count(country, 1) AS o, count(country, NULL) AS z FROM (SELECT country, kind, price, count(*) AS n FROM events GROUP BY country, kind, price);
CREATE VIEW counted_together_over AS SELECT country, kind, count(country, kind) OVER (PARTITION BY country) AS n FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind);
CREATE VIEW crossed_on AS SELECT a.country, a.n AS n, b.n AS m FROM (SELECT country, count(*) AS n FROM events GROUP BY country) a CROSS JOIN (SELECT country, count(*) AS n FROM events WHERE kind = 'click' GROUP BY country) b ON a.country = b.country;
CREATE VIEW crossed_using AS SELECT country, a.n AS n, b.n AS m FROM (SELECT country, count(*) AS n FROM events GROUP BY country) a CROSS JOIN (SELECT country, count(*) AS n FROM events WHERE kind = 'click' GROUP BY country) b USING (country);
CREATE VIEW semi_using AS SELECT a.country, a.n FROM (SELECT country, count(*) AS n FROM events GROUP BY country) a LEFT SEMI JOIN (SELECT country, count(*) AS m FROM events WHERE kind = 'click' GROUP BY country) b USING (country);
CREATE VIEW anti_using AS SELECT country, n FROM (SELECT country, count(*) AS n FROM events GROUP BY country) a LEFT ANTI JOIN (SELECT country, count(*) AS m FROM events WHERE kind = 'click' GROUP BY country) b USING (country);
CREATE VIEW listed_by AS SELECT kind, listagg(country, ',') WITHIN GROUP (ORDER BY amount) AS a, listagg(city) WITHIN GROUP (ORDER BY price, ts) AS p, listagg(city, '-') WITHIN GROUP (ORDER BY -user_id) FILTER (WHERE amount > 0) AS f, string_agg(city, ' ') WITHIN GROUP (ORDER BY country, city) AS c, count(*) AS n FROM events GROUP BY kind;
CREATE VIEW listed_by_above AS SELECT listagg(kind, ',') WITHIN GROUP (ORDER BY n) AS k, listagg(kind, ',') WITHIN GROUP (ORDER BY at, n) FILTER (WHERE n > 1) AS f FROM (SELECT kind, max(ts) AS at, count(*) AS n FROM events GROUP BY kind);
CREATE VIEW of_several_lines AS SELECT x, x LIKE 'a_b' AS l, x || country AS c, n FROM (SELECT country, 'a\nb\\ \'' AS x, count(*) AS n FROM events WHERE kind || '\n' <> 'x\n' GROUP BY country, kind || '\n');
CREATE VIEW since_a_day AS SELECT h, n, to_date('2024-03-01') AS d, to_timestamp('2024-01-01 10:00:00.5') AS t FROM (SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM events WHERE ts > to_timestamp('1969-12-31') GROUP BY date_trunc('hour', ts)) WHERE h >= to_timestamp('2024-01-01 10:00:00') AND h < to_date('2024-03-01');
CREATE VIEW in_wider_numbers AS SELECT kind, count(*) AS n FROM events WHERE CAST(user_id AS INT) IN (SELECT count(*) - 50 FROM events GROUP BY country) OR amount IN (SELECT max(price) FROM events GROUP BY kind) GROUP BY kind;
CREATE VIEW in_wider_numbers_above AS SELECT kind, n FROM (SELECT kind, CAST(count(*) AS INT) AS n, max(amount) AS m FROM events GROUP BY kind) WHERE n IN (SELECT count(*) FROM events GROUP BY kind) AND (n, m) IN (SELECT count(*), max(CAST(amount AS DECIMAL(20, 4))) FROM events GROUP BY kind);
CREATE VIEW exists_of_groups AS SELECT country, n FROM (SELECT country, count(*) AS n FROM events GROUP BY country) a WHERE EXISTS (SELECT max(amount) FROM events e WHERE e.country = a.country AND kind = 'click' GROUP BY kind ORDER BY max(amount) LIMIT 1) AND EXISTS (SELECT kind FROM events e WHERE e.country = a.country ORDER BY kafka_offset LIMIT 3);
CREATE VIEW exists_of_few AS SELECT kind, count(*) AS n FROM events WHERE EXISTS (SELECT DISTINCT city FROM events LIMIT 3 OFFSET 2) AND NOT EXISTS (SELECT DISTINCT city FROM events LIMIT 3 OFFSET 3) AND EXISTS (SELECT count(*) FROM events WHERE kind = 'never') AND NOT EXISTS (SELECT count(*) FROM events WHERE kind = 'never' GROUP BY city) GROUP BY kind;
CREATE VIEW ordered_by_asked AS SELECT country, kind, n, (SELECT count(*) FROM by_country_and_kind b WHERE b.n < a.n) AS below FROM by_country_and_kind a ORDER BY below DESC, country, 2 LIMIT 5;
CREATE VIEW ordered_by_asked_place AS SELECT EXISTS (SELECT 1 FROM by_country_and_kind b WHERE b.n < a.n AND b.kind = a.kind) AS some, country, kind FROM by_country_and_kind a ORDER BY 1, country DESC, kind LIMIT 6;
CREATE VIEW ordered_by_asked_and_more AS SELECT DISTINCT country, (SELECT max(n) FROM by_country_and_kind b WHERE b.country = a.country) + 1 AS m FROM by_country_and_kind a ORDER BY m NULLS LAST, country LIMIT 3 OFFSET 1;
CREATE VIEW ordered_by_asked_of_groups AS SELECT country, sum(n) AS s, EXISTS (SELECT 1 FROM events e WHERE e.country = a.country AND e.amount > 240) AS g FROM by_country_and_kind a GROUP BY country ORDER BY 3, sum(n) + 1, country LIMIT 4;
CREATE VIEW ordered_by_asked_key AS SELECT sum(n) AS s, (SELECT max(b.kind) FROM by_country_and_kind b WHERE b.country = a.country) AS k FROM by_country_and_kind a GROUP BY (SELECT max(b.kind) FROM by_country_and_kind b WHERE b.country = a.country) ORDER BY k DESC NULLS LAST, s LIMIT 2;
CREATE VIEW ordered_by_asked_and_computed AS SELECT country, kind, (SELECT count(*) FROM by_country_and_kind b WHERE b.n < a.n) AS below FROM by_country_and_kind a ORDER BY below % 3, length(kind) * below, country, kind LIMIT 7;
CREATE VIEW ordered_by_asked_of_records AS SELECT kind, count(*) AS n FROM (SELECT kind, city, (SELECT max(e.amount) FROM events e WHERE e.city = o.city) AS m FROM events o ORDER BY m DESC NULLS LAST, event_id, kafka_offset LIMIT 50) GROUP BY kind;
CREATE VIEW united_renamed (what, how_many) AS SELECT country, count(*) AS n FROM events GROUP BY country UNION SELECT kind, count(*) FROM events GROUP BY kind ORDER BY n DESC, country LIMIT 3;
CREATE VIEW united_renamed_below AS SELECT what, m FROM (SELECT country, count(*) AS n FROM events GROUP BY country UNION ALL SELECT kind, count(*) FROM events GROUP BY kind ORDER BY 2, 1 LIMIT 4) AS q(what, m);
CREATE VIEW of_null_literals AS SELECT date_add(h, NULL) AS a, next_day(NULL, 'Mon') AS c, upper(NULL) AS d, date_from_unix_date(NULL) AS e, concat_ws(',', NULL, 'b') AS f, n FROM (SELECT to_date(ts) AS h, count(*) AS n FROM events GROUP BY to_date(ts));

CREATE VIEW sets_that_are_measured AS
SELECT
  country,
  size(collect_set(city)) AS cities,
  array_join(sort_array(collect_set(city)), ', ', '?') AS listed,
  concat_ws('|', sort_array(collect_set(city), false)) AS backwards,
  array_contains(collect_set(kind), 'click') AS clicked,
  element_at(sort_array(collect_set(city)), 1) AS first_city,
  array_max(collect_set(user_id)) AS last_user,
  slice(sort_array(collect_set(amount)), 1, 2) AS least_two,
  sort_array(collect_set(amount))[1] AS second
FROM events
GROUP BY country
HAVING size(collect_list(kind)) > 1;

CREATE VIEW fields_of_rows AS SELECT event_id, payload, payload.tags AS tags FROM events WHERE user_id IS NOT NULL;

CREATE VIEW fields_of_rows_counted AS
SELECT payload.user.id AS user_id, coalesce(tags[0], 'none') AS tag, count(*) AS n, max(size(tags)) AS most
FROM fields_of_rows
GROUP BY payload.user.id, coalesce(tags[0], 'none');

CREATE VIEW tags_by_lateral_joins AS
SELECT t.tag, u.at, count(*) AS n
FROM events, LATERAL explode(payload.tags) AS t(tag) LEFT JOIN LATERAL posexplode(payload.tags) AS u(at, same) ON true
GROUP BY t.tag, u.at;

CREATE VIEW tags_of_a_condition AS
SELECT t.tag, count(*) AS n FROM events JOIN LATERAL explode(payload.tags) AS t(tag) ON t.tag <> city GROUP BY t.tag;

CREATE VIEW tags_or_none AS
SELECT t.tag, count(*) AS n FROM events LEFT JOIN LATERAL explode(payload.tags) AS t(tag) ON true
GROUP BY t.tag;

CREATE VIEW last_instants AS
SELECT window_time(w) AS until, n FROM (SELECT window(ts, '10 minutes') AS w, count(*) AS n FROM events GROUP BY ALL);

CREATE VIEW last_instants_of_groups AS
SELECT window.end - INTERVAL 1 MICROSECOND AS until, count(*) AS n
FROM events GROUP BY window(ts, '1 hour', '20 minutes');

CREATE VIEW in_the_order_of_all AS
SELECT country, city, count(*) AS n FROM events GROUP BY country, city ORDER BY ALL DESC LIMIT 5;

CREATE VIEW unions_in_the_order_of_all AS
SELECT country AS place, count(*) AS n FROM events GROUP BY country
UNION ALL
SELECT city, count(*) FROM events GROUP BY city
ORDER BY ALL LIMIT 6;

CREATE VIEW structs_of_groups AS
SELECT
  country,
  named_struct('n', count(*), 'most', max(amount), 'last', max(ts), 'none', max(CASE WHEN user_id = 0 THEN 1 END)) AS facts,
  struct(country AS of, collect_set(kind) AS kinds) AS found,
  map('least', min(amount), 'most', max(amount)) AS ends,
  array(count(*), count(city), 0) AS counts,
  array(min(ts), max(ts))[1] AS until
FROM events
GROUP BY country;

CREATE VIEW fields_of_structs_of_groups AS
SELECT country, facts.n + counts[0] AS twice, found.kinds[0] AS first_kind, ends['most'] AS most, ends.least, until
FROM structs_of_groups
WHERE facts.none IS NULL AND array_contains(counts, 0);

CREATE VIEW places_with_totals AS SELECT country, city, count(*) AS n, sum(amount) AS total FROM events GROUP BY country, city;

CREATE VIEW top_cities_of_a_country AS
SELECT c.country, l.city, l.n
FROM (SELECT country, count(*) AS n FROM events GROUP BY country) AS c,
  LATERAL (SELECT city, n FROM places_with_totals AS p WHERE p.country = c.country ORDER BY n DESC, city LIMIT 2) AS l;

CREATE VIEW top_cities_or_none AS
SELECT c.country, l.place, l.n
FROM (SELECT DISTINCT country FROM events) AS c
LEFT JOIN LATERAL (
  SELECT city, m FROM (SELECT country, city, max(amount) AS m FROM events WHERE kind = 'click' GROUP BY country, city) AS x
  WHERE x.country <=> c.country AND x.m > 1
) AS l (place, n) ON true;

CREATE VIEW sums_beside_rows AS
SELECT p.country, p.city, l.others
FROM places_with_totals AS p
CROSS JOIN LATERAL (
  SELECT sum(n) AS others FROM places_with_totals AS q WHERE q.country = p.country AND q.city <> p.city
) AS l;

CREATE VIEW cities_of_countries_laterally AS
SELECT c.country, l.city, l.n
FROM (SELECT DISTINCT country FROM events) AS c,
  LATERAL (SELECT city, count(*) AS n FROM events AS e WHERE e.country = c.country GROUP BY city) AS l;

CREATE VIEW cities_of_listed_countries AS
SELECT c.x, l.city, l.n FROM (VALUES ('NL'), ('FR')) AS c (x), LATERAL (SELECT city, n FROM places_with_totals WHERE country = c.x) AS l;

CREATE VIEW greatest_amounts_laterally AS
SELECT c.country, l.city, l.amount
FROM (SELECT DISTINCT country FROM events) AS c,
  LATERAL (SELECT city, amount FROM events AS e WHERE e.country = c.country ORDER BY amount DESC LIMIT 3) AS l;

CREATE VIEW aggregates_of_one_text AS
SELECT
  n, max_by('', city) AS a, min_by('x', n) AS b, collect_set('B b') AS c, mode('m') AS e,
  listagg('l', ',') WITHIN GROUP (ORDER BY city) AS f, max('z') AS g, count(DISTINCT 'c') AS h,
  collect_set(2.50) AS j, collect_set(DATE '2024-01-31') AS k, percentile_disc(0.5) WITHIN GROUP (ORDER BY 1.5D) AS l
FROM (SELECT city, kind, count(*) AS n FROM events GROUP BY city, kind)
GROUP BY n;

CREATE VIEW aggregates_of_one_text_of_records AS
SELECT
  city, max_by('', kind) AS a, min_by('x', price) AS b, collect_set('B b') AS c, collect_list('q') AS d, mode('m') AS e,
  listagg('l', ',') AS f, max('z') AS g, count(DISTINCT 'c') AS h, any_value('v') AS i, collect_set(2.50) AS j
FROM events
GROUP BY city;

CREATE VIEW columns_of_lateral_rows AS
SELECT c.country, l.twice, m.place, m.city, m.n
FROM (SELECT country, count(*) AS n FROM events GROUP BY country) AS c,
  LATERAL (SELECT c.n * 2 AS twice) AS l,
  LATERAL (
    SELECT row_number() OVER (ORDER BY k, city) + c.n AS place, city, k + l.twice AS n
    FROM (SELECT city, count(*) AS k FROM events GROUP BY city) WHERE k <> c.n
  ) AS m;

CREATE VIEW amounts_by_kind AS
SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN ('show', 'click' AS clicked, NULL));

CREATE VIEW counts_by_city AS
SELECT p.country, p.a_n, p.big_b_n, p.a_most
FROM (
  SELECT * FROM (SELECT country, city, price FROM events WHERE price < 10) PIVOT (
    count(*) AS n, max(price) AS most FOR city IN ('a', 'B' AS big_b)
  )
) AS p;

CREATE VIEW kinds_of_everything AS
SELECT * FROM (SELECT kind, amount, user_id FROM events) PIVOT (
  count(user_id) AS n, sum(amount) AS total FOR kind IN ('show', 'x', 'never')
);

CREATE VIEW pivots_of_groups AS
SELECT * FROM (SELECT country, city, count(*) AS n FROM events GROUP BY country, city) PIVOT (
  sum(n) FOR city IN ('a', 'B' AS big_b, 'b')
) ORDER BY country LIMIT 4;

CREATE VIEW pivots_by_number AS
SELECT * FROM (SELECT kind, user_id, city FROM events) PIVOT (max(city) FOR user_id IN (1, 2, 3)) WHERE kind IS NOT NULL;

CREATE VIEW numbers_of_events AS
SELECT k, count(*) AS n, sum(v) AS total
FROM (SELECT country, amount, amount * 2 AS twice FROM events) UNPIVOT (v FOR k IN (amount, twice AS `two times`))
GROUP BY k;

CREATE VIEW numbers_of_groups AS
SELECT * FROM (SELECT country, count(*) AS n, count(amount) AS m, max(user_id) AS u FROM events GROUP BY country)
UNPIVOT INCLUDE NULLS (value FOR name IN (n, m, u)) AS t;

CREATE VIEW comparisons_of_comparisons AS
SELECT event_id, kind, city, user_id, amount, (kind IN ('show', 'x')) <> (country IS NULL) AS a, (user_id > 1) = (amount > 1) AS b
FROM events
WHERE (kind IN ('show', 'x')) = (user_id > 1) OR (kind LIKE 'c%') = (city = 'a') OR (kind IS NULL) <=> (city IN ('a'));

CREATE VIEW comparisons_of_comparisons_above AS
SELECT
  event_id, (kind IN ('show', 'x')) <> (city IS NULL) AS a, (user_id > 1) = (amount > 1) AS b, (kind LIKE 'c%') = (city = 'a') AS c,
  (kind IS NULL) <=> (city IN ('a')) AS d, (amount BETWEEN 1 AND 2) = (NOT (city = 'a')) AS e, (user_id <> 1) IN (true, b) AS f
FROM comparisons_of_comparisons
WHERE (a = (user_id > 1)) IS NOT NULL;

CREATE VIEW doubles_beyond_all AS
SELECT
  kind, sum(price) AS total, sum(s) AS s, avg(s) AS a, sum(DISTINCT s) AS d, avg(DISTINCT s) AS e, sum(s) OVER (PARTITION BY kind) AS w
FROM (SELECT kind, city, price * 1e200 AS price, sum(price) AS s FROM events GROUP BY kind, city, price * 1e200)
GROUP BY kind, s;

CREATE VIEW doubles_of_groups_beyond_all AS
SELECT kind, sum(s) AS s, avg(s) AS a, sum(DISTINCT s) AS d, avg(DISTINCT s) AS e, sum(-s) AS minus, avg(s) FILTER (WHERE s < 1e100) AS f
FROM (SELECT kind, city, max(price) AS s FROM events GROUP BY kind, city)
GROUP BY kind;

CREATE VIEW doubles_of_sets_beyond_all AS
SELECT kind, city, sum(price) AS s, avg(price) AS a FROM events WHERE price > 1e300 GROUP BY ROLLUP(kind, city);

CREATE VIEW averages_over_a_window_of_rows AS
SELECT kind, city, s, avg(s) OVER (PARTITION BY kind ORDER BY city) AS a, sum(s) OVER (PARTITION BY kind ORDER BY city) AS b
FROM (SELECT kind, city, max(price) AS s FROM events WHERE price < 1e308 GROUP BY kind, city);

CREATE VIEW constants_are_no_places AS
SELECT country, count(*) AS n, 2 AS tier, 'x' AS word, CAST(NULL AS INT) AS nothing, 1.5 AS half
FROM events GROUP BY country ORDER BY tier, word, nothing, half, country LIMIT 3;

CREATE VIEW texts_that_are_numbers AS
SELECT
  event_id, CAST('3000000000' AS INT) AS a, CAST('-129' AS TINYINT) AS b, CAST('127.9' AS TINYINT) AS c,
  CAST('9223372036854775808' AS BIGINT) AS d, CAST('123.456' AS DECIMAL(4,1)) AS e, CAST('12' AS BIGINT) AS f
FROM events WHERE user_id < CAST('3000000000' AS INT) OR user_id < CAST('3000000000' AS BIGINT);

CREATE VIEW days_beyond_all AS
SELECT
  user_id, date_add(DATE '2024-01-01', CAST(user_id AS INT)) AS a, date_sub(DATE '2024-01-01', CAST(user_id AS INT)) AS b,
  add_months(DATE '2024-01-31', CAST(user_id AS INT)) AS c, add_months(DATE '2024-01-31', -24276) AS d,
  date_add(DATE '9999-12-30', 1) AS f
FROM (SELECT user_id, count(*) AS n FROM events GROUP BY user_id);

CREATE VIEW texts_inside_by_bytes AS
SELECT s.name AS name, s.name < 'a' AS small, 'c' > s.name AS also
FROM (SELECT struct(kind AS name) AS s FROM events GROUP BY kind) AS q
WHERE s.name > 'B' ORDER BY s.name DESC LIMIT 5;

CREATE VIEW windows_over_outputs AS
SELECT
  country, count(*) AS n, n * 2 AS m, m + n AS o, rank() OVER (ORDER BY n DESC) AS r, sum(m) OVER () AS t,
  sum(o) OVER (PARTITION BY m ORDER BY n, country) AS u, n / sum(n) OVER () AS share
FROM events
GROUP BY country;

CREATE VIEW windows_over_outputs_of_records AS
SELECT event_id, user_id % 2 AS odd, odd + 1 AS more, row_number() OVER (PARTITION BY odd ORDER BY event_id, ts) AS r, sum(more) OVER (PARTITION BY country) AS s
FROM events WHERE event_id < 'e3';

CREATE VIEW united_by_what_is_computed AS
SELECT kind AS k, count(*) AS n FROM events GROUP BY kind UNION ALL SELECT country, count(*) FROM events GROUP BY country
ORDER BY -n, upper(k) DESC LIMIT 4;

CREATE VIEW united_once_by_what_is_computed AS
SELECT country, n FROM (
  SELECT kind AS country, count(*) % 7 AS n FROM events GROUP BY kind
  UNION SELECT country, count(*) % 7 FROM events GROUP BY country
  ORDER BY n * -1 LIMIT 3 OFFSET 1)
WHERE n IS NOT NULL;

CREATE VIEW named_as_the_database_does AS
SELECT xmin AS lowest, max(ctid) AS c FROM (SELECT country AS xmin, city AS ctid FROM events) GROUP BY xmin;

CREATE VIEW one_row_of_a_cte AS
WITH t AS (SELECT count(*) AS total, avg(amount) AS mean FROM events)
SELECT country, count(*) AS n, count(*) * 100.0 / (SELECT total FROM t) AS share
FROM events
GROUP BY country
HAVING min(amount) < (SELECT mean FROM t WHERE total > 1) OR count(*) > (SELECT total FROM t WHERE total < 0);

CREATE VIEW one_row_of_a_group AS
SELECT country, n, n / (SELECT n FROM by_country_and_kind WHERE country = 'NL' AND kind = 'click') AS of_clicks, (SELECT n FROM by_country_and_kind WHERE country = 'XX' AND kind = 'show') AS none
FROM by_country_and_kind;

CREATE VIEW days_of_a_calendar AS
SELECT d.day, coalesce(n, 0) AS n, sum(n) OVER (ORDER BY d.day ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two_days
FROM (SELECT explode(sequence(DATE '2023-12-31', DATE '2024-01-03')) AS day) AS d
LEFT JOIN (SELECT to_date(ts) AS day, count(*) AS n FROM events GROUP BY to_date(ts)) AS e ON d.day = e.day;

CREATE VIEW months_of_a_calendar AS
WITH months AS (SELECT explode(sequence(to_date('2023-10-31'), to_date('2024-05-01'), INTERVAL 1 MONTH)) AS month)
SELECT month, n, lag(month) OVER (ORDER BY month) AS before
FROM months
LEFT JOIN (SELECT last_day(to_date(ts)) AS until, count(*) AS n FROM events GROUP BY last_day(to_date(ts))) ON until = month;

CREATE VIEW hours_of_a_day AS
SELECT t.hour, n FROM explode(sequence(TIMESTAMP '2024-01-01 09:00:00', TIMESTAMP '2024-01-01 12:30:00', INTERVAL 30 MINUTES)) AS t(hour)
LEFT JOIN (SELECT date_trunc('hour', ts) AS h, count(*) AS n FROM events GROUP BY date_trunc('hour', ts)) ON h = t.hour;

CREATE VIEW hours_by_number AS
SELECT r.id AS hour, n, q.id FROM range(24) AS r LEFT JOIN (SELECT hour(ts) AS h, count(*) AS n FROM events GROUP BY hour(ts)) ON h = r.id CROSS JOIN range(5, 0, -2) AS q;

CREATE VIEW counted_downwards AS
SELECT n, count(*) AS events FROM events JOIN (SELECT explode(sequence(3, 1)) AS n) AS s ON user_id >= n GROUP BY n;

CREATE VIEW visits_by_lag AS
WITH gaps AS (SELECT *, lag(ts) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM events),
  visits AS (
    SELECT *, sum(CASE WHEN before IS NULL OR ts > before + INTERVAL 30 MINUTES THEN 1 ELSE 0 END)
      OVER (PARTITION BY user_id ORDER BY ts ROWS UNBOUNDED PRECEDING) AS visit
    FROM gaps
  )
SELECT user_id, visit, min(ts) AS begun, max(ts) AS ended, count(*) AS n, count(before) AS m FROM visits GROUP BY user_id, visit;

CREATE VIEW changes_of_kind AS
SELECT user_id, kind, ts AS since, lead(ts) OVER (PARTITION BY user_id ORDER BY ts DESC) AS next, row_number() OVER (PARTITION BY user_id ORDER BY ts DESC) AS r
FROM (SELECT user_id, kind, ts, lag(kind) OVER (PARTITION BY user_id ORDER BY ts DESC) AS before FROM events)
WHERE before IS NULL OR before <> kind;

CREATE VIEW first_changes AS
WITH a AS (SELECT user_id, city, ts, row_number() OVER (PARTITION BY user_id ORDER BY ts) AS r FROM events WHERE price IS NOT NULL),
  b AS (SELECT *, lag(city) OVER (PARTITION BY user_id ORDER BY ts) AS before FROM a WHERE r % 2 = 0)
SELECT user_id, city, before, r FROM b QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY ts) <= 3;

CREATE VIEW steps_of_a_funnel AS
SELECT step, users, round(users / first_value(users) OVER (ORDER BY step) * 100, 1) AS share, lag(users) OVER (ORDER BY step) - users AS lost
FROM (
  SELECT 1 AS step, count(DISTINCT user_id) AS users FROM events WHERE kind = 'show'
  UNION ALL SELECT 2, count(DISTINCT user_id) FROM events WHERE kind = 'click'
  UNION ALL SELECT 3, count(DISTINCT user_id) FROM events WHERE kind = 'x' AND user_id > 2
);

CREATE VIEW united_and_numbered AS
SELECT what, which, row_number() OVER (PARTITION BY what ORDER BY n DESC) AS r, lag(n) OVER (ORDER BY n) AS before
FROM (
  SELECT 'country' AS what, country AS which, count(*) AS n FROM events GROUP BY country
  UNION ALL SELECT 'city', city, count(*) FROM events GROUP BY city
);

CREATE VIEW tried_casts AS
SELECT
  kind, sum(try_cast(city || '.5' AS INT)) AS a, max(try_cast(concat(user_id, '.5') AS BIGINT)) AS b, max(try_cast(user_id AS SMALLINT)) AS c,
  min(try_cast(amount AS TINYINT)) AS d, max(try_cast(price AS INT)) AS e, max(try_cast(concat(user_id, '') AS INT)) AS f,
  count(try_cast(price AS BIGINT)) AS g, try_cast(sum(amount) AS INT) AS h, try_cast(max(user_id) AS SMALLINT) AS i,
  try_cast(sum(amount) AS TINYINT) AS j, try_cast(max(ts) AS DATE) AS k, try_cast(count(*) AS STRING) AS l
FROM events
GROUP BY kind;

CREATE VIEW stacked_columns AS
SELECT what, sum(value) AS total, count(*) AS n
FROM (SELECT kind, stack(3, 'amount', amount, 'user', CAST(user_id AS DECIMAL(10,2)), 'none', NULL) AS (what, value) FROM events WHERE user_id < 10)
GROUP BY what;

CREATE VIEW stacked_laterally AS
SELECT s.what, kind, max(s.value) AS most FROM events LATERAL VIEW stack(2, 'price', price, 'length', double(length(city))) s AS what, value GROUP BY s.what, kind;

CREATE VIEW stacked_rows AS
SELECT event_id, stack(2, kind, user_id, NULL, 7L) FROM events WHERE user_id = 1;

CREATE VIEW fields_of_elements AS
SELECT event_id, inline(array(named_struct('a', kind, 'b', user_id), named_struct('a', city, 'b', 7L), if(user_id = 1, named_struct('a', country, 'b', 0L), NULL))) FROM events;

CREATE VIEW fields_of_inlined_structs AS
SELECT word, sum(number) AS n
FROM events LATERAL VIEW inline(array(struct(kind AS a, user_id AS b), struct(city AS a, 7L AS b))) t AS word, number
WHERE number IS NOT NULL
GROUP BY word;

CREATE VIEW fields_or_none AS
SELECT event_id, x, y FROM events LATERAL VIEW OUTER inline(transform(payload.tags, t -> struct(t AS a, kind AS b))) q AS x, y;

CREATE VIEW places_of_tags AS
SELECT event_id, posexplode_outer(payload.tags) AS (place, tag) FROM events;

CREATE VIEW places_of_tags_counted AS
SELECT pos, col, count(*) AS n FROM (SELECT posexplode(payload.tags) FROM events) GROUP BY pos, col;

CREATE VIEW letters_unnamed AS
SELECT col, count(*) AS n FROM (SELECT explode(split(kind, '')) FROM events) GROUP BY col;

CREATE VIEW shifted_bits AS
SELECT
  event_id, (user_id >> 2) & 255 AS a, CAST(user_id AS INT) << 3 AS b, user_id >> 1 + 1 AS c, -user_id << 40 AS d, user_id >> 62 >> 1 AS e,
  CAST(user_id AS SMALLINT) >> 1 AS f, user_id << 1 & 7 AS g
FROM events;

CREATE VIEW shifted_bits_above AS
SELECT kind, max(user_id) >> 3 AS a, (count(*) << 2) | 1 AS b, sum(user_id) << 60 >> 60 AS c FROM events GROUP BY kind;

CREATE VIEW buckets_of_groups AS
SELECT
  kind, country, width_bucket(most, 0, 10, 5) AS a, width_bucket(most, 2.5, -1, 3) AS b, width_bucket(total, -5, 100000000.5, 7) AS c,
  width_bucket(n, 0, 20, 4) AS d, width_bucket(1.5, least, most, 3) AS e, width_bucket(most, -1e308, 1.7e308, 9) AS f, width_bucket(most, 1, 1, 2) AS g,
  width_bucket(most, 0, 1e-310, 4) AS h
FROM (SELECT kind, country, max(price) AS most, min(price) AS least, sum(amount) AS total, count(*) AS n FROM events GROUP BY kind, country);

CREATE VIEW small_casts_of_groups AS
SELECT
  country, CAST(avg(price) AS SMALLINT) AS a, CAST(max(price) AS TINYINT) AS b, CAST(avg(amount) AS SMALLINT) AS c, CAST(sum(amount) AS TINYINT) AS d,
  percentile_approx(CAST(user_id AS SMALLINT), 0.5) AS e, percentile_approx(CAST(amount AS TINYINT), array(0.1, 0.9)) AS f
FROM events GROUP BY country;

CREATE VIEW most_of_two_sides AS
SELECT what, n, lag(n) OVER (ORDER BY n DESC) AS before
FROM (
  SELECT 'country' AS what, country AS which, count(*) AS n FROM events GROUP BY country
  UNION ALL SELECT 'city', city, count(*) FROM events GROUP BY city
  ORDER BY n DESC, which, what LIMIT 4
);

CREATE VIEW all_but AS
SELECT country, n FROM (
  SELECT country, 1 AS n FROM events EXCEPT ALL SELECT country, 1 FROM events WHERE kind = 'show'
  INTERSECT ALL SELECT country, 1 FROM events
);

CREATE VIEW visits_and_their_ends AS
SELECT user_id, visit, count(*) AS n, max_by(kind, ts) AS last_kind, min_by(city, ts) AS first_city, any_value(country) AS some, mode(city) AS usual
FROM (
  SELECT *, sum(begins) OVER (PARTITION BY user_id ORDER BY ts ROWS UNBOUNDED PRECEDING) AS visit
  FROM (SELECT *, CASE WHEN ts - INTERVAL 30 MINUTES > lag(ts) OVER (PARTITION BY user_id ORDER BY ts) THEN 1 ELSE 0 END AS begins FROM events)
)
GROUP BY user_id, visit;

CREATE VIEW kinds_of_the_last_ten AS
SELECT count(DISTINCT kind) AS n, max_by(kind, event_id) AS last_kind, median(price) AS m FROM (SELECT kind, event_id, price FROM events ORDER BY ts DESC LIMIT 10);

CREATE VIEW nulls_respected AS
SELECT country, last(kind) RESPECT NULLS AS a, first(price) IGNORE NULLS AS b, count(*) AS n FROM events GROUP BY country;

CREATE VIEW months_apart AS
SELECT
  event_id, timestampdiff(MONTH, ts, TIMESTAMP '2024-03-31 10:20:30') AS a, timestampdiff(YEAR, TIMESTAMP '2030-02-28 11:00:00', ts) AS b,
  datediff(QUARTER, DATE '2019-12-31', ts) AS c, timestampdiff(MONTH, date_add(DATE '2024-01-31', CAST(user_id AS INT) % 70), ts) AS d
FROM events;

CREATE VIEW months_apart_above AS
SELECT
  country, city, timestampdiff(MONTH, min(ts), max(ts)) AS a, timestampdiff(MONTH, max(ts), min(ts)) AS b, datediff(YEAR, max(ts), DATE '2031-03-10') AS c,
  timestampdiff(QUARTER, max(ts), TIMESTAMP '2024-04-10 07:29:59') AS d, timestampdiff(MONTH, DATE '2024-01-31', last_day(to_date(max(ts)))) AS e,
  timestampdiff(MONTH, min(ts) + INTERVAL 31 DAYS, max(ts) - INTERVAL 1 SECOND) AS f, timestampdiff(MONTH, max(ts), TIMESTAMP '1960-02-29 23:59:59') AS g
FROM events GROUP BY country, city;

CREATE VIEW gaps_between_firsts AS
SELECT user_id, ts, lag(ts) OVER (PARTITION BY country ORDER BY ts) AS before, count(*) OVER (ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n
FROM (SELECT user_id, country, ts FROM events WHERE amount > 0 QUALIFY row_number() OVER (PARTITION BY user_id, kind ORDER BY ts) = 1);

CREATE VIEW columns_in_parentheses AS SELECT DISTINCT(country), (city) FROM events;
CREATE VIEW columns_in_more_parentheses AS SELECT ((country)), (count(*)) FROM events GROUP BY (country);

CREATE VIEW qualified_sums AS
SELECT event_id, user_id % 3 + 1 AS q, country = 'NL' OR kind = 'show' AS seen FROM events
QUALIFY q * 2 > 3 AND seen = (city = 'a') AND row_number() OVER (PARTITION BY q ORDER BY event_id) < 50;

CREATE VIEW clocks_elsewhere AS
SELECT
  event_id, ts AT TIME ZONE 'America/New_York' AS there, hour(ts AT TIME ZONE 'Asia/Kolkata') AS h,
  date_trunc('day', ts AT TIME ZONE 'America/New_York') AS d, CAST(ts AT TIME ZONE 'Asia/Tokyo' AS DATE) AS day,
  date_format(ts AT TIME ZONE 'Asia/Tokyo', 'yyyy-MM-dd HH:mm') AS shown, ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Paris' AS meant
FROM events;

CREATE VIEW days_elsewhere AS
SELECT CAST(ts AT TIME ZONE 'America/New_York' AS DATE) AS day, min(ts AT TIME ZONE 'Asia/Tokyo') AS first, count(*) AS n,
  max(date_format(ts AT TIME ZONE 'America/New_York', 'E d')) AS shown
FROM events GROUP BY CAST(ts AT TIME ZONE 'America/New_York' AS DATE);

CREATE VIEW printed AS
SELECT
  event_id, printf('%05d|%-9s|%s', user_id, kind, country) AS a, format_string('%.2f %+e %% %,d %x', price, price, user_id, user_id) AS b,
  try_to_timestamp(concat('2024-01-0', user_id % 10), 'yyyy-MM-dd') AS c,
  zip_with(payload.tags, array(country, kind, 'x'), (a, b) -> coalesce(a, '-') || coalesce(b, '+')) AS d
FROM events;

CREATE VIEW different_where_it_matters_not AS
SELECT country, approx_count_distinct(DISTINCT user_id) AS a, approx_count_distinct(DISTINCT city, 0.1) AS b, any_value(DISTINCT kind) AS c, last(DISTINCT city) AS d
FROM events GROUP BY country;

CREATE VIEW texts_compared AS
SELECT
  event_id, t = 12 AS a, t > 2.5 AS b, t < 10L AS c, t <=> 3 AS d, t = true AS e, t <> false AS f, t >= DATE '2023-12-31' AS g,
  t < ts AS h, t BETWEEN 1 AND 15.5 AS i, t IN (12, 0.50, 3) AS j, t + 1 AS k, -t AS l, t * amount AS m, t = price AS n, user_id IN ('1', '2', '03') AS o,
  user_id = ' 1.9' AS p, amount > '1' AS q, price < 'x' AS r, ts IN ('2024-01-01 10:20:30', '2024-01-01') AS s, CAST(ts AS DATE) IN ('2024-01-01') AS u,
  CAST(ts AS DATE) < '2024-01-01 10:00:00' AS v, coalesce(user_id, 'none') AS w, CASE WHEN price > 1 THEN amount ELSE t END AS x,
  coalesce(ts, '2024-01-01') AS y, (user_id > 1) = 1 AS z, (user_id > 1) <> amount AS aa, nullif(t, 3) AS bb, CASE t WHEN 12 THEN 'twelve' WHEN 3 THEN 'three' END AS cc,
  array(t, 1, price) AS dd, t % 5 AS ee, if(price > 1, ts, t) AS ff
FROM (
  SELECT *, get(array(
    ' 12.9', '-0', '.', '+', '1e3', '0x1p3', 'inf', 'NaN', '٣', '99999999999', 'true', ' Yes\t', 'n', '2024-01-01', '2024-1-1 10:00', '1.5d', '', '0.50', '3', '-2147483649', '9223372036854775808', '5.', '1 2'
  ), CAST(substring(event_id, 2) AS INT) % 23) AS t
  FROM events
);

CREATE VIEW texts_compared_above AS
SELECT
  t, n, t = 12 AS a, t < 10L AS c, t <=> 3 AS d, t = true AS e, t <> false AS f, t BETWEEN 1 AND 15 AS i, t IN (12, 0.50, 3) AS j, n IN ('1', '02', '11') AS k,
  CAST(t AS TINYINT) AS l, CAST(t AS SMALLINT) AS m, CAST(t AS INT) AS o, CAST(t AS BIGINT) AS p, CAST(t AS BOOLEAN) AS q, n = '10' AS r, until IN ('2024-03-10', '2024-03-10 07:30:00') AS s,
  coalesce(least, t) AS u, CASE WHEN n > 10 THEN until ELSE t END AS v, (n > 10) = 1 AS w, coalesce(CAST(until AS DATE), 'none') AS x, 2 < t AS y, day < '2024-03-10 23:00:00' AS z
FROM (
  SELECT t, count(*) AS n, max(ts) AS until, min(amount) AS least, CAST(max(ts) AS DATE) AS day
  FROM (
    SELECT *, get(array(
      ' 12.9', '-0', '.', '+', '1e3', '0x1p3', 'inf', 'NaN', '٣', '99999999999', 'true', ' Yes\t', 'n', '2024-01-01', '2024-1-1 10:00', '1.5d', '', '0.50', '3', '-2147483649', '9223372036854775808', '5.', '1 2'
    ), CAST(substring(event_id, 2) AS INT) % 23) AS t
    FROM events
  )
  GROUP BY t
);

CREATE VIEW sums_of_texts AS
SELECT kind, sum(substring(event_id, 2)) AS s, avg(substring(event_id, 2)) AS a, stddev(substring(event_id, 2)) AS d, median(substring(event_id, 2)) AS m, sum(country) AS n
FROM events WHERE substring(event_id, 2) > 7 GROUP BY kind;

CREATE VIEW texts_united AS
SELECT what, count(*) AS n FROM (SELECT kind AS what FROM events UNION ALL SELECT user_id FROM events UNION ALL SELECT price FROM events) GROUP BY what;

CREATE VIEW texts_united_once AS
SELECT kind AS what FROM events UNION SELECT user_id FROM events UNION SELECT count(*) FROM events GROUP BY kind;

CREATE VIEW joined_by_text AS
SELECT a.t, b.n FROM (SELECT substring(event_id, 2) AS t, count(*) AS m FROM events GROUP BY 1) a JOIN (SELECT user_id, count(*) AS n FROM events GROUP BY user_id) b ON CAST(a.t AS BIGINT) = b.user_id;

CREATE VIEW greatest_structs AS
SELECT
  country, max(struct(ts, kind)) AS a, min(struct(amount, city, event_id)) AS b, max(struct(price, user_id, event_id)).event_id AS c,
  max(named_struct('k', kind, 'u', payload.user.id)) FILTER (WHERE price > 1) AS d, max(payload.user) AS e, min(struct(ts, payload.user AS u, amount)).u AS f,
  max(struct(ts, kind)).ts AS g, min(struct(user_id > 1, CAST(ts AS DATE) AS day)) AS h
FROM events GROUP BY country;

CREATE VIEW structs_by AS
SELECT
  kind, max_by(struct(city, amount), ts) AS a, min_by(struct(price, event_id AS e), price) AS b, max_by(event_id, struct(amount, price)) AS c,
  max_by(payload.user, user_id) AS d, max_by(struct(city), ts) FILTER (WHERE user_id > 2).city AS e, last(named_struct('e', event_id, 't', ts)) AS f,
  first(struct(kind, price)) AS g, first(payload.user, true) AS h, last_value(payload.user) IGNORE NULLS AS i, any_value(struct(city, user_id)).city AS j,
  min_by(struct(struct(ts AS t, kind AS k) AS s, city AS c), event_id).s.t AS l
FROM events GROUP BY kind;

CREATE VIEW structs_of_all AS
SELECT max(struct(ts, kind)) AS a, last(struct(event_id)) AS b, max(struct(ts, event_id)).event_id AS c, collect_list(struct(kind)) AS d FROM events WHERE city = 'nowhere';

CREATE VIEW structs_of_all_again AS
SELECT max(struct(ts, kind)) AS a, last(struct(event_id)) AS b, collect_set(struct(kind, city)) AS d FROM events WHERE city = 'a' HAVING max(struct(ts, kind)).kind IS NOT NULL;

CREATE VIEW structs_of_places AS
SELECT country, city, max(struct(amount, event_id)) AS m, last(struct(kind, price)).price AS l, collect_set(struct(kind)) AS s FROM events GROUP BY CUBE(country, city);

CREATE VIEW structs_of_windows AS
SELECT window.start AS s, max(struct(amount, event_id)).event_id AS m, collect_list(struct(event_id, kind)) AS l FROM events GROUP BY window(ts, '2 hours', '1 hour');

CREATE VIEW structs_of_sessions AS
SELECT session_window.start AS s, user_id, min(struct(amount, event_id)) AS m, collect_list(struct(event_id, kind)) AS l FROM events GROUP BY session_window(ts, '1 hour'), user_id;

CREATE VIEW structs_of_views AS
SELECT
  country, max(struct(n, city)) AS a, max(struct(n, city)).city AS b, max_by(struct(city, m), n) AS c, min(struct(m, city)).m AS d, any_value(struct(city, n)) AS e,
  sort_array(collect_list(struct(n, city, m))) AS f, max_by(city, struct(m, n)) AS g, min(s) AS h
FROM (SELECT country, city, count(*) AS n, max(amount) AS m, max(struct(kind, ts)) AS s FROM events GROUP BY country, city) GROUP BY country;

CREATE VIEW listed_structs AS
SELECT
  country, collect_list(struct(ts, kind)) AS a, collect_set(struct(kind, city)) AS b, sort_array(collect_list(struct(ts, event_id))) AS c,
  sort_array(collect_list(named_struct('a', amount, 'e', event_id)), false) AS d, array_agg(struct(kind, amount)) FILTER (WHERE price > 1) AS e,
  collect_set(struct(user_id, kind)) FILTER (WHERE city = 'a') AS f, collect_list(payload.user) AS g, collect_set(payload.user) AS h,
  sort_array(collect_set(struct(kind, city)), false) AS i, size(collect_set(struct(kind, city))) AS j, collect_list(struct(ts, kind))[0].kind AS k,
  sort_array(collect_list(struct(ts, event_id)))[1].event_id AS l, element_at(sort_array(collect_list(struct(ts, event_id))), -1) AS m,
  element_at(sort_array(collect_list(struct(ts, event_id))), 1).ts AS o, slice(sort_array(collect_list(struct(amount, event_id)), false), 1, 3) AS p,
  array_sort(collect_list(struct(price, event_id))) AS q, reverse(sort_array(collect_list(struct(event_id)))) AS r
FROM events GROUP BY country;

CREATE VIEW listed_structs_q AS
SELECT country, array_sort(collect_list(struct(price, event_id))) AS q, max(struct(price, amount)) AS p FROM events GROUP BY country;

CREATE VIEW paths AS
SELECT user_id, transform(sort_array(collect_list(struct(ts, event_id, kind))), s -> s.kind) AS path FROM events GROUP BY user_id;

CREATE VIEW texts_beside_structs AS
SELECT kind, collect_list(struct(repeat(city, 900) AS long, user_id)) AS l, count(DISTINCT city) AS n, max(struct(repeat(city, 1500) AS long, user_id)).long AS m FROM events WHERE user_id < 4 AND amount > 2 GROUP BY kind;

CREATE VIEW structs_having AS
SELECT kind, max(struct(amount, event_id)).event_id AS e, max(struct(amount, event_id)).amount AS a FROM events GROUP BY kind HAVING max(struct(amount, event_id)).amount > 1 ORDER BY max(struct(amount, event_id)).event_id DESC LIMIT 3;

CREATE VIEW structs_in_cases AS
SELECT kind, max(CASE WHEN user_id > 1 THEN struct(ts, event_id) END).event_id AS e, max(if(user_id > 1, struct(ts, event_id), NULL)).event_id AS f, max_by(CASE WHEN user_id > 1 THEN struct(event_id) END, ts) AS g,
  max_by(event_id, CASE WHEN user_id > 1 THEN struct(ts, amount) END) AS h, collect_list(CASE WHEN user_id > 1 THEN struct(event_id) END) AS i
FROM events GROUP BY kind;

CREATE VIEW structs_windows_over AS
SELECT kind, last_row.e AS e, row_number() OVER (ORDER BY last_row.t, kind) AS r FROM (SELECT kind, max(struct(ts AS t, event_id AS e)) AS last_row FROM events GROUP BY kind);

CREATE VIEW lengths_of_records AS
SELECT
  event_id, ts - TIMESTAMP '2024-01-01 00:30:00' > INTERVAL 1 HOUR AS a, CAST(ts - TIMESTAMP '2024-01-01 11:30:00.25' AS BIGINT) AS b, CAST(d - DATE '2024-01-05' AS INT) AS c,
  extract(DAY FROM ts - TIMESTAMP '2024-02-02 11:31:12.25') AS e, extract(HOUR FROM ts - TIMESTAMP '2024-02-02 11:31:12.25') AS f, extract(MINUTE FROM ts - TIMESTAMP '2024-02-02 11:31:12.25') AS g,
  extract(SECOND FROM ts - TIMESTAMP '2024-02-02 11:31:12.25') AS h, date_part('day', d - DATE '2024-02-02') AS i, CAST((ts - d) * 3 AS DECIMAL(20, 6)) AS j, CAST((ts - d) / 7 AS DECIMAL(20, 6)) AS k,
  (ts - d) BETWEEN INTERVAL 1 HOUR AND INTERVAL 630 MINUTES AS l, (ts - d) IN (INTERVAL 2 HOURS, INTERVAL 37230 SECONDS) AS m, (ts - d) IS NULL AS n, d - DATE '2024-01-01' = INTERVAL 0 DAYS AS o,
  coalesce(ts - d, INTERVAL 1 DAY) < INTERVAL 20 HOURS AS p, CASE WHEN user_id > 1 THEN ts - d ELSE INTERVAL 5 HOURS END >= INTERVAL 10 HOURS AS q, CAST(greatest(ts - d, INTERVAL 12 HOURS) AS BIGINT) AS r,
  -(ts - d) < INTERVAL -10 HOURS AS s, (ts - d) + INTERVAL 1 HOUR > (d - DATE '2023-12-31') AS t, CAST('2024-01-05' - d AS BIGINT) AS u, CAST(d - ts AS BIGINT) AS v, CAST(CAST(ts AS TIMESTAMP_NTZ) - ts AS BIGINT) AS w,
  CAST(d - DATE '2024-01-05' AS DECIMAL(10, 2)) AS x, nullif(ts - d, INTERVAL 37230 SECONDS) IS NULL AS y
FROM (SELECT event_id, ts, CAST(ts AS DATE) AS d, user_id FROM events);

CREATE VIEW lengths_of_groups AS
SELECT
  country, CAST(max(ts) - min(ts) AS BIGINT) AS a, extract(DAY FROM max(ts) - min(ts)) AS b, max(ts) - min(ts) > INTERVAL 100 DAYS AS c, CAST((max(ts) - min(ts)) / count(ts) AS DECIMAL(20, 6)) AS d,
  CAST(sum(ts - TIMESTAMP '2024-01-01 00:00:00') AS BIGINT) AS e, CAST(avg(ts - TIMESTAMP '2024-01-01 00:00:00') AS DECIMAL(20, 6)) AS f, CAST(max(ts - TIMESTAMP '2024-01-01 00:00:00') AS INT) AS g,
  CAST(min(CAST(ts AS DATE) - DATE '2024-02-02') AS INT) AS h, CAST(avg(CAST(ts AS DATE) - DATE '2024-02-02') AS BIGINT) AS i, CAST(sum(CAST(ts AS DATE) - DATE '2024-02-02') FILTER (WHERE user_id > 1) AS BIGINT) AS j,
  CAST(median(ts - TIMESTAMP '2024-01-01 00:00:00') AS DECIMAL(20, 6)) AS k, CAST(percentile(ts - TIMESTAMP '2024-01-01 00:00:00', 0.3) AS BIGINT) AS l, count(ts - TIMESTAMP '2024-01-01 00:00:00') AS m,
  max_by(event_id, ts - TIMESTAMP '2024-01-01 00:00:00') AS n, count(DISTINCT ts - TIMESTAMP '2024-01-01 00:00:00') AS o, extract(SECOND FROM max(ts) - min(ts)) AS p, datediff(max(ts), min(ts)) AS q,
  CAST(CAST(max(ts) AS DATE) - CAST(min(ts) AS DATE) AS INT) AS r, CAST(last(ts - TIMESTAMP '2024-01-01 00:00:00') AS BIGINT) AS s, avg(CAST(ts - TIMESTAMP '2024-01-01 00:00:00' AS BIGINT)) AS t,
  CAST(mode(CAST(ts AS DATE) - DATE '2024-02-02') AS INT) AS u
FROM events GROUP BY country HAVING max(ts) - min(ts) > INTERVAL 1 MINUTE;

CREATE VIEW lengths_between_events AS
SELECT user_id, count(*) AS n, CAST(avg(gap) AS DECIMAL(20, 6)) AS mean, CAST(max(gap) AS BIGINT) AS longest, count_if(gap > INTERVAL 30 MINUTES) AS breaks, extract(HOUR FROM min(gap)) AS hours
FROM (SELECT user_id, ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts, event_id) AS gap FROM events) GROUP BY user_id;

CREATE VIEW lengths_passed_on AS
WITH gaps AS (SELECT event_id, ts - TIMESTAMP '2024-01-01 00:00:00' AS gap, CAST(ts AS DATE) - DATE '2024-01-01' AS days FROM events WHERE ts IS NOT NULL)
SELECT event_id, CAST(lag(gap) OVER (ORDER BY gap, event_id) AS BIGINT) AS before, gap > INTERVAL 1 DAY AS long, CAST(days AS INT) AS days, rank() OVER (ORDER BY days) AS r FROM gaps ORDER BY gap, event_id LIMIT 50;

CREATE VIEW lengths_of_views AS
SELECT CAST(avg(l) AS BIGINT) AS mean, CAST(sum(l) AS BIGINT) AS total, max(l) > INTERVAL 10 DAYS AS long, CAST(median(l) AS BIGINT) AS m, CAST(max(d) AS INT) AS d
FROM (SELECT country, max(ts) - min(ts) AS l, CAST(max(ts) AS DATE) - CAST(min(ts) AS DATE) AS d FROM events GROUP BY country) WHERE l IS NOT NULL;

CREATE VIEW lengths_joined AS
SELECT a.country, b.country AS other FROM (SELECT country, min(ts) AS t FROM events GROUP BY country) a JOIN (SELECT country, max(ts) AS t FROM events WHERE city = 'a' GROUP BY country) b ON b.t - a.t > INTERVAL 2 DAYS;

CREATE VIEW lengths_grouped AS
SELECT extract(DAY FROM ts - TIMESTAMP '2024-01-01 00:00:00') AS day, count(*) AS n FROM events GROUP BY extract(DAY FROM ts - TIMESTAMP '2024-01-01 00:00:00');

CREATE VIEW sorted_lists_above AS
SELECT country, sort_array(collect_list(n)) AS a, sort_array(collect_list(city), false) AS b, array_sort(collect_list(m) FILTER (WHERE n > 3)) AS c, sort_array(array_agg(t)) AS d FROM (SELECT country, city, count(*) AS n, max(amount) AS m, max(ts) AS t FROM events GROUP BY country, city) GROUP BY country;

CREATE VIEW pairs AS
SELECT country, kind, count(*) AS n, collect_set(city) AS cities, collect_list(amount) AS amounts, collect_set(CAST(ts AS DATE)) AS days,
       min(CAST(ts AS DATE)) AS first_day, max(CAST(ts AS DATE)) AS last_day
FROM events GROUP BY country, kind;

CREATE VIEW exploded_groups AS
SELECT p.country, p.kind, c.city, c.place, a.amount, d.day, m.what, m.number
FROM pairs p
LATERAL VIEW OUTER posexplode(p.cities) c AS place, city
LATERAL VIEW OUTER explode(slice(p.amounts, 1, 2)) a AS amount
LATERAL VIEW OUTER explode(p.days) d AS day
LATERAL VIEW stack(2, 'n', p.n, 'none', NULL) m AS what, number
WHERE p.n > 10;

CREATE VIEW exploded_counts AS
SELECT letter, i, count(*) AS times, max(n) AS most
FROM (SELECT kind, sum(n) AS n FROM pairs GROUP BY kind) LATERAL VIEW OUTER explode(split(kind, '')) t AS letter
LATERAL VIEW explode(map('one', 1, 'two', length(letter))) u AS i, v
GROUP BY letter, i;

CREATE VIEW exploded_joins AS
SELECT p.country, t.kind, q.n, array_join(split(q.kind, 'l'), '-') AS parts
FROM (SELECT country, collect_set(kind) AS kinds FROM events GROUP BY country) p
CROSS JOIN LATERAL explode(p.kinds) AS t(kind) LEFT JOIN pairs q ON q.country <=> p.country AND q.kind = t.kind;

CREATE VIEW days_between AS
SELECT country, day, place FROM (SELECT country, min(first_day) AS a, max(last_day) AS z FROM pairs WHERE first_day > DATE '2000-01-01' GROUP BY country)
LATERAL VIEW posexplode(sequence(z, a)) t AS place, day
UNION ALL
SELECT country, explode(sequence(a, z, INTERVAL 2 WEEKS)), -1
FROM (SELECT country, min(first_day) AS a, max(last_day) AS z FROM pairs WHERE first_day > DATE '2000-01-01' GROUP BY country);

CREATE VIEW renamed_relations AS
WITH w(k, t) AS (SELECT kind, sum(n) FROM pairs GROUP BY kind)
SELECT x.a, x.b, y.t, z.c, v.code
FROM u2 AS x(a, b, c) JOIN w AS y(k, t) ON x.b > y.t - 60 JOIN (SELECT country, n FROM u2) AS z(c, d) ON z.d = x.b
LEFT JOIN VALUES ('NL', 31) AS v(name, code) ON v.name = x.a;

CREATE VIEW full_inequality AS
SELECT a.country, a.n, b.kind, b.n AS m FROM u2 a FULL JOIN pairs b ON a.n < b.n + 35 AND (b.kind > 'a' OR a.country = 'NL');

CREATE VIEW full_equality_and_more AS
SELECT coalesce(a.country, b.country, 'none') AS country, count(a.n) AS a, count(b.n) AS b, count(c.country) AS c
FROM u2 a FULL JOIN pairs b ON a.country <=> b.country AND b.n > 10 AND a.n BETWEEN b.n AND 99
FULL JOIN u2 c ON c.n = a.n AND c.country IN (SELECT country FROM pairs WHERE n > 11)
GROUP BY coalesce(a.country, b.country, 'none');

CREATE VIEW asked_two_deep AS
SELECT country, n,
       (SELECT max(b.n) FROM pairs b WHERE b.country = a.country AND b.kind IN (SELECT kind FROM pairs c WHERE c.n > b.n)) AS deep,
       (SELECT sum(s) FROM (SELECT kind, sum(n) AS s FROM pairs b WHERE b.country = a.country GROUP BY kind HAVING sum(n) < a.n - 9) t) AS nested,
       (SELECT b.kind FROM pairs b WHERE b.n <= a.n / 4 ORDER BY b.n DESC, b.kind LIMIT 1) AS nearest,
       (SELECT count(*) FROM pairs b WHERE b.country = a.country AND b.n > a.n) AS none
FROM u2 a
WHERE EXISTS (SELECT b.kind FROM pairs b WHERE b.n < a.n GROUP BY b.kind HAVING count(*) > 1)
  AND EXISTS (SELECT 1 FROM pairs b WHERE b.n = a.n UNION ALL SELECT 1 FROM u2 d WHERE d.n <= a.n);

CREATE VIEW asked_of_records_two_deep AS
SELECT city, count(*) AS n,
       count_if(EXISTS (SELECT 1 FROM u2 a WHERE a.country = e.country AND NOT EXISTS (SELECT 1 FROM pairs b WHERE b.country = a.country AND b.n > 12))) AS few
FROM events e
WHERE user_id > (SELECT avg(x.n) FROM (SELECT n FROM pairs b WHERE b.kind = e.kind) x)
GROUP BY city;

CREATE VIEW asked_of_groups AS
SELECT kind, count(*) AS n, EXISTS (SELECT 1 FROM u2 a WHERE a.country < e.kind AND a.n > 50) AS shown
FROM events e GROUP BY kind
HAVING count(*) > (SELECT max(b.n) FROM pairs b WHERE b.kind = e.kind) OR kind IS NULL;

CREATE VIEW asked_beside_groups AS
SELECT (SELECT max(a.n) FROM u2 a WHERE a.country = q.country) AS of_country, count(*) AS n,
       max(CASE WHEN EXISTS (SELECT 1 FROM u2 a WHERE a.n < q.n * 3) THEN q.kind END) AS kind,
       sum((SELECT min(a.n) FROM u2 a WHERE a.country > q.country)) AS least
FROM pairs q GROUP BY 1
HAVING sum(q.n) > (SELECT avg(n) FROM u2);

CREATE VIEW lengths_made AS
SELECT event_id, abs(ts - TIMESTAMP '2024-01-01 11:30:00.25') < INTERVAL 45 MINUTES AS a, CAST(ts AS DATE) + (CAST(ts AS DATE) - DATE '2024-01-05') AS b, try_add(CAST(ts AS DATE), 1) AS c, try_add(ts, INTERVAL 2 DAYS) AS d,
  try_subtract(CAST(ts AS DATE), INTERVAL 1 MONTH) AS e, CAST(array_max(array(ts - TIMESTAMP '2024-01-01 11:30:00', INTERVAL 1 DAY)) AS BIGINT) AS f, to_char(ts, 'yyyy-MM') AS g, to_varchar(CAST(ts AS DATE), 'dd.MM.yyyy') AS h
FROM events;

CREATE VIEW lengths_in_structs AS
SELECT country, max(struct(ts - TIMESTAMP '2024-01-01 11:30:00' AS g, event_id)).event_id AS a, CAST(min(struct(ts - TIMESTAMP '2024-01-01 11:30:00' AS g, kind)).g AS BIGINT) AS b,
  sort_array(collect_list(struct(ts - TIMESTAMP '2024-01-01 11:30:00' AS g, event_id)))[1].event_id AS c, to_char(max(ts), 'yyyy-MM-dd HH:mm') AS d
FROM events GROUP BY country;

CREATE VIEW like_a_column AS
SELECT event_id, p, kind LIKE p AS a, kind NOT LIKE p AS b, kind ILIKE upper(p) AS c, kind LIKE concat('%', city, '%') AS d, concat(kind, '\\_%') LIKE p AS e
FROM (SELECT *, get(array('s%', '_how', '%c%', 'x', '', '%\\_\\%', 'show\\\\%', '%.*', 'SHOW', NULL, '%'), CAST(substring(event_id, 2) AS INT) % 11) AS p FROM events);

CREATE VIEW like_a_column_above AS
SELECT kind, p, n, kind LIKE p AS a, kind NOT LIKE p AS b, kind ILIKE upper(p) AS c, 'x' LIKE p AS d, concat(kind, '\\_%') LIKE p AS e
FROM (SELECT kind, get(array('s%', '_how', '%c%', 'x', '', '%\\_\\%', 'show\\\\%', '%.*', 'SHOW', NULL, '%'), CAST(substring(event_id, 2) AS INT) % 11) AS p, count(*) AS n FROM events GROUP BY 1, 2) WHERE n > 0 OR kind LIKE p;

CREATE VIEW limited_by_what_is_computed AS SELECT event_id, kind FROM events ORDER BY event_id LIMIT 2 * (3 + 1) OFFSET 5 - 2;

CREATE VIEW limited_by_nothing AS SELECT country, count(*) AS n FROM events GROUP BY country LIMIT ALL;

CREATE VIEW fields_of_json AS
SELECT event_id, j.a, j.b AS b, k.c0, k.c1 FROM (
  SELECT event_id, get(array('{"a":1.50,"b":"x"}', '{"a":1e3,"b":null}', '{"a":{"c": 1 , "d":[1, 2]},"b":[1, "x"]}', '{"a":1,"a":2}', '{"a":1, bad', '{"a":1} x', '[{"a":1}]', '1', NULL, '', '{"A":1}', '{"a":true,"b":1234567890123456789012}', '{"b":"q\\"u\\u00e9"}', '{"a.b":1, "a": "\\u0041"}'), CAST(substring(event_id, 2) AS INT) % 14) AS t FROM events
) LATERAL VIEW json_tuple(t, 'a', 'b') j AS a, b LATERAL VIEW OUTER json_tuple(concat('{"q":', t, '}'), 'q', 'a.b') k;

CREATE VIEW fields_of_json_counted AS
SELECT a, b, count(*) AS n FROM (SELECT json_tuple(concat('{"k": "', kind, '", "c": ["', city, '"]}'), 'k', 'c') AS (a, b) FROM events) GROUP BY a, b;

CREATE VIEW shares_over_windows AS
SELECT country, city, n, median(n) OVER (PARTITION BY country) AS a, percentile(m, 0.9) OVER (PARTITION BY country) AS b, percentile_cont(0.25) WITHIN GROUP (ORDER BY p) OVER (PARTITION BY city) AS c, percentile(n, 0.5) OVER (PARTITION BY country ORDER BY city) AS d,
  n - median(n) OVER () AS e, median(p) OVER (PARTITION BY country) AS f
FROM (SELECT country, city, count(*) AS n, max(amount) AS m, max(price) AS p FROM events GROUP BY country, city);

CREATE VIEW shares_over_events AS SELECT event_id, median(amount) OVER (PARTITION BY kind) AS m, amount > median(amount) OVER (PARTITION BY country) AS more FROM events;

CREATE VIEW pivots_by_two AS
SELECT * FROM (SELECT country, kind, city, amount FROM events) PIVOT (sum(amount) AS s, count(*) AS n FOR (kind, city) IN (('show', 'a') AS a, ('click', 'B') AS b, (NULL, 'b') AS c, ('never', 'a') AS d));

CREATE VIEW pivots_by_two_of_one AS
SELECT * FROM (SELECT country, kind, city, amount FROM events) PIVOT (max(amount) FOR (kind, city) IN (('show', 'a') AS a, ('click', 'B') AS b));

CREATE VIEW plain_rows (id, what, country, at, user_id, amount) AS
SELECT event_id, upper(kind), country, ts, user_id, amount FROM events WHERE city <> 'b';

CREATE VIEW rows_of_rows AS SELECT *, length(what) AS size FROM plain_rows WHERE what <> 'X' OR what IS NULL;

CREATE VIEW records_of_rows AS
SELECT what, last(id) AS newest, listagg(country, ',') AS countries, approx_count_distinct(user_id) AS users,
       count_if(id RLIKE '1$') AS ones, max(size) AS size
FROM rows_of_rows GROUP BY what;

CREATE VIEW windows_of_rows AS
SELECT session_window.start AS begun, what, count(*) AS n, sum(amount) AS amount FROM plain_rows GROUP BY session_window(at, '30 minutes'), what
UNION ALL
SELECT window.start, first(q.k), count(DISTINCT q.c), max(q.a) FROM plain_rows AS q(i, k, c, t, u, a) GROUP BY window(t, '1 hour', '20 minutes');

CREATE VIEW newest_of_rows AS
SELECT id, what, place, x
FROM (SELECT *, row_number() OVER (PARTITION BY what ORDER BY at DESC) AS place, regexp_replace(id, '[0-4]', '_') AS x FROM plain_rows AS p) WHERE place < 3;

CREATE VIEW grouped_by_answers AS
SELECT CASE WHEN user_id IN (SELECT user_id FROM events WHERE kind = 'x' AND city = 'a') THEN 'some' ELSE country END AS which,
       EXISTS (SELECT 1 FROM pairs q WHERE q.country = e.country AND q.n > 13) AS many, (SELECT max(n) FROM u2 a WHERE a.country = e.country) AS of_country,
       count(*) AS n, count(DISTINCT kind) AS kinds, sum(amount) AS amount, last(event_id) AS newest, count_if(kind IN (SELECT kind FROM pairs WHERE n > 12)) AS c
FROM events e WHERE city <> 'B' GROUP BY 1, 2, 3 HAVING count(*) > 2;

CREATE VIEW different_answers AS
SELECT DISTINCT city, (SELECT max(q.kind) FROM pairs q WHERE q.country = e.country AND q.n > 13) AS kind FROM events e
UNION ALL
SELECT CASE WHEN amount > (SELECT avg(n) FROM u2) THEN 'above' ELSE 'below' END, CAST(count(*) AS STRING) FROM events GROUP BY CUBE (1);

CREATE VIEW shapes AS
SELECT country, skewness(amount) AS s, kurtosis(amount) AS k, skewness(price) AS ps, kurtosis(price) AS pk, skewness(length(event_id)) AS l, kurtosis(user_id) FILTER (WHERE user_id < 4) AS u,
  skewness(user_id) FILTER (WHERE user_id < 4) AS v, kurtosis(price) FILTER (WHERE price < 10) AS pf, var_pop(amount) AS vp, skewness(DISTINCT amount) AS d, skewness(1) AS one, kurtosis(unix_timestamp(ts)) AS t, skewness(substring(event_id, 2)) AS e
FROM events GROUP BY country;

CREATE VIEW shapes_of_none AS SELECT skewness(amount) AS s, kurtosis(price) AS k FROM events WHERE city = 'nowhere';

CREATE VIEW shapes_of_windows AS SELECT window.start AS s, skewness(amount) AS sk, kurtosis(length(event_id)) AS k FROM events GROUP BY window(ts, '2 hours', '1 hour');

CREATE VIEW shapes_of_places AS SELECT country, city, skewness(amount) AS s, kurtosis(amount) AS k FROM events GROUP BY CUBE(country, city);

CREATE VIEW shapes_of_shapes AS SELECT skewness(vp) AS s, kurtosis(vp) AS k, skewness(s) AS t FROM shapes;

CREATE VIEW shapes_over_windows AS SELECT country, city, n, skewness(n) OVER (PARTITION BY country) AS s, kurtosis(n) OVER (ORDER BY city, country) AS k FROM (SELECT country, city, count(*) AS n FROM events GROUP BY country, city);

CREATE VIEW exploded_aggregates AS
SELECT city, count(*) AS n, posexplode_outer(collect_list(CASE WHEN kind = 'x' THEN country END)) AS (place, country)
FROM (SELECT city, kind, country FROM events WHERE user_id > 0) GROUP BY city
UNION ALL
SELECT what, x, 0, 'of all' FROM (SELECT stack(2, 'n', count(*), 'kinds', count(DISTINCT kind)) AS (what, x) FROM events);

CREATE VIEW days_of_records AS
SELECT d.day, count(e.n) AS days, sum(e.n) AS n
FROM (SELECT explode(sequence(min(CAST(ts AS DATE)), max(CAST(ts AS DATE)), INTERVAL 1 DAY)) AS day FROM events WHERE ts > TIMESTAMP '2024-01-01') d
LEFT JOIN (SELECT CAST(ts AS DATE) AS day, kind, count(*) AS n FROM events GROUP BY 1, 2) e ON e.day = d.day
GROUP BY d.day HAVING d.day < DATE '2024-01-10';

CREATE VIEW spread_groups AS
SELECT country, i, hour FROM (SELECT country, count(*) AS n, min(ts) AS a, max(ts) AS z FROM events WHERE ts < TIMESTAMP '2024-01-02' GROUP BY country)
LATERAL VIEW explode(sequence(n, 3)) t AS i LATERAL VIEW OUTER explode(sequence(date_trunc('hour', z), z + INTERVAL 2 HOURS, INTERVAL 30 MINUTES)) u AS hour
WHERE i < 6;

CREATE VIEW rollup_first AS
SELECT country, city, count(*) AS n, sum(amount) AS s FROM events GROUP BY ROLLUP(country, city) ORDER BY country, city LIMIT 5;

CREATE VIEW cube_numbered AS
SELECT city, country, kind, count(*) AS n, row_number() OVER (PARTITION BY city ORDER BY count(*) DESC) AS place,
  sum(count(*)) OVER (PARTITION BY city ORDER BY kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far,
  lag(country) OVER (ORDER BY count(*)) AS before
FROM events GROUP BY city, CUBE(country, kind);

CREATE VIEW rollup_numbered_outside AS
SELECT country, city, n, row_number() OVER (ORDER BY n DESC, country) AS place
FROM (SELECT country, city, count(*) AS n, grouping(country) AS g, grouping(city) AS h FROM events GROUP BY ROLLUP(country, city));

CREATE VIEW sets_of_windows_numbered AS
SELECT window.start AS s, upper(kind) AS k, row_number() OVER (PARTITION BY upper(kind) ORDER BY count(*) DESC) AS place
FROM events GROUP BY window(ts, '1 hour'), GROUPING SETS ((upper(kind)), ());

CREATE VIEW sets_by_number AS
SELECT upper(country) AS c, city, count(*) AS n, rank() OVER (ORDER BY count(*)) AS r FROM events
GROUP BY ROLLUP(1, 2) ORDER BY n DESC LIMIT 6;

CREATE VIEW sets_of_sessions_first AS
SELECT session_window.start AS s, kind, count(*) AS n, row_number() OVER (ORDER BY count(*)) AS place
FROM events GROUP BY session_window(ts, '30 minutes'), ROLLUP(kind) ORDER BY n LIMIT 4;

CREATE VIEW numbered_by_nothing AS
SELECT country, n, row_number() OVER (ORDER BY 1) AS r, sum(n) OVER (ORDER BY 2) AS total, row_number() OVER (PARTITION BY n ORDER BY 'x', 1) AS q
FROM (SELECT country, count(*) AS n FROM events GROUP BY country);

CREATE VIEW numbered_by_no_subquery AS
SELECT country, row_number() OVER (ORDER BY (SELECT NULL)) AS r FROM (SELECT country, count(*) AS n FROM events GROUP BY country);

CREATE VIEW nulls_in_windows AS
SELECT country, coalesce(nth_value(NULL, 2) OVER (ORDER BY n, country), country) AS x, coalesce(lag(NULL) OVER (ORDER BY country), n) AS l,
  coalesce(lead(NULL, 2) OVER (ORDER BY country), 1) AS m, coalesce(first_value(NULL) OVER (ORDER BY country), 'x') AS f
FROM (SELECT country, count(*) AS n FROM events GROUP BY country);

CREATE VIEW hours_filled AS
WITH hours AS (SELECT explode(sequence(TIMESTAMP '2024-01-01 08:00:00', TIMESTAMP '2024-01-01 14:00:00', INTERVAL 1 HOUR)) AS hour)
SELECT hour, last_value(n) IGNORE NULLS OVER (ORDER BY hour) AS known, row_number() OVER (ORDER BY hour DESC) AS r
FROM hours LEFT JOIN (SELECT date_trunc('hour', ts) AS at, count(*) AS n FROM events GROUP BY date_trunc('hour', ts)) ON at = hour;

CREATE VIEW rows_of_now AS
SELECT country, sum(n) OVER (ORDER BY country ROWS BETWEEN 0 FOLLOWING AND CURRENT ROW) AS s, sum(n) OVER (ORDER BY n, country ROWS BETWEEN 0 PRECEDING AND 0 FOLLOWING) AS t
FROM (SELECT country, count(*) AS n FROM events GROUP BY country);

CREATE VIEW distinct_in_a_computed_order AS
SELECT DISTINCT country, n FROM (SELECT country, city, count(*) AS n FROM events GROUP BY country, city) ORDER BY upper(country), -n LIMIT 3;

CREATE VIEW having_and_its_order AS
SELECT country, sum(length(event_id)) AS s FROM events GROUP BY country HAVING count(*) > 1 ORDER BY sum(length(event_id)) DESC LIMIT 3;

CREATE VIEW ordered_by_a_rank AS
SELECT country, rank() OVER w AS r FROM (SELECT country, count(*) AS n FROM events GROUP BY country) WINDOW w AS (ORDER BY n)
ORDER BY rank() OVER w DESC LIMIT 2;

CREATE VIEW aggregates_of_outputs AS
SELECT length(city) + 1 AS z, count(z) AS n, count_if(abs(z) > 1) AS m FROM events GROUP BY length(city) + 1;

CREATE VIEW unnamed_and_first AS
SELECT count(*) AS n, 'sets' AS of FROM (SELECT grouping(country), country FROM events GROUP BY ROLLUP(country) LIMIT 3)
UNION ALL SELECT count(*), 'rows' FROM (SELECT DISTINCT upper(k), n + 1 FROM (SELECT kind AS k, count(*) AS n FROM events GROUP BY kind) ORDER BY 1 LIMIT 2);

CREATE VIEW milliseconds_above AS
SELECT kind, date_trunc('MILLISECOND', t) AS a, date_trunc('MICROSECOND', t) AS b, date_trunc('second', t) AS c
FROM (SELECT kind, max(ts) AS t FROM events GROUP BY kind);

CREATE VIEW keys_twice AS
SELECT p1 AS a, p2 AS b, count(*) AS n, bit_or(DISTINCT p3) AS o FROM (SELECT city AS p1, city AS p2, user_id AS p3 FROM events) GROUP BY p2, p1;

CREATE VIEW asked_sideways AS
SELECT a.country, x.kind, y.most, z.place
FROM u2 AS a(country, n, p)
LEFT JOIN LATERAL (SELECT kind FROM pairs q WHERE q.country = a.country AND EXISTS (SELECT 1 FROM pairs r WHERE r.kind = q.kind AND r.n > q.n)) x ON true
CROSS JOIN LATERAL (SELECT max(s) AS most FROM (SELECT kind, sum(n) AS s FROM pairs q WHERE q.n < a.n / 3 GROUP BY kind) t) y
LEFT JOIN LATERAL (SELECT i AS place FROM pairs q LATERAL VIEW explode(array(1, 2)) t AS i WHERE q.n + i = a.n UNION ALL SELECT 0 FROM u2 b WHERE b.n > a.n) z ON true;

CREATE VIEW in_as_a_value AS
SELECT country, n, country IN (SELECT country FROM pairs WHERE n > 13 AND country IS NOT NULL) AS known,
       n NOT IN (SELECT count(*) + 40 FROM events GROUP BY kind) AS other,
       coalesce(country, 'none') IN (SELECT coalesce(kind, 'none') FROM pairs) AS none
FROM (SELECT country, count(*) AS n FROM events GROUP BY country) WHERE country > ''
UNION ALL
SELECT kind, user_id % 5, (user_id, kind) IN (SELECT user_id, kind FROM events WHERE city = 'a' AND user_id IS NOT NULL AND kind <> ''), true, city = 'B'
FROM events WHERE user_id IS NOT NULL AND kind IS NOT NULL
UNION ALL
SELECT 'all', count(*), country IN (SELECT country FROM u2 WHERE n > 45 AND country IS NOT NULL), true, true
FROM events WHERE country IS NOT NULL GROUP BY 3;

CREATE VIEW means_of_days AS
WITH days AS (SELECT explode(sequence(min(CAST(ts AS DATE)), max(CAST(ts AS DATE)), INTERVAL 1 DAY)) AS day FROM events WHERE ts > TIMESTAMP '2024-01-01'),
     found AS (SELECT CAST(ts AS DATE) AS day, count(*) AS n, sum(amount) AS s FROM events GROUP BY 1)
SELECT d.day, coalesce(f.n, 0) AS n, sum(f.s) OVER (ORDER BY d.day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week, lag(f.n) OVER (ORDER BY d.day) AS before
FROM days d LEFT JOIN found f USING (day)
UNION ALL
SELECT day, place, NULL, row_number() OVER (ORDER BY kind DESC, country, c)
FROM (SELECT country, kind, c, size(days) AS place, first_day AS day FROM pairs p LATERAL VIEW explode(array_distinct(cities)) t AS c) WHERE place > 4;

CREATE VIEW calendar_of_records AS
WITH r AS (SELECT CAST(min(ts) AS DATE) AS a, CAST(max(ts) AS DATE) AS b FROM events WHERE ts > TIMESTAMP '2020-01-01 00:00:00'),
  days AS (SELECT explode(sequence(a, b, INTERVAL 1 DAY)) AS day FROM r),
  found AS (SELECT CAST(ts AS DATE) AS day, count(*) AS n, sum(amount) AS total FROM events GROUP BY CAST(ts AS DATE))
SELECT d.day, coalesce(f.n, 0) AS n, sum(f.total) OVER (ORDER BY d.day ROWS UNBOUNDED PRECEDING) AS so_far, lag(d.day) OVER (ORDER BY d.day) AS before
FROM days d LEFT JOIN found f ON f.day = d.day;

CREATE VIEW calendar_without_a_step AS
SELECT country, d FROM (SELECT country, CAST(max(ts) AS DATE) AS a, DATE '2024-03-20' AS b FROM events GROUP BY country) LATERAL VIEW explode(sequence(b, a)) x AS d ORDER BY d, country LIMIT 30;

CREATE VIEW hours_of_records AS
SELECT h, n FROM (SELECT explode(sequence(date_trunc('hour', a), b, INTERVAL 90 MINUTES)) AS h, n FROM (SELECT min(ts) AS a, max(ts) AS b, count(*) AS n FROM events WHERE ts BETWEEN TIMESTAMP '2024-01-01 00:00:00' AND TIMESTAMP '2024-01-02 00:00:00'));

CREATE VIEW exploded_above AS
SELECT c.country, t.city, count(*) AS n FROM (SELECT country, kind, collect_set(city) AS cities FROM events GROUP BY country, kind) c LATERAL VIEW explode(cities) t AS city GROUP BY c.country, t.city;

CREATE VIEW exploded_with_places_above AS
SELECT country, pos, user_id, s.kind AS kind, at FROM (SELECT country, sort_array(collect_set(user_id)) AS ids, sort_array(collect_set(struct(kind, city))) AS ss, collect_list(ts) AS ats FROM events WHERE event_id < 'e2' GROUP BY country)
LATERAL VIEW posexplode(ids) t AS pos, user_id LATERAL VIEW OUTER explode(ss) u AS s LATERAL VIEW explode(slice(ats, 1, 2)) v AS at;

CREATE VIEW fields_exploded_above AS
SELECT country, k, c, t FROM (SELECT country, sort_array(collect_list(struct(kind AS k, city AS c, ts AS t, amount AS a))) AS ss FROM events WHERE event_id < 'e2' GROUP BY country) LATERAL VIEW inline(ss) u AS k, c, t, a WHERE a > 0 OR k IS NULL;

CREATE VIEW numbers_exploded_above AS
SELECT country, explode(array(n, most, -1)) AS x FROM (SELECT country, count(*) AS n, max(amount) AS most FROM events GROUP BY country);

CREATE VIEW prices_exploded_above AS
SELECT p, count(*) AS n FROM (SELECT collect_list(price) AS ps FROM events GROUP BY kind), LATERAL explode(ps) AS t(p) GROUP BY p;

CREATE VIEW exploded_of_a_view AS
SELECT x.day, y.n FROM (SELECT explode(sequence(min_day, max_day)) AS day FROM (SELECT min(day) AS min_day, max(day) AS max_day FROM calendar_of_records)) x LEFT JOIN calendar_of_records y ON x.day = y.day + INTERVAL 1 DAY;

CREATE VIEW listed_structs_again AS
SELECT country, sort_array(collect_list(struct(kind, city))) AS a, sort_array(collect_list(struct(kind, city)), false) AS b, sort_array(collect_set(struct(kind, city))) AS c, transform(sort_array(collect_list(struct(city, kind)) FILTER (WHERE price > 1)), s -> s.kind) AS d FROM events GROUP BY country;

CREATE VIEW listed_structs_of_windows AS
SELECT window.start AS s, sort_array(collect_list(struct(kind, city))) AS a FROM events GROUP BY window(ts, '2 hours', '1 hour');

CREATE VIEW halves_of_lengths AS
SELECT country, CAST(avg(ts - TIMESTAMP '2024-03-11 00:00:00') AS DECIMAL(20, 6)) AS g, CAST((min(ts) - max(ts)) / 7 AS DECIMAL(20, 6)) AS e, CAST(INTERVAL 1 SECOND / 8 AS DECIMAL(20,6)) AS h,
  CAST((min(ts) - min(ts) - INTERVAL 1 MICROSECOND) / 2 AS DECIMAL(20,6)) AS j
FROM events WHERE ts IS NOT NULL GROUP BY country;

CREATE VIEW greatest_structs_asked AS
SELECT max(struct(ts, event_id)) FILTER (WHERE user_id IN (SELECT max(user_id) FROM events WHERE user_id < 4)) AS m, count(*) AS n, min(struct(amount, event_id)).event_id AS e FROM events;

CREATE VIEW greatest_structs_of_asked AS
SELECT country, max(struct(ts, kind, event_id)).kind AS m, max_by(struct(kind, city), ts) AS k FROM events WHERE user_id IN (SELECT user_id FROM events WHERE city = 'a') GROUP BY country;

CREATE VIEW hours_of_countries AS SELECT country, date_trunc('hour', ts) AS hour, count(*) AS n FROM events GROUP BY country, date_trunc('hour', ts);

CREATE VIEW exploded_asked AS SELECT country, n, m FROM hours_of_countries LATERAL VIEW explode(array(n, 7, NULL)) t AS m WHERE EXISTS (SELECT 1 FROM hours_of_countries h WHERE h.n = m);

CREATE VIEW exploded_beside_a_value AS SELECT country, (SELECT max(h.n) FROM hours_of_countries h WHERE h.country = x.country) AS m, k FROM hours_of_countries x LATERAL VIEW explode(array(n, 1)) t AS k;

CREATE VIEW exploded_windows AS SELECT w.start AS s, w.end AS e, k FROM (SELECT window AS w, collect_set(kind) AS ks FROM events GROUP BY window(ts, '1 hour')) LATERAL VIEW explode(ks) t AS k;

CREATE VIEW exploded_and_joined AS SELECT a.k, b.n FROM (SELECT explode(ks) AS k FROM (SELECT collect_set(kind) AS ks FROM events)) a JOIN (SELECT kind, count(*) AS n FROM events GROUP BY kind) b ON a.k = b.kind;

CREATE VIEW exploded_and_united AS SELECT k FROM hours_of_countries, LATERAL explode(array(country)) AS t(k) UNION SELECT kind FROM events;

CREATE VIEW hours_after_hours AS SELECT hour, explode(sequence(hour, hour + INTERVAL 2 HOURS, INTERVAL 1 HOUR)) AS h FROM hours_of_countries;

CREATE VIEW exploded_laterally AS SELECT h.country, h.hour, l.k FROM hours_of_countries h, LATERAL (SELECT k FROM hours_of_countries g LATERAL VIEW explode(array(g.n)) t AS k WHERE g.country = h.country) l;

CREATE VIEW exploded_and_aggregated AS SELECT count(DISTINCT k) AS l, max(struct(k, country)) AS m, sort_array(collect_list(k)) AS ks FROM (SELECT country, collect_list(kind) AS ks FROM events GROUP BY country) LATERAL VIEW explode(ks) t AS k;

CREATE VIEW stacked_above AS SELECT country, hour, stack(2, 'a', n, 'b', n + 1) AS (what, v) FROM hours_of_countries;

CREATE VIEW exploded_with_places_ranked AS SELECT country, k, row_number() OVER (PARTITION BY country ORDER BY p DESC) AS r FROM (SELECT country, collect_list(kind) AS ks FROM events GROUP BY country) LATERAL VIEW posexplode(ks) t AS p, k;

CREATE VIEW exploded_days_ranked AS SELECT day, row_number() OVER (ORDER BY day) - 1 AS n FROM (SELECT explode(sequence(a, z)) AS day FROM (SELECT min(CAST(ts AS DATE)) AS a, max(CAST(ts AS DATE)) AS z FROM events WHERE ts > TIMESTAMP '2024-01-01 00:00:00'));

CREATE VIEW times_moved_by_lengths AS
SELECT event_id, ts + (ts - TIMESTAMP '2024-01-01 10:00:00') AS a, ts - (ts - CAST(ts AS DATE)) AS b, CAST(ts AS DATE) + INTERVAL 1 DAY * user_id AS c, ts + INTERVAL 90 MINUTES * user_id AS d, ts - user_id * INTERVAL 1 DAY / 2 AS e,
  CAST(ts AS DATE) - (ts - TIMESTAMP '2024-01-01 10:00:00.5') AS f, (ts - TIMESTAMP '2024-01-01 10:00:00') + ts AS g
FROM events WHERE user_id < 4 AND user_id > 0;

CREATE VIEW times_moved_by_lengths_above AS
SELECT country, max(ts) + (max(ts) - min(ts)) AS a, min(ts) - (max(ts) - min(ts)) / 2 AS b, min(ts) + INTERVAL 1 HOUR * count(*) AS c, timestamp_micros(unix_micros(max(ts)) + 1) AS d, timestamp_micros(count(*) - 10000000000000000) AS e,
  max(ts) - avg(ts - TIMESTAMP '2024-01-01 10:00:00') AS f, CAST(max(ts) AS DATE) + (CAST(max(ts) AS DATE) - CAST(min(ts) AS DATE)) AS g
FROM events WHERE ts > TIMESTAMP '1960-01-01 00:00:00' GROUP BY country;

CREATE VIEW constants_in_structs AS
SELECT country, collect_list(struct('x' AS k, kind, 1 AS one)) AS a, max(struct('x' AS k, ts, 2.5 AS f)) AS b, collect_set(struct('a', city)) AS c, max(struct(CAST(NULL AS INT) AS n, city)).city AS d, last(struct('l' AS l)) AS e,
  sort_array(collect_list(struct(1 AS i, city, CAST(NULL AS STRING) AS s)))[0] AS f
FROM events WHERE event_id < 'e3' GROUP BY country;

CREATE VIEW texts_of_groups_compared AS
SELECT country, sum(amount) > '10' AS a, avg(price) > '1' AS b, count(*) = '48' AS c, max(ts) > '2024-01-01' AS d, CAST(max(ts) AS DATE) = '2024-03-10 23:00:00' AS e, coalesce(sum(amount), 'none') AS f, count(*) IN ('48', 'x') AS g,
  count(*) NOT IN ('48', NULL) AS h, max(amount) IN ('1.25', '99999999.99') AS i, decode(count(*), '48', 'many', 'few') AS j, nullif(max(ts), '2024-03-10 07:30:00') AS k, max(kind) > min(user_id) AS l, CASE count(*) WHEN '48' THEN 1 ELSE 'x' END AS m,
  max(CASE WHEN kind = 0 THEN 1 ELSE 2 END) AS n, if(count(*) > '7', max(amount), 'x') AS o, nvl(max(user_id), 'x') AS p, array(count(*), 'x')[0] AS q
FROM events GROUP BY country HAVING count(*) > '1' AND max(city) <> 0 IS NOT TRUE;

CREATE VIEW texts_of_records_compared AS
SELECT event_id, ts <> '2024-01-01T10:20:30Z' AS a, CAST(ts AS DATE) = '2024-01-01 10:00' AS b, amount = '1.25' AS c, amount IN ('1.25', '-3.10') AS d, price IN ('1.5', 'NaN', '1.0E308', '-0.0') AS e, user_id NOT IN ('1', NULL) AS f, price = 'Infinity' AS g, price = 'nan' AS h,
  decode(substring(event_id, 2), 7, 'seven', 8L, 'eight') AS i, ts IN ('2024-01-01 10:59:59.999999', '2024-01-01 10:20:30.0') AS j, CAST(ts AS DATE) NOT IN ('2024-01-01', '1969-12-31') AS k, CASE substring(event_id, 2) WHEN 7 THEN 'a' WHEN '8' THEN 'b' END AS l,
  ts BETWEEN '2024-01-01' AND '2024-01-01 10:30:00' AS m, map('a', amount, 'b', kind)['a'] AS n, user_id <=> '1' AS o, (price > 1) = 'yes' AS p
FROM events;

CREATE VIEW fields_of_each AS
SELECT event_id, items.kind AS kinds, items.s.c AS cities, array(struct(kind), struct('x' AS kind)).kind AS more, size(i.items.kind) AS n, items.kind[1] AS second, array_join(items.kind, '-') AS joined
FROM (SELECT event_id, kind, array(named_struct('kind', kind, 's', named_struct('c', city)), named_struct('kind', 'x', 's', named_struct('c', country))) AS items FROM events) i;

CREATE VIEW fields_of_each_above AS
SELECT user_id, sort_array(collect_list(struct(ts, event_id, kind))).kind AS path, array_join(sort_array(collect_list(struct(ts, event_id, kind))).kind, '>') AS text, collect_list(struct(struct(kind AS k) AS s)).s.k AS ks FROM events GROUP BY user_id;

CREATE VIEW fields_of_each_of_a_view AS
SELECT user_id, steps.kind AS kinds, v.steps.e AS es FROM (SELECT user_id, collect_list(struct(kind, event_id AS e)) AS steps FROM events GROUP BY user_id) v WHERE size(steps.kind) > 1;

CREATE VIEW lambdas_above AS
SELECT
  country, transform(kinds, x -> upper(x)) AS a, transform(kinds, (x, i) -> concat(x, i)) AS b, filter(kinds, x -> x > 'click') AS c, filter(kinds, (x, i) -> i > 0) AS d,
  exists(kinds, x -> x = 'show') AS e, forall(kinds, x -> length(x) > 1) AS f, size(filter(amounts, x -> x > 0)) AS g, transform(amounts, x -> x * 2) AS h,
  transform(times, t -> date_trunc('day', t)) AS i, filter(structs, s -> s.user_id > 1 OR s.user_id IS NULL) AS j, transform(filter(structs, s -> s.kind = 'x'), s -> s.city) AS k,
  transform(kinds, x -> size(filter(cities, y -> y > x))) AS l, exists(CASE WHEN n > 50 THEN kinds END, x -> x = 'show') AS m, transform(ids, x -> x % 2 = 0) AS n, forall(ids, x -> x > n) AS o,
  exists(prices, p -> p > 1) AS p, array_join(transform(kinds, x -> concat(x, '!')), ',') AS q, transform(days, d -> d + 1) AS r
FROM (
  SELECT country, sort_array(collect_set(kind)) AS kinds, collect_list(amount) FILTER (WHERE event_id < 'e15') AS amounts, collect_list(ts) FILTER (WHERE event_id < 'e15') AS times,
    sort_array(collect_list(struct(user_id, kind, city)) FILTER (WHERE event_id < 'e15')) AS structs, collect_set(city) AS cities, collect_set(user_id) AS ids, count(*) AS n,
    collect_list(price) FILTER (WHERE event_id < 'e15') AS prices, collect_set(CAST(ts AS DATE)) AS days
  FROM events GROUP BY country
);

CREATE VIEW lambdas_beside_aggregates AS
SELECT kind, filter(collect_set(city), c -> c <> kind) AS a, exists(collect_list(amount), x -> x > 100) AS b, count(*) AS n FROM events GROUP BY kind HAVING exists(collect_set(city), c -> c = 'a');

CREATE VIEW lambdas_of_rows AS SELECT event_id, e FROM (SELECT event_id, payload.tags AS tags FROM events) LATERAL VIEW explode(filter(tags, t -> t IS NOT NULL)) x AS e;

CREATE VIEW tagged_rows AS SELECT event_id, payload.tags AS tags, kind FROM events;

CREATE VIEW lambdas_over_a_view AS
SELECT event_id, filter(tags, t -> t IS NULL) AS a, exists(tags, t -> t = 'a') AS b, forall(tags, t -> t = 'a') AS c, transform(tags, t -> coalesce(t, kind)) AS d, exists(tags, t -> t > kind) AS e FROM tagged_rows;

CREATE VIEW texts_downwards AS
SELECT country, listagg(kind, ',') WITHIN GROUP (ORDER BY user_id DESC) AS a, listagg(kind, '-') WITHIN GROUP (ORDER BY kind DESC) AS b,
  string_agg(city) WITHIN GROUP (ORDER BY ts DESC, amount DESC NULLS LAST) AS c, listagg(kind, ',') WITHIN GROUP (ORDER BY ts DESC) FILTER (WHERE user_id > 1) AS d,
  listagg(city, ',') WITHIN GROUP (ORDER BY city DESC) FILTER (WHERE city = 'nowhere') AS e
FROM events GROUP BY country;

CREATE VIEW texts_downwards_above AS
SELECT kind, listagg(city, ',') WITHIN GROUP (ORDER BY n DESC) AS a, listagg(city, ',') WITHIN GROUP (ORDER BY city DESC) AS b
FROM (SELECT kind, city, count(*) AS n FROM events GROUP BY kind, city) GROUP BY kind;

CREATE VIEW long_texts_downwards AS
SELECT city, length(listagg(repeat(kind, 700), ',') WITHIN GROUP (ORDER BY kind DESC)) AS n, listagg(substring(repeat(kind, 700), 1, 1500), ',') WITHIN GROUP (ORDER BY event_id DESC) AS a FROM events WHERE amount > 2 GROUP BY city;


CREATE VIEW regexes_above AS
SELECT city, c, c RLIKE 'a+|b$' AS a, regexp_like(c, '(?i)^PAR') AS b, regexp_extract(c, '([a-z])([a-z]*)', 2) AS d, regexp_extract(c, 'q(x)?', 1) AS e,
 regexp_replace(c, '[aeiou]', '<$0>') AS f, regexp_replace(city, '(.)a', '$1.') AS g, regexp_count(c, '[^a-m]') AS h, regexp_extract_all(c, '([a-z])([a-z])?', 2) AS i,
 regexp_substr(c, '[r-z]+') AS j, split(c, '[aeiou]+') AS k, split(c, ' ') AS l, regexp_extract_all(max_kind, '[a-z]', 0) AS m, NOT c RLIKE '.*' AND c IS NOT NULL AS o
FROM (SELECT city, max(concat(kind, ' ', city)) AS c, max(kind) AS max_kind FROM events GROUP BY city);

CREATE VIEW regexes_of_aggregates AS
SELECT kind, regexp_extract_all(max(city), '[a-z]', 0) AS a, count_if(city RLIKE 'a|o') AS b, regexp_replace(max(city), 'a(b)?', '$1-') AS c FROM events GROUP BY kind HAVING NOT max(city) RLIKE '^x';

CREATE VIEW counted_beside_a_text AS
SELECT count(DISTINCT c, '') AS n, count(DISTINCT '', kind) AS m FROM (SELECT count(*) AS c, max(kind) AS kind FROM events GROUP BY city);

CREATE VIEW literals_with_suffixes AS
SELECT kind, 2L * 1.5 AS a, sum(amount) * 2L AS b, max(user_id) + 1S AS c, -2S - 0.01 AS d, 7Y AS e, round(avg(amount), 2L) AS f, CAST(2 AS SMALLINT) - 0.01 AS g, last(city) AS h, sum(user_id * 3L) + 2L * 0.5 AS i
FROM events GROUP BY kind, 2L;

CREATE VIEW shifts_beside_structs AS
SELECT max(struct(ts, kind)).kind AS k, max(user_id >> 1) AS a, max(shiftright(user_id, 1)) >> 1 AS b, map('a', user_id >> 2)['a'] AS c FROM events GROUP BY user_id, user_id >> 2;

CREATE VIEW floats_above AS
SELECT kind, double(CAST(sum(user_id) / 7 AS FLOAT)) AS c, double(CAST(CAST(sum(user_id) AS DOUBLE) * 1e37D AS FLOAT)) AS d, double(CAST(1e-45D / count(*) AS FLOAT)) AS e, double(CAST(-3e-46D * count(*) AS FLOAT)) AS f,
  double(CAST(-1e39D * count(*) AS FLOAT)) AS g, double(float(double(max(user_id)) * 16777217)) AS i, CAST(CAST(0.1 AS FLOAT) AS DOUBLE) + count(*) AS j, double(1.1F) AS k, double(float(16777217)) AS l FROM events GROUP BY kind, amount;

CREATE VIEW texts_of_numbers AS
SELECT kind, concat('$', sum(amount)) AS a, count_if(user_id LIKE '1%') AS b, max(upper(user_id)) AS c, 'n' || count(*) || '/' || max(ts) AS d, log(2, count(*)) AS e, log(1, count(*)) AS f, length(max(amount)) AS g,
  max(concat(ts, amount, user_id > 2)) AS h, count(*) LIKE '%1' AS i, substring(max(user_id), 1, 1) AS j, concat_ws('-', kind, max(amount), min(ts)) AS k FROM events GROUP BY kind;

CREATE VIEW literals_with_signs AS
SELECT kind, 2.25 / -3Y AS a, 2.25 / +3 AS b, 2.25 / - - 3 AS c, 2.25 / -(3) AS d, 2.25 / -3 AS e, 2.25 / -3S AS f, sum(amount) / +3 AS g, - -user_id AS h, sum(amount) / -(-3L) AS i
FROM events GROUP BY kind, user_id;

CREATE VIEW sessions_of_users AS
SELECT user_id, session_window(ts, '1 day').start AS begins, session_window(ts, '1 day').end AS ends, count(*) AS n FROM events GROUP BY user_id, session_window(ts, '1 day');

CREATE VIEW begins_of_sessions AS SELECT DISTINCT begins FROM sessions_of_users;

CREATE VIEW different_sessions AS
SELECT count(DISTINCT begins) AS n, max(begins) AS last, min(ends) AS first FROM (SELECT kind, session_window(ts, '1 day').start AS begins, session_window(ts, '1 day').end AS ends FROM events GROUP BY kind, session_window(ts, '1 day'));

CREATE VIEW sessions_by_begin AS
SELECT begins, max(city) AS city FROM (SELECT city, session_window(ts, '1 day').start AS begins FROM events GROUP BY CUBE (city), session_window(ts, '1 day')) GROUP BY begins;

CREATE VIEW values_of_frames AS
SELECT kind, city, last_value(kind) OVER (ORDER BY kind ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS a, first_value(kind) OVER (ORDER BY kind ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS b,
  nth_value(kind, 2) OVER (ORDER BY kind ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS c, first_value(kind) OVER (ORDER BY kind ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS d,
  last_value(kind) OVER (PARTITION BY kind ORDER BY n ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS e, first_value(kind) OVER (ORDER BY kind) AS f
FROM (SELECT kind, city, count(*) AS n FROM events GROUP BY kind, city);

CREATE VIEW signs AS SELECT event_id, - -1 AS a, -(-user_id) AS b, -(-2.5) AS c, - - -3Y AS d, -(-amount) AS e FROM events;

CREATE VIEW lists_of_a_group AS
SELECT country, array_max(collect_list(price)) AS a, array_min(collect_list(ts)) AS b, sort_array(collect_list(ts), false)[0] AS c,
  slice(sort_array(collect_list(price), false), -2, 2) AS d, array_union(collect_set(kind), collect_set(city)) AS e, arrays_overlap(collect_set(city), array('Berlin', NULL)) AS f,
  array_except(collect_set(kind), array('click')) AS g, array_remove(collect_list(kind), 'click') AS h, array_append(collect_set(user_id), max(user_id) + 1) AS i,
  size(array_intersect(collect_set(kind), array('click', 'view'))) AS j, array_compact(array(min(city), max(kind))) AS k, element_at(collect_list(price), 1) AS l,
  array_prepend(collect_set(amount), max(amount)) AS m, sort_array(collect_list(price)) AS n, array_sort(collect_list(CAST(price AS FLOAT))) AS o
FROM events GROUP BY country;

CREATE VIEW elements_of_lists AS
SELECT country, x, count(*) AS n FROM (SELECT country, array_union(collect_set(kind), collect_set(city)) AS xs FROM events GROUP BY country) LATERAL VIEW explode(xs) t AS x GROUP BY country, x;

CREATE VIEW listed_in_many_orders AS
SELECT country, listagg(kind, ',') WITHIN GROUP (ORDER BY user_id NULLS LAST, event_id) AS a, listagg(kind) WITHIN GROUP (ORDER BY amount DESC NULLS FIRST, event_id DESC NULLS FIRST) AS b,
  listagg(city, '|') WITHIN GROUP (ORDER BY city DESC NULLS FIRST) AS c, listagg(DISTINCT city, '-') WITHIN GROUP (ORDER BY city DESC) AS d, listagg(city) WITHIN GROUP (ORDER BY city NULLS LAST) AS e,
  listagg(DISTINCT kind) WITHIN GROUP (ORDER BY kind DESC NULLS FIRST) FILTER (WHERE amount > 10) AS f
FROM events GROUP BY country;

CREATE VIEW listed_groups_in_many_orders AS
SELECT country, listagg(city, ',') WITHIN GROUP (ORDER BY n DESC NULLS FIRST, city DESC) AS a, listagg(DISTINCT city, ',') WITHIN GROUP (ORDER BY city DESC) AS b, listagg(city) WITHIN GROUP (ORDER BY m NULLS LAST, city) AS c
FROM (SELECT country, city, count(*) AS n, max(amount) AS m FROM events GROUP BY country, city) GROUP BY country;

CREATE VIEW asked_in_an_answer AS
SELECT a.event_id, (SELECT sum(b.amount) FROM events AS b WHERE b.user_id = a.user_id AND EXISTS (SELECT 1 FROM events AS c WHERE c.city = b.city AND c.amount > 60)) AS s,
  (SELECT count(*) FROM events AS b WHERE b.country = a.country AND b.amount >= (SELECT avg(c.amount) FROM events AS c WHERE c.kind = b.kind)) AS n
FROM events AS a;

CREATE VIEW exists_in_exists AS
SELECT a.event_id, a.kind FROM events AS a
WHERE EXISTS (SELECT 1 FROM events AS b WHERE b.city = a.city AND b.amount > a.amount AND NOT EXISTS (SELECT 1 FROM events AS c WHERE c.user_id = b.user_id AND c.amount > b.amount));

CREATE VIEW answers_to_groups AS
SELECT a.country, a.n, (SELECT count(*) FROM events AS b WHERE b.country = a.country AND b.user_id IN (SELECT c.user_id FROM events AS c WHERE c.kind = b.kind AND c.amount > 40)) AS m
FROM (SELECT country, count(*) AS n FROM events GROUP BY country) AS a;

CREATE VIEW asked_of_views AS
SELECT v.country, (SELECT max(b.amount) FROM events AS b WHERE b.country = v.country AND NOT EXISTS (SELECT 1 FROM events AS c WHERE c.user_id = b.user_id AND c.kind = 'view')) AS m
FROM (SELECT country, count(*) AS n FROM events GROUP BY country) AS v
WHERE EXISTS (SELECT 1 FROM events AS b WHERE b.country = v.country AND b.amount > v.n AND EXISTS (SELECT 1 FROM events AS c WHERE c.city = b.city AND c.event_id <> b.event_id));

CREATE VIEW filters_in_filters AS
SELECT kind, sum(amount) FILTER (WHERE EXISTS (SELECT 1 FROM events AS b WHERE b.city = events.city AND EXISTS (SELECT 1 FROM events AS c WHERE c.user_id = b.user_id AND c.amount > 50))) AS s
FROM events GROUP BY kind;

CREATE VIEW dearest_of_each_user AS
SELECT user_id, (SELECT event_id FROM events AS o WHERE e.user_id = o.user_id ORDER BY amount DESC NULLS LAST LIMIT 1) AS dearest
FROM (SELECT DISTINCT user_id FROM events) AS e;

CREATE VIEW least_but_one_of_each_user AS
SELECT v.user_id, l.*
FROM (SELECT DISTINCT user_id FROM events) AS v,
LATERAL (
  SELECT e.country AS country, -count(*) AS n FROM events AS e WHERE e.user_id = v.user_id
  GROUP BY e.country ORDER BY 1 - n DESC, max(e.amount) DESC LIMIT 2 OFFSET 1
) AS l;

CREATE VIEW users_by_hidden_columns AS
SELECT v.user_id, l.*
FROM (SELECT DISTINCT user_id FROM events) AS v,
LATERAL (
  SELECT * FROM (SELECT kind, country AS c, count(*) AS n FROM events AS e WHERE e.user_id = v.user_id GROUP BY ALL)
  ORDER BY upper(c) DESC, n LIMIT 4
) AS l;

CREATE VIEW what_is_always_null AS
SELECT event_id, coalesce(NULL, NULL) AS a, CASE WHEN user_id = 1 THEN NULL END AS b, nullif(NULL, NULL) AS c, greatest(NULL, NULL) AS d, if(user_id = 1, NULL, NULL) AS e, array(NULL) AS f, reverse(array(greatest(NULL, NULL))) AS g
FROM events;

CREATE VIEW groups_of_what_is_always_null AS
SELECT greatest(NULL, NULL) AS m, count(*) AS n, coalesce(max(CAST(NULL AS STRING)), NULL) AS p, count(coalesce(NULL, NULL)) AS q FROM events GROUP BY greatest(NULL, NULL);

CREATE VIEW respecting_nulls AS
SELECT kind, first_value(user_id) RESPECT NULLS AS f, last_value(upper(country)) FILTER (WHERE amount > 1) RESPECT NULLS AS l FROM events GROUP BY kind;

CREATE VIEW moved_by_quarters AS
SELECT event_id, dateadd(QUARTER, 2, ts) AS a, timestampadd(QUARTER, -3, ts) AS b, dateadd(QUARTER, 1, CAST(ts AS DATE)) AS c
FROM events;

CREATE VIEW characters AS
SELECT event_id, chr(user_id % 5 + 64) AS a, char(length(country) + 64) AS b, split(event_id, '[1-5]', -1) AS c, split(event_id, '1', 2) AS d, split(event_id, 'e', length(kind) - 2) AS e
FROM events WHERE chr(length(kind) + 300) <> 'B';

CREATE VIEW days_of_times AS
SELECT event_id, to_date(ts, 'yyyy-MM-dd HH:mm:ss') AS a, to_date(CAST(ts AS DATE), 'yyyy') AS b FROM events;

CREATE VIEW days_of_groups AS
SELECT kind, to_date(max(ts), 'yyyy-MM-dd') AS a, count(*) AS n FROM events GROUP BY kind;

CREATE VIEW users_and_events_of_each_country_and_city_in_every_kind_of_them AS
SELECT country, city, kind, count(DISTINCT user_id) AS users, count(*) AS n, max(amount) AS most FROM events GROUP BY ALL;

CREATE VIEW users_and_events_of_each_country_and_city_in_every_kind_of_all AS
SELECT country, city, kind, count(DISTINCT user_id) AS users, count(*) AS n, max(amount) AS most FROM events GROUP BY ALL;

CREATE VIEW lengths_beside_intervals AS
SELECT event_id, CAST(d + INTERVAL 1 DAY AS BIGINT) AS a, CAST(s + INTERVAL 2 HOURS AS BIGINT) AS b, CAST(d + s AS BIGINT) AS c,
       CAST(coalesce(d, INTERVAL 1 WEEK) AS BIGINT) AS e, CAST(greatest(d, s) AS BIGINT) AS f,
       CAST(if(d > INTERVAL 1 DAY, d, -INTERVAL 3 DAYS) AS BIGINT) AS g, CAST(INTERVAL 1 DAY - d AS DECIMAL(20, 6)) AS h,
       CAST(d + INTERVAL 90 SECONDS AS BIGINT) AS i, CAST(INTERVAL 1 DAY * 3 AS BIGINT) AS j, EXTRACT(DAY FROM d * 2) AS k
FROM (SELECT event_id, CAST(ts AS DATE) - DATE '2020-01-01' AS d, ts - TIMESTAMP '2020-01-01 00:00:00' AS s FROM events);

CREATE VIEW lengths_of_groups_beside_intervals AS
SELECT kind, CAST(sum(d + INTERVAL 1 DAY) AS BIGINT) AS a, CAST(max(d) + INTERVAL 2 DAYS AS BIGINT) AS b, CAST(coalesce(min(d), INTERVAL 5 DAYS) AS BIGINT) AS c
FROM (SELECT kind, CAST(ts AS DATE) - DATE '2020-01-01' AS d FROM events) GROUP BY kind;

CREATE VIEW kinds_of_countries AS SELECT country, kind, count(*) AS n, sum(amount) AS s FROM events GROUP BY ALL;

CREATE VIEW null_beside_numbers AS
SELECT coalesce(q, 5) AS a, q + 1 AS b, CASE WHEN n = 1 THEN q ELSE 5 END AS c, q, concat('x', q) AS d FROM (SELECT NULL AS q, n FROM kinds_of_countries);

CREATE VIEW null_beside_sums AS
WITH a AS (SELECT country, NULL AS m, count(*) AS c FROM events GROUP BY country), c AS (SELECT * FROM a),
     b AS (SELECT kind, max(amount) AS m, count(*) AS c FROM events GROUP BY kind)
SELECT country, m, c FROM c UNION ALL SELECT * FROM b UNION ALL SELECT country, n, m FROM (SELECT country, NULL AS m, n FROM kinds_of_countries);

CREATE VIEW null_joined AS
SELECT a.n, a.q, b.n AS m FROM (SELECT NULL AS q, n FROM kinds_of_countries) a FULL JOIN kinds_of_countries b ON a.n = b.n AND a.q IS NULL;

CREATE VIEW null_grouped AS
SELECT q, kind, count(q) AS c, count(*) AS d FROM (SELECT NULL AS q, kind FROM events) WHERE q IS NULL GROUP BY q, kind;

CREATE VIEW null_grouped_alone AS SELECT q, count(*) AS c FROM (SELECT NULL AS q, n FROM kinds_of_countries) GROUP BY q;

CREATE VIEW null_of_records AS
SELECT event_id, coalesce(q, 5) AS a, nullif(q, 1) AS b, q FROM (SELECT NULL AS q, event_id FROM events);

CREATE VIEW lists_of_conditions AS
SELECT kind, collect_list(user_id IN (1, 2)) AS a, collect_list(NOT amount > 1) AS b, collect_set(country = 'NL' OR city = 'a') AS c,
       mode(country IS NULL) AS d, first_value(city = 'a' AND country = 'NL') IGNORE NULLS AS e, max_by(user_id = 1 OR amount > 2, event_id) AS f
FROM events GROUP BY kind;

CREATE VIEW asked_by_a_field_of_a_struct AS
SELECT kind, percentile_disc(0.5) WITHIN GROUP (ORDER BY user_id) FILTER (WHERE EXISTS (SELECT 1 FROM events AS i WHERE i.payload.user.id = events.payload.user.id AND i.amount > events.amount)) AS p,
       count(payload.user.id) AS n
FROM events GROUP BY kind;

CREATE VIEW pivot_of_other_types AS
SELECT * FROM (SELECT user_id, kind, amount, price, country FROM events) PIVOT (sum(amount) FOR user_id IN (1.5 AS one, '2' AS two, 3L AS three, 'x' AS none));

CREATE VIEW pivot_of_texts AS
SELECT * FROM (SELECT CAST(n AS STRING) AS n, country, kind FROM by_country_and_kind) PIVOT (max(kind) FOR n IN (10 AS ten, 9.0 AS nine, '11' AS eleven, 12 AS twelve));

CREATE VIEW pivot_of_decimals AS
SELECT * FROM (SELECT country, sum(amount) AS amount, max(user_id) AS n FROM events GROUP BY country, kind) PIVOT (sum(amount) FOR (n, country) IN ((3.4, 'NL') AS a, (3, 'FR') AS b, ('3', 3) AS c));

CREATE VIEW pivot_of_days AS
SELECT * FROM (SELECT date_trunc('day', ts) AS day, kind, amount FROM events) PIVOT (sum(amount) FOR day IN ('2024-03-01' AS a, DATE '2024-03-02' AS b, TIMESTAMP '2024-03-03 00:00:00' AS c));

CREATE VIEW first_of_other_types AS
SELECT country, kind, (SELECT kind FROM (SELECT kind, CAST(sum(n) AS INT) AS m FROM by_country_and_kind GROUP BY kind, country) i WHERE i.m = e.n ORDER BY kind DESC LIMIT 1) AS a,
  (SELECT x FROM (SELECT kind AS x, CAST(n AS DECIMAL(12,2)) AS m FROM by_country_and_kind) i WHERE i.m <=> e.n AND x > 'a' ORDER BY m, x LIMIT 1 OFFSET 1) AS b FROM by_country_and_kind e;

CREATE VIEW first_having_other_types AS
SELECT country, (SELECT kind FROM by_country_and_kind i GROUP BY kind HAVING CAST(max(n) AS INT) = e.s - 20 ORDER BY kind LIMIT 1) AS a FROM (SELECT country, sum(n) AS s FROM by_country_and_kind GROUP BY country) e;

CREATE VIEW first_laterally_of_other_types AS
SELECT e.country, e.kind, t.k FROM by_country_and_kind e, LATERAL (SELECT kind AS k FROM by_country_and_kind i WHERE CAST(i.n AS INT) = e.n AND i.country <> e.country ORDER BY i.country, i.kind LIMIT 2) t;

CREATE VIEW letter_of_nothing AS SELECT event_id, chr(user_id % 3) AS c FROM events;

CREATE VIEW pivot_of_events AS
SELECT * FROM (SELECT city, kind, amount FROM events) PIVOT (first(amount) AS f, last(amount) AS l, collect_list(amount) AS c FOR kind IN ('show' AS a, 'click' AS b));

CREATE VIEW sorted_groups AS
SELECT * FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind ORDER BY n DESC) LIMIT 3;

CREATE VIEW sorted_cte AS
WITH q AS (SELECT country, count(*) AS n, sum(amount) AS a FROM events GROUP BY country ORDER BY a DESC NULLS FIRST, n), p AS (SELECT n AS m, upper(country) AS u, a FROM q WHERE n > 1) SELECT u FROM p LIMIT 2;

CREATE VIEW sorted_records AS SELECT event_id, city FROM (SELECT city, event_id, user_id FROM events ORDER BY user_id DESC, city) LIMIT 5 OFFSET 1;

CREATE VIEW sorted_and_limited AS SELECT n FROM (SELECT country, n FROM by_country_and_kind ORDER BY n DESC LIMIT 6) LIMIT 3;

CREATE VIEW sorted_view AS SELECT country, n FROM top_countries LIMIT 2;

CREATE VIEW sorted_set AS SELECT * FROM (SELECT country AS x, n FROM by_country_and_kind UNION SELECT kind, n FROM by_country_and_kind ORDER BY n DESC, x) LIMIT 4;

CREATE VIEW sorted_inside AS
SELECT count(*) AS n, (SELECT country FROM (SELECT country, n FROM by_country_and_kind ORDER BY n DESC) LIMIT 1) AS top FROM events WHERE country IN (SELECT country FROM (SELECT country, sum(n) AS n FROM by_country_and_kind GROUP BY 1 ORDER BY n) LIMIT 2);

CREATE VIEW unnamed_inside AS
SELECT c FROM (SELECT DISTINCT country AS c FROM events) WHERE EXISTS (SELECT 1 FROM (SELECT country AS d, max(n) AS n FROM by_country_and_kind GROUP BY 1) WHERE c = d AND n > 5)
  AND 3 < (SELECT max(n) FROM (SELECT country AS d, n FROM by_country_and_kind) WHERE c = d);

CREATE VIEW lists_of_wider AS
SELECT country, array(max(user_id), max(price)) AS a, map('a', min(user_id), 'b', min(price)) AS b, struct(coalesce(max(user_id), max(price)) AS x) AS s, array(max(user_id) % 1000, CAST(0.5 AS FLOAT)) AS f FROM events WHERE price < 10 GROUP BY country;

CREATE VIEW same_column_twice AS SELECT count(*) AS n FROM (SELECT country, country FROM by_country_and_kind ORDER BY country LIMIT 4);

CREATE VIEW substring_from_zero AS SELECT city, substring(city, 0, 1) AS a, substr(city, 0) AS b, max(substring(kind, 0, 2)) AS c FROM events GROUP BY city;

CREATE VIEW raised_each AS
SELECT max(country) AS m, transform(sort_array(collect_set(user_id)), e -> e + 1) AS t FROM (SELECT country, user_id FROM events GROUP BY country, user_id);

CREATE VIEW filtered_and_found AS
SELECT country, filter(sort_array(collect_list(m)), e -> e > 1) AS t, exists(collect_set(kind), k -> k = country) AS x FROM (SELECT country, kind, max(user_id) AS m FROM events GROUP BY country, kind) GROUP BY country;

CREATE VIEW numbered_in_each_grouping AS
SELECT country, kind, transform(sort_array(collect_set(city)), (e, i) -> concat(e, i)) AS t FROM events GROUP BY ROLLUP(country, kind);

CREATE VIEW raised_over_a_join AS
SELECT a.country, transform(sort_array(collect_set(b.city)), e -> upper(e)) AS t FROM events a JOIN events b ON a.user_id = b.user_id AND a.kind = b.kind GROUP BY a.country;

CREATE VIEW times_of_a_zone AS
SELECT event_id, ts > '2024-01-01 10:59:59 +00:00' AS a, ts > TIMESTAMP '2024-01-01 12:59:59.999999+02:00' AS b, ts = CAST('2024-01-01 10:20:30 UTC' AS TIMESTAMP) AS c, ts < '2024-03-10T02:30:00 -05:00' AS d FROM events;

CREATE VIEW times_of_a_zone_above AS
SELECT country, max(ts) >= '2024-01-01 10:59:59 +00:00' AS a, max(ts) = TIMESTAMP '2024-03-10 02:30:00-05:00' AS b FROM events GROUP BY country;

CREATE VIEW shares_that_are_computed AS
SELECT country, percentile_disc(0.2 + 0.3) WITHIN GROUP (ORDER BY user_id) AS p, percentile(amount, 1 - 0.1) AS q, percentile(amount, array(1 / 4, CAST(0.75 AS DOUBLE))) AS r, listagg(kind, concat(',', ' ')) WITHIN GROUP (ORDER BY kind) AS l, round(sum(amount), 3 - 2) AS s FROM events GROUP BY country;

CREATE VIEW offsets_that_are_computed AS
SELECT kind, city, lag(n, 1 + 1) OVER (ORDER BY kind, city) AS l, ntile(2 * 2) OVER (ORDER BY kind, city) AS t FROM (SELECT kind, city, count(*) AS n FROM events GROUP BY kind, city);

CREATE VIEW steps_between_counts AS
SELECT country, explode(sequence(count(kind), count(*), 5)) AS s FROM events GROUP BY country;

CREATE VIEW steps_down_and_lists AS
SELECT country, sequence(count(*), 0, -7) AS s, sequence(-3, CAST(count(*) AS INT), 10) AS i FROM events GROUP BY country;

CREATE VIEW steps_of_literals AS
SELECT event_id, explode(sequence(1, 10, 2 + 2)) AS s FROM events;

CREATE VIEW steps_down_beside_groups AS
SELECT s, country FROM (SELECT explode(sequence(10, 1, -4)) AS s) CROSS JOIN (SELECT country, count(*) AS n FROM events GROUP BY country);

CREATE VIEW empty_lists_of_records AS
SELECT event_id, coalesce(payload.tags, array()) AS a, CASE WHEN user_id > 1 THEN map('a', price) ELSE map() END AS m, size(array()) AS z, array(array(), payload.tags) AS aa FROM events;

CREATE VIEW empty_lists_of_groups AS
SELECT country, if(count(*) > 20, array(), array(count(*))) AS a, CASE WHEN count(*) > 20 THEN map('a', count(*)) ELSE map() END AS m, size(array()) AS z FROM events GROUP BY country;

CREATE VIEW elements_or_none AS
SELECT tag, count(*) AS n FROM events LATERAL VIEW OUTER explode(coalesce(payload.tags, array())) t AS tag GROUP BY tag;

CREATE VIEW unnamed_in_a_subquery AS
SELECT *, rank() OVER (ORDER BY n) AS r FROM (SELECT left(country, 2), count(*) AS n, count(*) + 1, bool_and(price > 1) FROM events GROUP BY left(country, 2));

CREATE VIEW unnamed_tell_rows_apart AS
SELECT n, lag(n) OVER (ORDER BY n) AS l FROM (SELECT left(country, 2), count(*) AS n FROM events GROUP BY left(country, 2));

CREATE VIEW unnamed_beside_qualify AS
SELECT kind, count(*) + 1 FROM events GROUP BY kind QUALIFY rank() OVER (ORDER BY count(*)) = 1;

CREATE VIEW unnamed_in_a_union AS
SELECT country, count(*) + 1 FROM events GROUP BY country UNION SELECT 'x', 1 ORDER BY 2, 1 LIMIT 2;

CREATE VIEW unnamed_of_rows AS
SELECT event_id, user_id + 1, concat(kind, '-'), CASE WHEN user_id > 1 THEN 'a' END FROM events;

CREATE VIEW by_a_struct AS
SELECT payload.user AS u, count(*) AS n, max(price) AS m, max(payload.user.id) AS i FROM events GROUP BY payload.user;

CREATE VIEW by_a_made_struct AS
SELECT struct(kind, price) AS k, count(*) AS n, count(DISTINCT city) AS c, last(city) AS l FROM events GROUP BY struct(kind, price) HAVING count(*) > 1;

CREATE VIEW first_structs AS
SELECT payload.user.id AS i, payload.user AS u, kind, count(*) AS n FROM events GROUP BY payload.user, kind ORDER BY n DESC, kind LIMIT 3;

CREATE VIEW by_a_struct_above AS
SELECT u, sum(n) AS n, count(*) AS c FROM (SELECT payload.user AS u, struct(country, kind) AS k, count(*) AS n FROM events GROUP BY ALL) GROUP BY u;

CREATE VIEW by_a_struct_of_aggregates AS
SELECT p, count(*) AS n FROM (SELECT struct(country AS x, min(user_id) AS y) AS p FROM events GROUP BY country, city) GROUP BY p;

CREATE VIEW by_a_struct_over_a_join AS
SELECT a.payload.user AS u, count(*) AS n FROM events a JOIN events b ON a.user_id = b.user_id AND a.kind = b.kind GROUP BY a.payload.user;

CREATE VIEW lists_in_an_order AS
SELECT country, array_agg(kind ORDER BY user_id) AS x, collect_list(city ORDER BY price DESC, ts DESC) AS y, array_agg(amount ORDER BY city, kind) FILTER (WHERE price > 1 OR user_id = 1) AS z, array_agg(kind ORDER BY user_id)[0] AS f FROM events GROUP BY country;

CREATE VIEW lists_in_an_order_above AS
SELECT country, array_agg(kind ORDER BY n DESC) AS x FROM (SELECT country, kind, count(*) AS n FROM events GROUP BY country, kind) GROUP BY country;

CREATE VIEW lists_in_an_order_over_a_join AS
SELECT a.country, array_agg(b.city ORDER BY b.ts) AS x FROM events a JOIN events b ON a.user_id = b.user_id AND a.kind = b.kind AND b.price = 1.5 GROUP BY a.country;

CREATE VIEW lengths AS
SELECT country, max(ts) - min(ts) AS spread, avg(ts - TIMESTAMP '2024-01-01 00:00:00') AS mean, sum(to_date(ts) - DATE '2024-01-31') AS days, max(to_date(ts)) - min(to_date(ts)) AS d, min(TIMESTAMP '2024-01-01 10:00:00' - ts) FILTER (WHERE kind = 'click') AS least, count(*) AS n FROM events GROUP BY country;

CREATE VIEW length_columns AS
SELECT event_id, ts - TIMESTAMP '2024-01-01 10:30:00.25' AS ago, DATE '2024-02-01' - to_date(ts) AS days, (ts - TIMESTAMP '2024-01-01 00:00:00') * 3 AS thrice, abs(ts - TIMESTAMP '2024-02-01 00:00:00') AS size, -(ts - TIMESTAMP '2024-01-01 00:00:00') AS back FROM events;

CREATE VIEW lengths_of_a_view AS
SELECT country, spread - mean AS more, coalesce(days, d) AS days, CAST(spread AS BIGINT) AS seconds, spread > INTERVAL 1 HOUR AS long FROM lengths WHERE mean IS NOT NULL ORDER BY spread DESC LIMIT 4;

CREATE VIEW lengths_apart AS
SELECT DISTINCT spread AS x FROM lengths UNION SELECT ts - TIMESTAMP '2024-01-01 00:00:00' FROM events ORDER BY x DESC;

CREATE VIEW by_length AS
SELECT to_date(ts) - DATE '2024-01-01' AS day, count(*) AS n, max(spread) AS longest FROM events LEFT JOIN lengths USING (country) GROUP BY to_date(ts) - DATE '2024-01-01';

CREATE VIEW lengths_over_rows AS
SELECT DISTINCT spread, ts_lag FROM (SELECT country, spread, spread - lag(spread) OVER (ORDER BY country) AS ts_lag FROM lengths) ORDER BY spread LIMIT 3;

CREATE VIEW in_zones_of_records AS
SELECT event_id, from_utc_timestamp(ts, CASE city WHEN 'a' THEN 'Europe/Paris' WHEN 'b' THEN '+05:30' ELSE country END) AS there,
       ts AT TIME ZONE CASE city WHEN 'a' THEN 'Asia/Tokyo' ELSE country END AS wall, to_utc_timestamp(ts, coalesce(country, 'UTC')) AS u
FROM events;
CREATE VIEW days_in_zones AS
SELECT CAST(from_utc_timestamp(ts, CASE city WHEN 'a' THEN 'Pacific/Auckland' ELSE kind END) AS DATE) AS day, count(*) AS n
FROM events GROUP BY 1;
CREATE VIEW at_paths AS
SELECT event_id, get_json_object('{"show": [1, {"a": 2}], "click": "c", "x": {"x": 3}}', concat('$.', kind)) AS v,
       get_json_object('[10, 20, 30]', concat('$[', user_id, ']')) AS e,
       get_json_object('[10, 20]', concat('$[', CASE city WHEN 'a' THEN '99999999999999999999' ELSE '0001' END, ']')) AS far
FROM events;
CREATE VIEW times_with_offsets AS
SELECT event_id, to_timestamp(concat('10/Oct/2000:13:55:36 ', s), 'dd/MMM/yyyy:HH:mm:ss Z') AS logged,
       try_to_timestamp(concat('2024-01-02T03:04:05.678', s), 'yyyy-MM-dd\'T\'HH:mm:ss.SSSZ') AS sent,
       to_timestamp(concat('2024-01-02 03:04:05', s), 'yyyy-MM-dd HH:mm:ss[.SSS][XXX]') AS read,
       unix_timestamp(concat('2024-01-02 03:04 ', s), 'yyyy-MM-dd HH:mm VV') AS epoch
FROM (SELECT event_id, CASE city WHEN 'a' THEN '-0700' WHEN 'b' THEN '+01:00' WHEN 'B' THEN 'Z' ELSE country END AS s FROM events);
CREATE VIEW far_apart AS
SELECT country, sum(2 * 6371 * asin(sqrt(pow(sin(radians(a - b) / 2), 2) + cos(radians(a)) * cos(radians(b))))) AS km,
       max(atan2(a, b)) AS angle, max(hypot(a, b)) AS length, max(acos(a)) AS c, sum(tan(a)) AS t, max(degrees(b)) AS d, max(sinh(b)) AS h
FROM (SELECT country, user_id % 90 AS a, lag(user_id % 90) OVER (PARTITION BY country ORDER BY kafka_offset) AS b FROM events)
GROUP BY country;
CREATE VIEW newest_in_a_subquery AS
SELECT user_id, kind, rn
FROM (SELECT user_id, kind, row_number() OVER (PARTITION BY user_id ORDER BY kafka_offset DESC) AS rn
      FROM (SELECT user_id, kind, kafka_offset FROM events)) WHERE rn <= 2;
CREATE VIEW ties_in_a_subquery AS
SELECT *, row_number() OVER (PARTITION BY city ORDER BY kind) AS rn, lag(event_id) OVER (PARTITION BY city ORDER BY ts DESC) AS l
FROM (SELECT event_id, city, kind, ts, kafka_offset FROM events);
CREATE VIEW last_in_a_subquery AS
SELECT city, last(kind) AS k, first(event_id) AS e, collect_list(user_id) AS u
FROM (SELECT KAFKA_OFFSET, city, kind, user_id, event_id FROM (SELECT city, kind, user_id, event_id, kafka_offset FROM events)) GROUP BY city;
CREATE VIEW as_of_each_minute AS
WITH cal AS (SELECT explode(sequence(TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-01 12:00:00', INTERVAL 30 MINUTES)) AS t)
SELECT cal.t, e.country, max_by(e.kind, e.ts) AS k, last(e.event_id) AS l, collect_list(e.city) AS c, listagg(e.city) AS s
FROM cal JOIN events e ON e.ts <= cal.t GROUP BY cal.t, e.country;
CREATE VIEW last_of_tags AS
SELECT tag, last(event_id) AS l, first(e.kind) FILTER (WHERE tag <> 'x') AS f, min_by(e.event_id, tag) AS m
FROM (SELECT event_id, kind, payload, kafka_offset FROM events WHERE city <> 'b') e LATERAL VIEW OUTER explode(e.payload.tags) t AS tag GROUP BY tag;

CREATE VIEW hours_within_records AS
SELECT hour, city, count(*) AS n, count(DISTINCT event_id) AS e
FROM (SELECT event_id, city, explode(sequence(date_trunc('hour', ts), date_trunc('hour', until), INTERVAL 1 HOUR)) AS hour
      FROM (SELECT event_id, city, ts, timestamp_micros(unix_micros(ts) + user_id * 3600000000) AS until FROM events)
      WHERE until - ts < INTERVAL 31 DAYS)
GROUP BY hour, city;
CREATE VIEW quarters_of_records AS
SELECT event_id, q FROM events
LATERAL VIEW OUTER explode(CASE WHEN user_id < 10 THEN sequence(ts, ts + INTERVAL 1 HOUR, INTERVAL 15 MINUTES) END) t AS q WHERE kind = 'show';
CREATE VIEW numbers_of_records AS
SELECT n, count(*) AS c, min(city) AS m FROM (SELECT city, explode(if(user_id BETWEEN 0 AND 5, sequence(user_id, 3), array())) AS n FROM events) GROUP BY n;
CREATE VIEW steps_of_records AS
SELECT event_id, sequence(user_id, 10, 4) AS up, sequence(CAST(user_id AS BIGINT), CAST(-6 AS BIGINT), -3) AS down FROM events WHERE user_id BETWEEN -100 AND 100;

CREATE VIEW of_late AS
SELECT event_id, ts, now() > ts AS past, CAST(now() AS DATE) = current_date AS today, current_timestamp() - ts > INTERVAL 9000 DAYS AS old,
       CAST(localtimestamp() AS TIMESTAMP) = now() AS utc, unix_timestamp() > user_id AS later, year(current_date()) > 2000 AS y
FROM events WHERE ts > now() - INTERVAL 12 YEARS AND city <> 'b';
CREATE VIEW counted_of_late AS
SELECT city, count(*) AS n, sum(amount) AS a, count(DISTINCT user_id) AS u, last(kind) AS k, min(price) AS p, max(ts) < now() AS past
FROM events WHERE date_trunc('hour', ts) > current_timestamp - INTERVAL 12 YEARS GROUP BY city HAVING max(ts) > now() - INTERVAL 13 YEARS;
CREATE VIEW new_and_old AS
SELECT CASE WHEN ts > now() - INTERVAL 12 YEARS THEN 'new' WHEN ts <= now() THEN 'old' ELSE 'none' END AS c, count(*) AS n,
       count(*) FILTER (WHERE ts > now() - INTERVAL 12 YEARS AND city = 'a') AS f FROM events GROUP BY 1;
CREATE VIEW newest_of_late AS
SELECT event_id, row_number() OVER (PARTITION BY city ORDER BY ts DESC, event_id) AS rn FROM events
WHERE ts BETWEEN now() - INTERVAL 12 YEARS AND now() QUALIFY rn <= 3;
CREATE VIEW of_views_of_late AS SELECT y, count(*) AS n FROM of_late WHERE ts < now() GROUP BY y;
CREATE VIEW hours_of_late AS
SELECT window(ts, '2 hours', '1 hour').start AS h, count(*) AS n FROM events WHERE ts > now() - INTERVAL 12 YEARS GROUP BY window(ts, '2 hours', '1 hour');
CREATE VIEW joined_of_late AS
SELECT a.city, count(*) AS n FROM events a JOIN events b ON a.event_id = b.event_id AND b.ts > now() - INTERVAL 12 YEARS GROUP BY a.city;
