-- a regular expression that is a column
CREATE VIEW v AS
SELECT country FROM events WHERE kind RLIKE country;
-- instead, as printed
CREATE VIEW v AS
SELECT country FROM events WHERE CASE country WHEN '[0-9]+' THEN rlike(kind, '[0-9]+') END;

-- a pattern above
CREATE VIEW v AS
SELECT country FROM hourly WHERE country RLIKE '^N(?=L)';
-- instead
CREATE VIEW v AS
SELECT country FROM hourly WHERE country LIKE 'N%';

-- split by a regular expression above the aggregation
CREATE VIEW v AS
SELECT c, n FROM (SELECT split(country, '-|--') AS cs, count(*) AS n FROM events GROUP BY country) LATERAL VIEW explode(cs) t AS c;
-- instead, as printed
CREATE VIEW v AS
SELECT c, count(*) AS n FROM events LATERAL VIEW explode(split(country, '[-_]')) t AS c GROUP BY c;

-- a repeated group of single characters
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind RLIKE '^(a|b)*$';
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind RLIKE '^[ab]*$';

-- a repeated group that varies
CREATE VIEW v AS
SELECT regexp_extract(kind, '(\\w+\\s?)*\\.', 0) AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT regexp_extract(kind, r'(\w+\s?)*+\.', 0) AS k FROM events;

-- a repeated group that varies, nested in a few rounds
CREATE VIEW v AS
SELECT split(kind, '(.*,){10}') AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT split(kind, '(.*,){10}+') AS k FROM events;

-- a repeated group above the aggregation
CREATE VIEW v AS
SELECT country FROM hourly WHERE country RLIKE '^(NL|FR)+$';
-- instead
CREATE VIEW v AS
SELECT country FROM hourly WHERE country RLIKE '^(NL|FR){1,9}$';

-- a bad regular expression
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind RLIKE '(a';
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind RLIKE 'a(b)?';

-- a group that the pattern lacks
CREATE VIEW v AS
SELECT regexp_extract(kind, 'a+') AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT regexp_extract(kind, 'a+', 0) AS k FROM events;

-- a length beyond an INT
CREATE VIEW v AS
SELECT left(max(kind), 3000000000L) AS k FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT left(max(kind), 3) AS k FROM events;

-- a pattern that repeats too often
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind RLIKE 'a{99999999999}';
-- instead
CREATE VIEW v AS
SELECT event_id FROM events WHERE kind RLIKE 'a{9}';
