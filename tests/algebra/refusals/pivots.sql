-- PIVOT with an alias, which Spark does not read
CREATE VIEW v AS
SELECT p.nl FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL' AS nl, 'FR')) AS p;
-- instead, as printed
CREATE VIEW v AS
SELECT p.nl FROM (SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL' AS nl, 'FR'))) AS p;

-- PIVOT next to a join
CREATE VIEW v AS
SELECT * FROM hourly AS h JOIN (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL', 'FR')) ON h.n = NL;
-- instead
CREATE VIEW v AS
SELECT * FROM hourly AS h JOIN (SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL', 'FR'))) AS p ON h.n = p.NL;

-- PIVOT of several aggregates without names
CREATE VIEW v AS
SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n), max(n) FOR country IN ('NL', 'FR'));
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) AS total, max(n) AS most FOR country IN ('NL', 'FR'));

-- PIVOT of a count next to a text
CREATE VIEW v AS
SELECT * FROM (SELECT kind, country FROM events) PIVOT (count(*) AS n, max(country) AS c FOR kind IN ('show', 'click'));
-- instead
CREATE VIEW v AS
SELECT count(*) FILTER (WHERE kind = 'show') AS n, max(country) FILTER (WHERE kind = 'show') AS c FROM events;

-- PIVOT by a value without a name
CREATE VIEW v AS
SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR n IN (1.5));
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR n IN (1.5 AS some));

-- PIVOT of several columns without names
CREATE VIEW v AS
SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN (('NL', 'show')));
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN (('NL', 'show') AS nl));

-- PIVOT of several columns, a value for one
CREATE VIEW v AS
SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR (country, kind) IN ('NL' AS nl));
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT country, user_id, amount FROM events) PIVOT (sum(amount) FOR (country, user_id) IN (('a', 1) AS name));

-- PIVOT in parentheses
CREATE VIEW v AS
SELECT NL FROM ((SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL')));
-- instead, as printed
CREATE VIEW v AS
SELECT NL FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL'));

-- PIVOT in parentheses with a name
CREATE VIEW v AS
SELECT p.NL FROM ((SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL'))) p;
-- instead, as printed
CREATE VIEW v AS
SELECT p.NL FROM (SELECT * FROM (SELECT country, n FROM hourly) PIVOT (sum(n) FOR country IN ('NL'))) p;

-- UNPIVOT of texts and numbers
CREATE VIEW v AS
SELECT * FROM (SELECT kind, user_id FROM events) UNPIVOT (x FOR n IN (kind, user_id));
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT kind, CAST(user_id AS STRING) AS user_id FROM events) UNPIVOT (x FOR n IN (kind, user_id));

-- PIVOT of ANY
CREATE VIEW v AS
SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN (ANY));
-- instead, as printed
CREATE VIEW v AS
SELECT * FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN ('a', 'b'));

-- a column of PIVOT that is missing
CREATE VIEW v AS
SELECT *
FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amont) FOR kind IN ('a'));
-- instead, as printed
CREATE VIEW v AS
SELECT *
FROM (SELECT country, kind, amount FROM events) PIVOT (sum(amount) FOR kind IN ('a'));
