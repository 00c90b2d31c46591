-- The SELECTs that answer the cases, each under its case's name; {name} stands for the case's source of that name.
-- What follows a name says how else the same rows are had, where the plain SELECT is not served yet.

-- arroyo/active_drivers
SELECT count(*) AS drivers FROM (SELECT driver_id FROM {cars} GROUP BY driver_id HAVING count(*) > 85);

-- arroyo/aggregates
SELECT min(counter) AS min, max(counter) AS max, sum(counter) AS sum, count(*) AS count, avg(counter) AS avg
FROM {impulse};

-- arroyo/grouped_aggregates
SELECT counter % 5 AS counter_mod, min(counter) AS min, max(counter) AS max, sum(counter) AS sum, count(*) AS count,
       avg(counter) AS avg
FROM {impulse} GROUP BY counter % 5;

-- arroyo/filter_updating_aggregates
SELECT * FROM (SELECT count(DISTINCT subtask_index) AS subtasks FROM {impulse}) WHERE subtasks >= 1;

-- arroyo/hourly_by_event_type
SELECT event_type, window.start AS hour, count(*) AS count FROM {cars} GROUP BY event_type, window(timestamp, '1 hour');

-- arroyo/tight_watermark
SELECT window.end AS timestamp, count(*) AS count FROM {cars} GROUP BY window(timestamp, '1 hour');

-- arroyo/month_loose_watermark
SELECT window.start AS month, count(*) AS count FROM {cars} GROUP BY window(timestamp, '30 days');

-- arroyo/most_active_driver_last_hour
SELECT * FROM (
  SELECT start, end, driver_id, count,
         row_number() OVER (PARTITION BY start ORDER BY count DESC, driver_id DESC) AS row_number
  FROM (
    SELECT window.start AS start, window.end AS end, driver_id, count(*) AS count
    FROM {cars} GROUP BY window(timestamp, '1 hour', '1 minute'), driver_id))
WHERE row_number = 1;

-- arroyo/most_active_driver_last_hour_unaligned
SELECT * FROM (
  SELECT driver_id, count, start, end,
         row_number() OVER (PARTITION BY start ORDER BY count DESC, driver_id DESC) AS row_number
  FROM (
    SELECT driver_id, count(*) AS count, window.start AS start, window.end AS end
    FROM {cars} GROUP BY driver_id, window(timestamp, '1 hour', '40 minutes')))
WHERE row_number = 1;

-- arroyo/sliding_window_end
SELECT count(*) AS count, min(counter) AS min, max(counter) AS max, window.start AS start, window.end AS end
FROM {impulse} GROUP BY window(timestamp, '10 seconds', '2 seconds');

-- arroyo/session_window
SELECT session_window.start AS start, session_window.end AS end, user_id, count(*) AS rows
FROM (SELECT timestamp, CASE WHEN counter % 10 = 0 THEN 0 ELSE counter END AS user_id FROM {impulse})
GROUP BY session_window(timestamp, '20 seconds'), user_id;

-- arroyo/global_session_window
SELECT session_window.start AS start, session_window.end AS end, count(*) AS rows
FROM {impulse} GROUP BY session_window(timestamp, '20 seconds');

-- arroyo/reinvoke_window_function
SELECT start, end, count(DISTINCT driver_id) AS drivers
FROM (
  SELECT window.start AS start, window.end AS end, driver_id, count(*) AS pickups
  FROM {cars} WHERE event_type = 'pickup' GROUP BY window(timestamp, '1 hour'), driver_id)
WHERE pickups > 2
GROUP BY start, end;

-- flink/docs/tumble-sum
SELECT window.start AS window_start, window.end AS window_end, sum(price) AS total_price
FROM {Bid} GROUP BY window(bidtime, '10 minutes');

-- flink/docs/hop-sum
SELECT window.start AS window_start, window.end AS window_end, sum(price) AS total_price
FROM {Bid} GROUP BY window(bidtime, '10 minutes', '5 minutes');

-- flink/docs/cumulate-sum
SELECT window_start, window_end, sum(price) AS total_price
FROM (
  SELECT bidtime, price, window_start, window_end
  FROM (SELECT bidtime, price, window(bidtime, '10 minutes').start AS window_start FROM {Bid})
  LATERAL VIEW explode(array(
    window_start + INTERVAL 2 MINUTES, window_start + INTERVAL 4 MINUTES, window_start + INTERVAL 6 MINUTES,
    window_start + INTERVAL 8 MINUTES, window_start + INTERVAL 10 MINUTES)) e AS window_end)
WHERE bidtime < window_end
GROUP BY window_start, window_end;

-- flink/docs/session-per-supplier
SELECT session_window.start AS window_start, session_window.end AS window_end, supplier_id, sum(price) AS total_price
FROM {Bid} GROUP BY session_window(bidtime, '2 minutes'), supplier_id;

-- flink/docs/session-global
SELECT session_window.start AS window_start, session_window.end AS window_end, sum(price) AS total_price
FROM {Bid} GROUP BY session_window(bidtime, '2 minutes');

-- flink/docs/tumble-grouping-sets
SELECT window.start AS window_start, window.end AS window_end, supplier_id, sum(price) AS total_price
FROM {Bid} GROUP BY window(bidtime, '10 minutes'), GROUPING SETS ((supplier_id), ());

-- flink/docs/window-topn-after-agg
SELECT * FROM (
  SELECT *, row_number() OVER (PARTITION BY window_start, window_end ORDER BY price DESC, supplier_id) AS rownum
  FROM (
    SELECT window.start AS window_start, window.end AS window_end, supplier_id, sum(price) AS price, count(*) AS cnt
    FROM {BidTop} GROUP BY window(bidtime, '10 minutes'), supplier_id))
WHERE rownum <= 3;

-- flink/docs/window-topn
SELECT bidtime, price, item, supplier_id, window_start, window_end, rownum
FROM (
  SELECT *, row_number() OVER (
    PARTITION BY window_start, window_end ORDER BY price DESC, kafka_partition, kafka_offset) AS rownum
  FROM (
    SELECT *, kafka_partition, kafka_offset, window(bidtime, '10 minutes').start AS window_start,
           window(bidtime, '10 minutes').end AS window_end
    FROM {BidTop}))
WHERE rownum <= 3;

-- flink/docs/window-dedup-last
SELECT bidtime, price, item, window_start, window_end
FROM (
  SELECT bidtime, price, item, window(bidtime, '10 minutes').start AS window_start,
         window(bidtime, '10 minutes').end AS window_end,
         row_number() OVER (
           PARTITION BY window(bidtime, '10 minutes').start ORDER BY bidtime DESC, kafka_partition, kafka_offset) AS place
  FROM {Bid3})
WHERE place = 1;

-- flink/test/window-aggregate-tumble
SELECT name, window.start AS window_start, window.end AS window_end, count(*) AS cnt, sum(a_int) AS sum_int,
       count(DISTINCT comment) AS distinct_cnt
FROM {window_source_t} GROUP BY name, window(rowtime, '5 seconds');

-- flink/test/window-aggregate-tumble-offset
SELECT name, window.start AS window_start, window.end AS window_end, count(*) AS cnt, sum(a_int) AS sum_int,
       count(DISTINCT comment) AS distinct_cnt
FROM {window_source_t} GROUP BY name, window(rowtime, '5 seconds', '5 seconds', '1 second');

-- flink/test/window-aggregate-hop
SELECT name, window.start AS window_start, window.end AS window_end, count(*) AS cnt, sum(a_int) AS sum_int,
       count(DISTINCT comment) AS distinct_cnt
FROM {window_source_t} GROUP BY name, window(rowtime, '10 seconds', '5 seconds');

-- flink/test/window-aggregate-hop-offset
SELECT name, window.start AS window_start, window.end AS window_end, count(*) AS cnt, sum(a_int) AS sum_int,
       count(DISTINCT comment) AS distinct_cnt
FROM {window_source_t} GROUP BY name, window(rowtime, '10 seconds', '5 seconds', '1 second');

-- flink/test/window-aggregate-cumulate
SELECT name, window_start, window_end, count(*) AS cnt, sum(a_int) AS sum_int, count(DISTINCT comment) AS distinct_cnt
FROM (
  SELECT *
  FROM (SELECT *, window(rowtime, '15 seconds').start AS window_start FROM {window_source_t})
  LATERAL VIEW explode(array(
    window_start + INTERVAL 5 SECONDS, window_start + INTERVAL 10 SECONDS, window_start + INTERVAL 15 SECONDS
  )) e AS window_end)
WHERE rowtime < window_end
GROUP BY name, window_start, window_end;

-- flink/test/group-session-window
SELECT name, count(*) AS cnt FROM {source_t} GROUP BY name, session_window(rowtime, '3 seconds');

-- flink/test/group-aggregate-simple
SELECT b, count(*) AS cnt, avg(a) FILTER (WHERE a > 1) AS avg_a, min(c) AS min_c FROM {g1} GROUP BY b;

-- flink/test/group-aggregate-distinct
SELECT e, count(DISTINCT a) FILTER (WHERE b > 10) AS cnt_a1, count(DISTINCT a) AS cnt_a2, sum(DISTINCT a) AS sum_a,
       sum(DISTINCT b) AS sum_b, CAST(avg(b) AS BIGINT) AS avg_b, count(DISTINCT d) AS cnt_d
FROM {g2} GROUP BY e;

-- risingwave/streaming/aggregate/distinct_agg#1
SELECT count(DISTINCT v1) AS c_d_v1 FROM {t};

-- risingwave/streaming/aggregate/distinct_agg#2
SELECT v2, count(DISTINCT v1) AS c_d_v1 FROM {t} GROUP BY v2;

-- risingwave/streaming/aggregate/distinct_agg#3
SELECT v2, count(DISTINCT v1) AS c_d_v1, max(v3) AS max_v3 FROM {t} GROUP BY v2;

-- risingwave/streaming/aggregate/distinct_agg#4
SELECT v1, count(DISTINCT v2) AS c_d_v2, count(DISTINCT v3) AS c_d_v3, max(v2) AS max_v2 FROM {t} GROUP BY v1;

-- risingwave/streaming/aggregate/distinct_agg#5
SELECT v1, count(DISTINCT v2) AS c_d_v2, min(DISTINCT v2) AS min_d_v2, count(DISTINCT v3) AS c_d_v3, max(v3) AS max_v3
FROM {t} GROUP BY v1;

-- risingwave/streaming/aggregate/two_phase_agg#1
SELECT min(v3) AS c1, sum(v1) AS c2 FROM {t} GROUP BY v1, v3, v2;

-- risingwave/streaming/aggregate/two_phase_agg#2
SELECT min(v3) AS c1, sum(v1) AS c2, min(v1) AS c3 FROM {t} GROUP BY v1;

-- risingwave/streaming/basic#1
SELECT * FROM {t1};

-- risingwave/streaming/basic#2
SELECT round(avg(v1), 1) AS avg_v1, sum(v2) AS sum_v2, count(v3) AS count_v3 FROM {t1};

-- risingwave/streaming/basic#3
SELECT v1, v2, v3 FROM {t1};

-- risingwave/streaming/basic#4
SELECT round(avg(v1), 1) AS avg_v1, sum(v2) AS sum_v2, count(v3) AS count_v3 FROM {t1};

-- risingwave/streaming/basic#5
SELECT sum(v1) AS sum_v1, min(v1) AS min_v1, max(v1) AS max_v1, v3 FROM {t4} GROUP BY v3;

-- risingwave/streaming/basic#7
SELECT v2, avg(v1) FILTER (WHERE false) AS avg_v1 FROM {t1} GROUP BY v2;

-- risingwave/streaming/time_window#1
SELECT row_id, uid, created_at, window(created_at, '30 minutes').start AS window_start,
       window(created_at, '30 minutes').end AS window_end
FROM {t1};

-- risingwave/streaming/time_window#2
SELECT row_id, uid, created_at, w.start AS window_start, w.end AS window_end
FROM (SELECT *, window(created_at, '30 minutes', '15 minutes') AS w FROM {t1});

-- risingwave/streaming/time_window#2 otherwise
SELECT row_id, uid, created_at, window.start AS window_start, window.end AS window_end
FROM {t1}
GROUP BY kafka_partition, kafka_offset, row_id, uid, created_at, window(created_at, '30 minutes', '15 minutes');

-- risingwave/streaming/time_window#3
SELECT sum(v) AS sum_v, window.start AS window_start FROM {t1} GROUP BY window(created_at, '30 minutes');

-- risingwave/streaming/time_window#4
SELECT uid, sum(v) AS sum_v, window.start AS window_start FROM {t1} GROUP BY window(created_at, '30 minutes'), uid;

-- risingwave/streaming/time_window#5
SELECT sum(v) AS sum_v, window.start AS window_start FROM {t1} GROUP BY window(created_at, '30 minutes', '15 minutes');

-- risingwave/streaming/time_window#6
SELECT uid, sum(v) AS sum_v, window.start AS window_start
FROM {t1} GROUP BY window(created_at, '30 minutes', '15 minutes'), uid;

-- risingwave/streaming/time_window#7
SELECT uid, sum(v) AS sum_v, window.start AS window_start
FROM {t1} GROUP BY window(created_at, '2 days', '1 day'), uid;

-- risingwave/streaming/watermark#1
SELECT ts, foo FROM {t};

-- risingwave/streaming/watermark#2
SELECT ts, number FROM {t} LATERAL VIEW explode(sequence(1, 3)) n AS number;

-- risingwave/streaming/watermark_ttl_append_only_rowid#1
SELECT ts, v FROM {ttl_ao_rowid_ev};
