-- an empty array without a type
CREATE VIEW v AS
SELECT event_id, array() AS a FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, coalesce(tags, array()) AS a FROM events;

-- rows of an empty list
CREATE VIEW v AS
SELECT event_id, explode(array()) AS a FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, explode(coalesce(tags, array())) AS a FROM events;

-- a field after a colon
CREATE VIEW v AS
SELECT payload:user FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT payload.user.name AS user FROM events;

-- inline of texts
CREATE VIEW v AS
SELECT event_id, inline(tags) FROM events;
-- instead
CREATE VIEW v AS
SELECT event_id, explode(tags) AS tag FROM events;

-- json_tuple of a name that is a column
CREATE VIEW v AS
SELECT j.a FROM events LATERAL VIEW json_tuple(kind, country) j AS a;
-- instead, as printed
CREATE VIEW v AS
SELECT j.a FROM events LATERAL VIEW json_tuple(kind, 'a') j AS a;

-- a lambda as an argument that is a value
CREATE VIEW v AS
SELECT event_id, array_sort(tags, (a, b) -> 1) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, array_sort(transform(array(struct(ts, kind AS name)), e -> struct(e.ts, e.name))) AS x FROM events;

-- zip_with() of one array
CREATE VIEW v AS
SELECT event_id, zip_with(tags, a -> a) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT event_id, zip_with(array(user_id), array(user_id), (a, b) -> a + b) AS x FROM events;

-- a lambda that changes its type
CREATE VIEW v AS
SELECT aggregate(array(1, 2), 0, (a, x) -> a + 0.5) AS s FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT aggregate(array(1, 2), CAST(0 AS DECIMAL(38,1)), (a, x) -> CAST(a + 0.5 AS DECIMAL(38,1))) AS s FROM events;

-- an aggregate in a lambda
CREATE VIEW v AS
SELECT transform(array(1, 2), x -> x + count(*)) AS s FROM events;
-- instead
CREATE VIEW v AS
SELECT transform(array(1, 2), x -> x + 1) AS s FROM events;

-- a schema from a column
CREATE VIEW v AS
SELECT from_json(kind, country) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT CASE country WHEN 'a INT, b STRING' THEN from_json(kind, 'a INT, b STRING') END AS t FROM events;

-- flatten of texts
CREATE VIEW v AS
SELECT flatten(tags) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT flatten(array(tags, tags)) AS t FROM events;

-- a map_filter of an array
CREATE VIEW v AS
SELECT map_filter(tags, (k, v) -> v > 1) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT map_filter(map('a', user_id), (k, v) -> v > 1) AS t FROM events;

-- array_distinct() of maps
CREATE VIEW v AS
SELECT array_distinct(array(map('a', kind))) AS x FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT array_distinct(array(kind)) AS x FROM events;

-- keys of a map made anew
CREATE VIEW v AS
SELECT transform_keys(map('a', kind), (k, v) -> upper(k)) AS m FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT map_from_entries(transform(map_entries(map('a', kind)), e -> struct(upper(e.key), e.value))) AS m FROM events;

-- two maps as one
CREATE VIEW v AS
SELECT map_concat(map('a', kind), map('b', country)) AS m FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT map_from_entries(concat(map_entries(map('a', kind)), map_entries(map('b', country)))) AS m FROM events;

-- an array in brackets
CREATE VIEW v AS
SELECT ARRAY['a', kind] AS a FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT array('a', kind) AS a FROM events;

-- a sort by a lambda
CREATE VIEW v AS
SELECT array_sort(tags, (a, b) -> length(a) - length(b)) AS t FROM events;
-- instead, as printed
CREATE VIEW v AS
SELECT array_sort(transform(array(struct(ts, kind AS name)), e -> struct(e.ts, e.name))) AS t FROM events;

-- array_agg without a value
CREATE VIEW v AS
SELECT kind, array_agg(ORDER BY ts) AS all FROM events GROUP BY kind;
-- instead, as printed
CREATE VIEW v AS
SELECT kind, array_agg(price ORDER BY ts) AS all FROM events GROUP BY kind;
