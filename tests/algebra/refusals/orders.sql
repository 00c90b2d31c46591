-- clauses that nothing reads
CREATE VIEW v AS
SELECT country, n FROM hourly FETCH FIRST 3 ROWS ONLY;
-- instead, as printed
CREATE VIEW v AS
SELECT country, n FROM hourly LIMIT 10;

-- a list with LIMIT
CREATE VIEW v AS
SELECT country, array_agg(kind LIMIT 3) AS k FROM events GROUP BY country;
-- instead, as printed
CREATE VIEW v AS
SELECT country, slice(sort_array(collect_list(kind)), 1, 3) AS k FROM events GROUP BY country;

-- an offset before LIMIT's number
CREATE VIEW v AS
SELECT event_id FROM events ORDER BY event_id LIMIT 20, 10;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events ORDER BY event_id LIMIT 10 OFFSET 20;

-- LIMIT beyond 2^31
CREATE VIEW v AS
SELECT event_id FROM events LIMIT 2147483648;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events LIMIT 10;

-- LIMIT of a text
CREATE VIEW v AS
SELECT event_id FROM events LIMIT '3';
-- instead, as printed
CREATE VIEW v AS
SELECT event_id FROM events LIMIT 10;

-- LIMIT by an order that is not shown
CREATE VIEW v AS
SELECT * FROM (SELECT country FROM hourly ORDER BY n DESC) LIMIT 3;
-- instead
CREATE VIEW v AS
SELECT country FROM (SELECT country, n FROM hourly) ORDER BY n DESC LIMIT 3;
