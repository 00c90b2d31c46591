-- The SELECTs that answer the cases of joins and tables, each under its cases' names; {name} stands for a case's source
-- of that name. An as-of join is a LATERAL subquery: of the rows that satisfy the inequality the nearest one, and of
-- several equally near ones the one with the least primary key.

-- arroyo/windowed_inner_join
SELECT dropoffs.hour, drivers, pickups
FROM (
  SELECT window.start AS hour, count(DISTINCT driver_id) AS drivers
  FROM {cars} WHERE event_type = 'dropoff' GROUP BY window(timestamp, '1 hour')) AS dropoffs
JOIN (
  SELECT window.start AS hour, count(DISTINCT driver_id) AS pickups
  FROM {cars} WHERE event_type = 'pickup' GROUP BY window(timestamp, '1 hour')) AS pickups
ON dropoffs.hour = pickups.hour;

-- arroyo/windowed_outer_join
SELECT dropoffs.hour, drivers, pickups
FROM (
  SELECT window.start AS hour, count(DISTINCT driver_id) AS drivers
  FROM {cars} WHERE event_type = 'dropoff' GROUP BY window(timestamp, '1 hour')) AS dropoffs
FULL JOIN (
  SELECT window.start AS hour, count(DISTINCT driver_id) AS pickups
  FROM {cars} WHERE event_type = 'pickup' GROUP BY window(timestamp, '1 hour')) AS pickups
ON dropoffs.hour = pickups.hour;

-- arroyo/offset_impulse_join
SELECT a.start, a.counter
FROM (
  SELECT window.start AS start, counter, count(*) AS count FROM {impulse} GROUP BY window(timestamp, '1 second'), counter
) AS a
JOIN (
  SELECT window.start AS start, counter, count(*) AS count FROM {impulse} GROUP BY window(timestamp, '1 second'), counter
) AS b ON a.counter = b.counter AND a.start = b.start;

-- arroyo/updating_inner_join
SELECT a.counter AS left_count, b.counter AS right_count
FROM {impulse} AS a
JOIN (SELECT * FROM {impulse} WHERE counter % 2 = 1) AS b ON a.counter = b.counter;

-- arroyo/debezium_agg
SELECT concat('p_', product_name) AS id, count(*) AS c, count(DISTINCT customer_name) AS d, sum(quantity + 5) + 10 AS q
FROM {aggregate_updates} GROUP BY concat('p_', product_name);

-- flink/docs/window-full-join
WITH l AS (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {LeftTable}),
r AS (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {RightTable})
SELECT l.num AS l_num, l.id AS l_id, r.num AS r_num, r.id AS r_id,
       coalesce(l.window_start, r.window_start) AS window_start, coalesce(l.window_end, r.window_end) AS window_end
FROM l FULL JOIN r ON l.num = r.num AND l.window_start = r.window_start AND l.window_end = r.window_end;

-- flink/docs/window-semi-join
WITH l AS (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {LeftTable}),
r AS (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {RightTable})
SELECT * FROM l
WHERE EXISTS (
  SELECT * FROM r WHERE l.num = r.num AND l.window_start = r.window_start AND l.window_end = r.window_end);

-- flink/docs/window-anti-join
WITH l AS (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {LeftTable}),
r AS (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {RightTable})
SELECT * FROM l
WHERE NOT EXISTS (
  SELECT * FROM r WHERE l.num = r.num AND l.window_start = r.window_start AND l.window_end = r.window_end);

-- flink/docs/temporal-join-latest-rates
SELECT o.amount, o.currency, r.rate, o.amount * r.rate AS amount_rate
FROM {Orders_pt} AS o JOIN {LatestRates} FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency;

-- flink/docs/lateral-snapshot-join
SELECT o.order_id, o.currency, o.amount, r.rate
FROM {orders_ls} AS o JOIN {currency_rates} FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency;

-- flink/test/temporal-join-table-join
SELECT o.amount * r.rate AS amount
FROM {Orders} AS o JOIN {RatesHistory} FOR SYSTEM_TIME AS OF o.rowtime AS r ON o.currency = r.currency;

-- flink/test/interval-join-event-time
SELECT o.id AS order_id, o.order_ts, s.shipment_ts
FROM {orders_t} AS o JOIN {shipments_t} AS s ON o.id = s.order_id
WHERE o.order_ts BETWEEN s.shipment_ts - INTERVAL 5 SECONDS AND s.shipment_ts + INTERVAL 5 SECONDS;

-- flink/test/interval-join-negative-interval
SELECT o.id AS order_id, o.order_ts, s.shipment_ts
FROM {orders_t} AS o LEFT JOIN {shipments_t} AS s
ON o.id = s.order_id
AND o.order_ts BETWEEN s.shipment_ts + INTERVAL 10 SECONDS AND s.shipment_ts + INTERVAL 5 SECONDS;

-- flink/test/window-join-inner
SELECT l.window_start, l.window_end, l.name, l.id AS l_id, l.num AS l_num, r.id AS r_id, r.num AS r_num
FROM (
  SELECT *, window(row_time, '5 seconds').start AS window_start, window(row_time, '5 seconds').end AS window_end
  FROM {source_one_t}) AS l
JOIN (
  SELECT *, window(row_time, '5 seconds').start AS window_start, window(row_time, '5 seconds').end AS window_end
  FROM {source_two_t}) AS r
ON l.name = r.name AND l.window_start = r.window_start AND l.window_end = r.window_end;

-- flink/test/window-join-left
SELECT l.window_start, l.window_end, l.name, l.id AS l_id, l.num AS l_num, r.id AS r_id, r.num AS r_num
FROM (
  SELECT *, window(row_time, '5 seconds').start AS window_start, window(row_time, '5 seconds').end AS window_end
  FROM {source_one_t}) AS l
LEFT JOIN (
  SELECT *, window(row_time, '5 seconds').start AS window_start, window(row_time, '5 seconds').end AS window_end
  FROM {source_two_t}) AS r
ON l.name = r.name AND l.window_start = r.window_start AND l.window_end = r.window_end;

-- flink/test/window-join-right
SELECT l.w.start AS window_start, l.w.end AS window_end, l.name, l.id AS l_id, l.num AS l_num, r.id AS r_id,
       r.num AS r_num
FROM (SELECT *, window(row_time, '5 seconds') AS w FROM {source_one_t}) AS l
RIGHT JOIN (SELECT *, window(row_time, '5 seconds') AS w FROM {source_two_t}) AS r ON l.name = r.name AND l.w = r.w;

-- flink/test/window-join-full
SELECT l.w.start AS window_start, l.w.end AS window_end, l.name, l.id AS l_id, l.num AS l_num, r.id AS r_id,
       r.num AS r_num
FROM (SELECT *, window(row_time, '5 seconds') AS w FROM {source_one_t}) AS l
FULL JOIN (SELECT *, window(row_time, '5 seconds') AS w FROM {source_two_t}) AS r ON l.name = r.name AND l.w = r.w;

-- flink/test/window-join-hop
SELECT l.w.start AS window_start, l.w.end AS window_end, l.name, l.id AS l_id, l.num AS l_num, r.id AS r_id,
       r.num AS r_num
FROM (SELECT *, window(row_time, '10 seconds', '5 seconds') AS w FROM {source_one_t}) AS l
JOIN (SELECT *, window(row_time, '10 seconds', '5 seconds') AS w FROM {source_two_t}) AS r
ON l.name = r.name AND l.w = r.w;

-- risingwave/streaming/aggregate/basic_agg#3
-- risingwave/streaming/aggregate/basic_agg#5
SELECT count(*) AS cnt, sum(id) AS sum, CASE WHEN count(*) > 0 THEN sort_array(array_agg(id)) END AS arr
FROM {t1};

-- risingwave/streaming/aggregate/basic_agg#4
-- risingwave/streaming/aggregate/basic_agg#6
SELECT count(*) AS cnt, sum(id) AS sum, sort_array(array_agg(id)) AS arr FROM {t1} GROUP BY id;

-- risingwave/streaming/bug_fixes/issue_8084#1
SELECT t1.* FROM {t} AS t1 FULL JOIN {t} AS t2 ON t1.a = t2.a;

-- risingwave/streaming/delta_join/delta_join_upstream_no_index#1
SELECT * FROM {a} AS a JOIN {b} AS b ON a.a1 = b.b1;

-- risingwave/streaming/demo/ad_ctr#1
SELECT round(CAST(ad_clicks.clicks_count AS DOUBLE) / ad_impressions.impressions_count, 2) AS ctr
FROM (SELECT ad_id, count(*) AS impressions_count FROM {ad_impression} GROUP BY ad_id) AS ad_impressions
JOIN (
  SELECT ai.ad_id, count(*) AS clicks_count
  FROM {ad_click} AS ac LEFT JOIN {ad_impression} AS ai ON ac.bid_id = ai.bid_id
  GROUP BY ai.ad_id) AS ad_clicks
ON ad_impressions.ad_id = ad_clicks.ad_id
WHERE ad_clicks.ad_id = 7;

-- risingwave/streaming/demo/ad_ctr#2
SELECT ac.ad_id, round(CAST(ac.clicks_count AS DOUBLE) / ai.impressions_count, 2) AS ctr, ai.window_end
FROM (
  SELECT ad_id, count(*) AS impressions_count, window.end AS window_end
  FROM {ad_impression} GROUP BY ad_id, window(impression_timestamp, '1 minute')) AS ai
JOIN (
  SELECT ai.ad_id, count(*) AS clicks_count, ai.window_end
  FROM (SELECT *, window(click_timestamp, '1 minute').end AS window_end FROM {ad_click}) AS ac
  JOIN (SELECT *, window(impression_timestamp, '1 minute').end AS window_end FROM {ad_impression}) AS ai
  ON ai.bid_id = ac.bid_id AND ai.window_end = ac.window_end
  GROUP BY ai.ad_id, ai.window_end) AS ac
ON ai.ad_id = ac.ad_id AND ai.window_end = ac.window_end;

-- risingwave/streaming/join/join#1
SELECT t1.v1, t1.v2, t1.v3, t2.v1 AS v10, t2.v2 AS v20, t2.v3 AS v30
FROM {t1} AS t1 INNER JOIN {t2} AS t2 ON t1.v1 = t2.v1;

-- risingwave/streaming/join/join#2
SELECT t3.v1, t3.v2, t3.v3, t4.v1 AS v10, t4.v2 AS v20, t4.v3 AS v30
FROM {t3} AS t3 LEFT JOIN {t4} AS t4 ON t3.v1 = t4.v1;

-- risingwave/streaming/join/join#3
SELECT t5.v1, t5.v2, t5.v3, t6.v1 AS v10, t6.v2 AS v20, t6.v3 AS v30
FROM {t5} AS t5 RIGHT JOIN {t6} AS t6 ON t5.v1 = t6.v1;

-- risingwave/streaming/join/join#4
SELECT t7.v1, t7.v2, t7.v3, t8.v1 AS v10, t8.v2 AS v20, t8.v3 AS v30
FROM {t7} AS t7 FULL JOIN {t8} AS t8 ON t7.v1 = t8.v1;

-- risingwave/streaming/join/join#5
SELECT t9.v1, t9.v2, t9.v3, t10.v1 AS v10, t10.v2 AS v20, t10.v3 AS v30
FROM {t9} AS t9 FULL JOIN {t10} AS t10 ON t9.v1 = t10.v1 AND t9.v2 > t10.v2;

-- risingwave/streaming/join/join-3way#7
SELECT v1, v3, v5 FROM {t1} AS t1, {t2} AS t2, {t3} AS t3 WHERE t1.v1 = t2.v3 AND t1.v1 = t3.v5;

-- risingwave/streaming/join/asof_join#8
-- risingwave/streaming/join/asof_join#9
-- risingwave/streaming/join/asof_join#10
-- risingwave/streaming/join/asof_join#11
-- risingwave/streaming/join/asof_join#12
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t1.v4 AS t1_v4, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t1} AS t1, LATERAL (
  SELECT * FROM {t2} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 <= t2.v2 ORDER BY t2.v2, t2.v3 LIMIT 1) AS t2;

-- risingwave/streaming/join/asof_join#15
-- risingwave/streaming/join/asof_join#16
-- risingwave/streaming/join/asof_join#17
-- risingwave/streaming/join/asof_join#18
-- risingwave/streaming/join/asof_join#19
-- risingwave/streaming/join/asof_join#20
-- risingwave/streaming/join/asof_join#21
-- risingwave/streaming/join/asof_join#22
-- risingwave/streaming/join/asof_join#26
-- risingwave/streaming/join/asof_join#27
-- risingwave/streaming/join/asof_join#28
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t1} AS t1, LATERAL (
  SELECT * FROM {t2} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 <= t2.v2 ORDER BY t2.v2, t2.v3 LIMIT 1) AS t2;

-- risingwave/streaming/join/asof_join#29
-- risingwave/streaming/join/asof_join#33
-- risingwave/streaming/join/asof_join#34
-- risingwave/streaming/join/asof_join#35
-- risingwave/streaming/join/asof_join#50
-- risingwave/streaming/join/asof_join#51
-- risingwave/streaming/join/asof_join#52
-- risingwave/streaming/join/asof_join#53
-- risingwave/streaming/join/asof_join#55
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t1} AS t1 LEFT JOIN LATERAL (
  SELECT * FROM {t2} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 > t2.v2 ORDER BY t2.v2 DESC, t2.v3 LIMIT 1) AS t2 ON true;

-- risingwave/streaming/join/asof_join#37
-- risingwave/streaming/join/asof_join#40
-- risingwave/streaming/join/asof_join#41
-- risingwave/streaming/join/asof_join#42
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t1} AS t1, LATERAL (
  SELECT * FROM {t2} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 >= t2.v2 ORDER BY t2.v2 DESC, t2.v3 LIMIT 1) AS t2;

-- risingwave/streaming/join/asof_join#43
-- risingwave/streaming/join/asof_join#44
-- risingwave/streaming/join/asof_join#48
-- risingwave/streaming/join/asof_join#49
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t1} AS t1 LEFT JOIN LATERAL (
  SELECT * FROM {t2} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 < t2.v2 ORDER BY t2.v2, t2.v3 LIMIT 1) AS t2 ON true;

-- risingwave/streaming/join/asof_join#56
-- risingwave/streaming/join/asof_join#58
-- risingwave/streaming/join/asof_join#59
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t_left_gt} AS t1, LATERAL (
  SELECT * FROM {t_right_gt} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 > t2.v2 ORDER BY t2.v2 DESC, t2.v3 LIMIT 1) AS t2;

-- risingwave/streaming/join/asof_join#60
SELECT t1.v1 AS t1_v1, t1.v2 AS t1_v2, t1.v3 AS t1_v3, t2.v1 AS t2_v1, t2.v2 AS t2_v2, t2.v3 AS t2_v3
FROM {t_left_ge} AS t1, LATERAL (
  SELECT * FROM {t_right_ge} AS t2 WHERE t2.v1 = t1.v1 AND t1.v2 >= t2.v2 ORDER BY t2.v2 DESC, t2.v3 LIMIT 1) AS t2;

-- risingwave/streaming/null_safe_equal_join#1
SELECT * FROM {t1} AS t1
WHERE EXISTS (
  SELECT t2.x FROM {t2} AS t2 LEFT JOIN {t3} AS t3 ON t2.x = t3.x AND t2.y = t3.y WHERE t1.x = t2.x);

-- risingwave/streaming/null_safe_equal_join#2
SELECT * FROM {t1} AS t1 JOIN {t2} AS t2 ON v1 IS NOT DISTINCT FROM v2;

-- risingwave/streaming/outer_join#1
-- risingwave/streaming/outer_join#2
-- risingwave/streaming/outer_join#3
-- risingwave/streaming/outer_join#4
SELECT t1.id AS t1_id, t2.id AS t2_id FROM {t1} AS t1 LEFT JOIN {t2} AS t2 ON t1.id = t2.id;

-- The next two look up at arrival in RisingWave; their tables do not change afterwards, so a join tells the same.

-- risingwave/streaming/temporal_join/append_only/issue_15257#1
SELECT id1, a1, id2, a2 FROM {stream} AS s LEFT JOIN {version} AS v ON id1 = id2 AND a1 > a2;

-- risingwave/streaming/temporal_join/append_only/temporal_join_non_loopup_cond#3
SELECT id1, a1, id2, a2 FROM {stream} AS s JOIN {version} AS v ON id1 = id2 AND a1 > a2;

-- risingwave/streaming/time_window_join#1
SELECT l.num AS l_num, l.id AS l_id, r.num AS r_num, r.id AS r_id,
       coalesce(l.window_start, r.window_start) AS window_start, coalesce(l.window_end, r.window_end) AS window_end
FROM (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {lefttable}) AS l
FULL JOIN (
  SELECT *, window(row_time, '5 minutes').start AS window_start, window(row_time, '5 minutes').end AS window_end
  FROM {righttable}) AS r
ON l.num = r.num AND l.window_start = r.window_start AND l.window_end = r.window_end;
