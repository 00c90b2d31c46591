-- TRY_CAST that Spark refuses
CREATE VIEW v AS
SELECT event_id, TRY_CAST(day AS BIGINT) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(day AS BIGINT) AS x FROM events;

-- a decimal without a number of digits
CREATE VIEW v AS
SELECT event_id, CAST(amount AS DECIMAL(10, NULL)) AS x FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, CAST(amount AS DECIMAL(10, 0)) AS x FROM events;

-- a cast of an array to a number
CREATE VIEW v AS
SELECT event_id, CAST(array(amount) AS DECIMAL(10,2)) AS x FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, CAST(element_at(array(amount), 1) AS DECIMAL(10,2)) AS x FROM events;

-- a cast of bytes to a number
CREATE VIEW v AS
SELECT event_id, CAST(CAST(kind AS BINARY) AS INT) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(decode(encode(kind, 'UTF-8'), 'UTF-8') AS INT) AS x FROM events;

-- a cast of a local time to a number
CREATE VIEW v AS
SELECT event_id, CAST(CAST(ts AS TIMESTAMP_NTZ) AS BIGINT) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, CAST(CAST(CAST(ts AS TIMESTAMP_NTZ) AS TIMESTAMP) AS BIGINT) AS x FROM events;
