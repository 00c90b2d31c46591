-- a wrong argument
CREATE VIEW v AS
SELECT hour(kind) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT hour(CAST(kind AS TIMESTAMP)) AS x FROM events;

-- SIMILAR TO
CREATE VIEW v AS
SELECT kind FROM events WHERE kind SIMILAR TO 'a|b';
-- instead, as printed
CREATE VIEW v AS
SELECT kind FROM events WHERE kind RLIKE '^(a|b)$';

-- IN a list
CREATE VIEW v AS
SELECT kind FROM events WHERE kind IN tags;
-- instead, as printed
CREATE VIEW v AS
SELECT kind FROM events WHERE array_contains(tags, kind);

-- to_json above the aggregation
CREATE VIEW v AS
SELECT country, to_json(named_struct('n', count(*), 's', sum(amount))) AS j FROM events GROUP BY country;
-- instead
CREATE VIEW v AS
SELECT country, named_struct('n', count(*), 's', sum(amount)) AS j FROM events GROUP BY country;

-- a sign before a text
CREATE VIEW v AS
SELECT event_id, +kind AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(kind AS DOUBLE) AS k FROM events;

-- bit_or of a fraction
CREATE VIEW v AS
SELECT bit_or(price) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT bit_or(CAST(price AS INT)) AS n FROM events;

-- the wall clock
CREATE VIEW v AS
SELECT max(now() - ts) AS late FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT now() - max(ts) AS late FROM events;

-- the date of today
CREATE VIEW v AS
SELECT sum(datediff(current_date, day)) AS days FROM events;
-- instead
CREATE VIEW v AS
SELECT sum(datediff(current_date, day) * n) AS days FROM (SELECT day, count(*) AS n FROM events GROUP BY day);

-- chance
CREATE VIEW v AS
SELECT event_id FROM events WHERE rand() < 0.1;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE md5(event_id) < '1';

-- a partition of Spark's
CREATE VIEW v AS
SELECT monotonically_increasing_id() AS id FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT kafka_partition, kafka_offset FROM events;

-- text divided to a whole number
CREATE VIEW v AS
SELECT kind div 2 AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT floor(kind / 2) AS n FROM events;

-- the greatest of text and number
CREATE VIEW v AS
SELECT greatest(kind, 1) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT greatest(CAST(kind AS INT), 1) AS n FROM events;

-- repeat() with a count from a group
CREATE VIEW v AS
SELECT country, repeat('*', CAST(count(*) AS INT)) AS bar FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, CASE CAST(count(*) AS INT) WHEN 2 THEN repeat('*', 2) END AS bar FROM events GROUP BY country;

-- an average as text
CREATE VIEW v AS
SELECT concat(CAST(avg(price) AS STRING), ' EUR') AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT concat(CAST(CAST(avg(price) AS DECIMAL(18, 2)) AS STRING), ' EUR') AS t FROM events;

-- a function of another system
CREATE VIEW v AS
SELECT country, arg_max(kind, ts) AS k FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, max_by(kind, ts) AS k FROM events GROUP BY country;

-- max() of NULLs only
CREATE VIEW v AS
SELECT kind, max(coalesce(NULL, NULL)) AS m FROM events GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, max(CAST(NULL AS STRING)) AS m FROM events GROUP BY kind;

-- count(DISTINCT NULL)
CREATE VIEW v AS
SELECT kind, count(DISTINCT NULL) AS n FROM events GROUP BY kind;
-- instead
CREATE VIEW v AS
SELECT kind, count(*) AS n FROM events GROUP BY kind;

-- bits of NULL
CREATE VIEW v AS
SELECT country, NULL & NULL AS b FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, CAST(NULL AS INT) & n AS b FROM hourly;

-- bits of a decimal
CREATE VIEW v AS
SELECT country, CAST(n AS DECIMAL(9,1)) & 3 AS b FROM hourly;
-- instead, as printed
CREATE VIEW v AS
SELECT country, CAST(n AS BIGINT) & 3 AS b FROM hourly;

-- a map whose keys are columns
CREATE VIEW v AS
SELECT map(kind, country) AS m FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT map('a', country, 'b', kind) AS m FROM events;

-- printf() of what its format does not take
CREATE VIEW v AS
SELECT event_id, printf('%d', price) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, printf('%d', CAST(price AS BIGINT)) AS x FROM events;

-- printf() with fewer values than signs
CREATE VIEW v AS
SELECT event_id, printf('%s-%s', kind) AS x FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, printf('%s-%s', kind, country) AS x FROM events;

-- printf() with a sign that could raise
CREATE VIEW v AS
SELECT event_id, printf('%tY', ts) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, printf('%05d', year(ts)) AS x FROM events;

-- the soundex of a group
CREATE VIEW v AS
SELECT soundex(country) AS s, sum(n) AS n FROM hourly GROUP BY soundex(country);
-- instead, as printed
CREATE VIEW v AS
SELECT soundex(country) AS s, count(*) AS n FROM events GROUP BY soundex(country);

-- a bad time zone
CREATE VIEW v AS
SELECT from_utc_timestamp(ts, 'Mars') AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT from_utc_timestamp(ts, 'Europe/Paris') AS t FROM events;

-- bytes compared with a number
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kafka_key = 5;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE CAST(decode(kafka_key, 'UTF-8') AS INT) = 5;

-- bytes compared with a text
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE kafka_key = 'a';
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE decode(kafka_key, 'UTF-8') = 'a';

-- bytes as a number
CREATE VIEW v AS
SELECT CAST(kafka_key AS BIGINT) AS k, count(*) AS n FROM events GROUP BY 1;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(decode(kafka_key, 'UTF-8') AS BIGINT) AS k, count(*) AS n FROM events GROUP BY 1;

-- a sum with bytes
CREATE VIEW v AS
SELECT kafka_key + 1 AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CAST(decode(kafka_key, 'UTF-8') AS BIGINT) + 1 AS k FROM events;

-- other characters than UTF-8
CREATE VIEW v AS
SELECT decode(kafka_key, 'ISO-8859-1') AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT decode(kafka_key, 'UTF-8') AS k FROM events;

-- levenshtein() without a bound
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE levenshtein(kind, country) < 3;
-- instead, as printed
CREATE VIEW v AS
SELECT count(*) AS n FROM events WHERE levenshtein(kind, country, 10) BETWEEN 0 AND 2;

-- the length of bytes
CREATE VIEW v AS
SELECT length(kafka_key) AS n FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT length(hex(kafka_key)) div 2 AS n FROM events;

-- a hash of bytes
CREATE VIEW v AS
SELECT md5(kafka_key) AS h FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT md5(decode(kafka_key, 'UTF-8')) AS h FROM events;
