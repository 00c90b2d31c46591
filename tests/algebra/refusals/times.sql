-- decades between two times
CREATE VIEW v AS
SELECT country, timestampdiff(DECADE, min(hour), max(hour)) AS m FROM hourly GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, timestampdiff(YEAR, min(hour), max(hour)) div 10 AS m FROM hourly GROUP BY country;

-- an INTERVAL as it is written
CREATE VIEW v AS
SELECT event_id, INTERVAL 1 DAY AS a FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, ts - before AS waited FROM (SELECT event_id, ts, ts - INTERVAL 1 DAY AS before FROM events);

-- a list of intervals
CREATE VIEW v AS
SELECT event_id, array(INTERVAL 1 DAY, INTERVAL 2 DAYS) AS a FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, ts - before AS waited FROM (SELECT event_id, ts, kafka_timestamp AS before FROM events);

-- a time that engines read differently
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE ts > '1.2.2024';
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE ts > '2024-01-31';

-- the seconds of a difference
CREATE VIEW v AS
SELECT extract(EPOCH FROM max(ts) - min(ts)) AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(max(ts) - min(ts) AS BIGINT) AS s FROM events;

-- a difference by an interval
CREATE VIEW v AS
SELECT (max(ts) - min(ts)) / INTERVAL 1 MINUTE AS m FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(max(ts) - min(ts) AS BIGINT) / 60 AS m FROM events;

-- a difference and a number
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE day - DATE '2024-01-01' > 3;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE day - DATE '2024-01-01' > INTERVAL 3 DAYS;

-- a difference and months
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kafka_timestamp - ts > INTERVAL 1 MONTH;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kafka_timestamp - ts > INTERVAL 30 DAYS;

-- a difference as text
CREATE VIEW v AS
SELECT event_id, CAST(kafka_timestamp - ts AS STRING) AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(CAST(kafka_timestamp - ts AS BIGINT) AS STRING) AS s FROM events;

-- a time without a zone and a difference
CREATE VIEW v AS
SELECT event_id, CAST(ts AS TIMESTAMP_NTZ) + (kafka_timestamp - ts) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(CAST(CAST(ts AS TIMESTAMP_NTZ) AS TIMESTAMP) + (kafka_timestamp - ts) AS TIMESTAMP_NTZ) AS t FROM events;

-- a time of day
CREATE VIEW v AS
SELECT event_id, TIME '10:00:00' AS t FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, '10:00:00' AS t FROM events;

-- an interval of quarters
CREATE VIEW v AS
SELECT event_id, ts + INTERVAL 2 QUARTERS AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, ts + INTERVAL 6 MONTHS AS t FROM events;

-- a number of an INTERVAL
CREATE VIEW v AS
SELECT event_id, CAST(INTERVAL 10 DAYS AS BIGINT) AS n FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, 10 AS n FROM events;

-- a sum of INTERVALs
CREATE VIEW v AS
SELECT event_id, CAST(INTERVAL 1 DAY + INTERVAL 2 HOURS AS BIGINT) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, ts + INTERVAL 90 MINUTES AS n FROM events;

-- days next to hours
CREATE VIEW v AS
SELECT event_id, CAST(ts AS DATE) - DATE '2020-01-01' + INTERVAL 2 HOURS > INTERVAL 9 DAYS AS late FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(ts AS DATE) - DATE '2020-01-01' + INTERVAL 7200 SECONDS > INTERVAL 9 DAYS AS late FROM events;

-- an INTERVAL that is chosen
CREATE VIEW v AS
SELECT event_id, ts - TIMESTAMP '2020-01-01 00:00:00' > CASE WHEN kind = 'a' THEN INTERVAL 1 DAY ELSE INTERVAL 2 DAYS END AS late FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CASE WHEN kind = 'a' THEN ts - TIMESTAMP '2020-01-01 00:00:00' > INTERVAL 1 DAY ELSE ts - TIMESTAMP '2020-01-01 00:00:00' > INTERVAL 2 DAYS END AS late FROM events;

-- weekdays in a pattern to read times by
CREATE VIEW v AS
SELECT event_id, to_date(kind, 'EEE, dd MMM yyyy') AS day FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, to_date(substring(kind, 6), 'dd MMM yyyy') AS day FROM events;

-- a time in JSON
CREATE VIEW v AS
SELECT from_json(kind, 'at TIMESTAMP').at AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(from_json(kind, 'a INT, at STRING').at AS TIMESTAMP) AS t FROM events;

-- today as an argument
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE day >= date_sub('today', 7);
-- instead
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE day >= date_sub('2024-01-31', 7);

-- now as a time
CREATE VIEW v AS
SELECT to_timestamp(' NOW ') AS at, user_id FROM events;
-- instead
CREATE VIEW v AS
SELECT to_timestamp('2024-01-31 12:00:00') AS at, user_id FROM events;

-- a number of days that is a column
CREATE VIEW v AS
SELECT ts + INTERVAL user_id DAYS AS due FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT ts + CAST(user_id AS INT) * INTERVAL 1 MINUTE AS due FROM events;

-- timestampadd() of a column
CREATE VIEW v AS
SELECT timestampadd(DAY, user_id, ts) AS due FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT ts + CAST(user_id AS INT) * INTERVAL 1 DAY AS due FROM events;

-- a number as a time
CREATE VIEW v AS
SELECT to_timestamp(user_id) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT timestamp_millis(user_id) AS t FROM events;

-- a number of months in an interval
CREATE VIEW v AS
SELECT ts + user_id * INTERVAL 1 MONTH AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT add_months(ts, CAST(user_id AS INT)) + (ts - date_trunc('day', ts)) AS t FROM events;

-- a pattern of Postgres
CREATE VIEW v AS
SELECT to_char(ts, 'YYYY-MM-DD') AS d FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT to_char(ts, 'yyyy-MM-dd') AS d FROM events;

-- a week of ISO's in a pattern
CREATE VIEW v AS
SELECT to_char(ts, 'IYYY-IW') AS w FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT concat(EXTRACT(YEAROFWEEK FROM ts), '-W', lpad(weekofyear(ts), 2, '0')) AS w FROM events;

-- a cast to INTERVAL
CREATE VIEW v AS
SELECT ts + '1 day'::interval AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT ts + INTERVAL '1 day' AS t FROM events;
