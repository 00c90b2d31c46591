-- The state of a deployment for operators, as views over the bookkeeping. `install` replaces a view if its text has changed.

-- Ages: per source, the seconds for which it may lack records (NULL until one was counted), and the seconds since its
-- writer's last heartbeat or commit. Everything that shows freshness reads this view.
CREATE OR REPLACE VIEW lamina.ages AS
SELECT q.name AS source,
       extract(epoch FROM clock_timestamp() - greatest(q.newest, q.caught_up_at))::float8 AS seconds_behind,
       extract(epoch FROM clock_timestamp() - greatest(h.heard_at, q.committed_at))::float8 AS heard_age
FROM lamina.query AS q
LEFT JOIN lamina.heartbeat AS h ON h.query = q.name;

-- Offsets: per published view and partition, the range of counted records. In one REPEATABLE READ transaction, a view
-- equals its SELECT over every record from `first_offset` on and below `next_offset` of each partition.
CREATE OR REPLACE VIEW lamina.offsets AS
WITH RECURSIVE fed (view, query) AS (
  SELECT v.name, c.query
  FROM lamina.view AS v
  JOIN lamina.cell_table AS c ON c.view = v.name AND c.version = v.version
  UNION
  SELECT v.name, f.query
  FROM fed AS f
  JOIN lamina.view AS v ON f.view = ANY (v.reads)
)
SELECT f.view, p.query AS source, p.topic, p.partition, p.start_offset AS first_offset, p.next_offset
FROM fed AS f
JOIN lamina.progress AS p ON p.query = f.query;

-- Freshness: per view, its newest record, the oldest of its queries' last commits, and the seconds for which it may lack
-- records (NULL if one of its sources was never counted). `fresh_within`: the seconds that it may be behind, if declared.
CREATE OR REPLACE VIEW lamina.freshness AS
SELECT v.name AS view,
       p.generation,
       min(q.newest) AS newest_record,
       CASE WHEN bool_and(a.seconds_behind IS NOT NULL) THEN max(a.seconds_behind) END AS seconds_behind,
       min(q.committed_at) AS committed_at,
       extract(epoch FROM v.fresh_within::interval)::float8 AS fresh_within
FROM lamina.view AS v
LEFT JOIN lamina.publication AS p ON p.view = v.name
LEFT JOIN (SELECT DISTINCT view, source FROM lamina.offsets) AS o ON o.view = v.name
LEFT JOIN lamina.query AS q ON q.name = o.source
LEFT JOIN lamina.ages AS a ON a.source = o.source
GROUP BY v.name, p.generation, v.fresh_within;

-- Freshness targets: per view with `fresh_within`, the share of the minutes of the last hour and day in which the view met
-- it, from the first recorded minute on (`serving_layer/monitoring/freshness_history.py`). A later minute without a record is a miss.
CREATE OR REPLACE VIEW lamina.freshness_met AS
WITH noted AS (
  SELECT t.view, greatest(t.minute, now.minute - interval '1 minute') AS until, t.minute, t.since, t.met
  FROM lamina.freshness_target AS t
  JOIN lamina.view AS v ON v.name = t.view AND v.fresh_within IS NOT NULL
  CROSS JOIN (SELECT date_trunc('minute', now()) AS minute) AS now
)
SELECT n.view, s.span,
       bit_count(substring(n.met << (extract(epoch FROM n.until - n.minute) / 60)::int FROM 1441 - s.minutes))
         / least(s.minutes, extract(epoch FROM n.until - n.since) / 60 + 1)::float8 AS met
FROM noted AS n
CROSS JOIN (VALUES ('hour', 60), ('day', 1440)) AS s (span, minutes);

-- Generations: those whose tables still exist, and the one that each view is read from (published).
CREATE OR REPLACE VIEW lamina.generations AS
SELECT g.view, g.id AS generation, g.version, g.state, p.generation IS NOT NULL AS published,
       g.opened_at, g.live_at, g.retired_at, g.rebuild, g.since
FROM lamina.generation AS g
LEFT JOIN lamina.publication AS p ON p.view = g.view AND p.generation = g.id
WHERE g.dropped_at IS NULL;

-- Bad records: the number of each source's records that could not be parsed, by reason, including removed ones.
-- `counted`: the records count, with NULL for a field that could not be read.
CREATE OR REPLACE VIEW lamina.bad_records AS
SELECT topic, error, records, first, last, source,
       starts_with(error, 'counted, with NULL for a field: ') AS counted
FROM lamina.bad_count;

-- Bytes as a text: as UTF-8 or, if they are not valid UTF-8, with an escape for each byte outside ASCII.
CREATE OR REPLACE FUNCTION lamina.as_text(bytes bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog AS $$
BEGIN RETURN convert_from(bytes, 'UTF8'); EXCEPTION WHEN character_not_in_repertoire THEN RETURN encode(bytes, 'escape'); END
$$;

-- Bad values: the stored bad records, as texts. They may hold values that no view shows, so readers have no right to them
-- until the owner grants it: GRANT SELECT ON lamina.bad_values TO ann.
CREATE OR REPLACE VIEW lamina.bad_values AS
SELECT source, topic, partition, "offset", "timestamp", error, lamina.as_text(key) AS key, lamina.as_text(value) AS value,
       value_bytes, quarantined_at
FROM lamina.quarantine;

-- Duplicates: the records of each stream with UNIQUE that are copies of a counted one. `conflicts`: the copies that differ
-- from it and that a rebuild counts in its place.
CREATE OR REPLACE VIEW lamina.duplicates AS
SELECT name AS source, duplicates AS records, conflicts
FROM lamina.query;

-- Provenance: per view, the facts that its receipt names: the deployed SELECT (`definition`, an id of lamina.definition),
-- the generations and versions that are read, and the range of counted offsets of each source.
CREATE OR REPLACE VIEW lamina.provenance AS
WITH RECURSIVE below (view, reads) AS (
  SELECT name, name FROM lamina.view
  UNION
  SELECT b.view, r.name
  FROM below AS b
  JOIN lamina.view AS v ON v.name = b.reads
  CROSS JOIN unnest(v.reads) AS r (name)
)
SELECT v.name AS view, v.version, p.generation, c.definition, c.texts -> 'columns' AS columns,
       (SELECT jsonb_object_agg(b.reads, jsonb_build_object(
          'generation', g.id, 'version', g.version, 'since', g.since, 'spark', g.spark))
        FROM below AS b
        JOIN lamina.publication AS shown ON shown.view = b.reads
        JOIN lamina.generation AS g ON g.id = shown.generation
        WHERE b.view = v.name) AS made_of,
       (SELECT jsonb_object_agg(s.source, s.counted)
        FROM (SELECT o.source, jsonb_build_object('topic', q.topic, 'topic_id', q.topic_id,
                       'from', jsonb_object_agg(o.partition, o.first_offset),
                       'below', jsonb_object_agg(o.partition, o.next_offset)) AS counted
              FROM lamina.offsets AS o
              JOIN lamina.query AS q ON q.name = o.source
              WHERE o.view = v.name
              GROUP BY o.source, q.topic, q.topic_id) AS s) AS sources
FROM lamina.view AS v
LEFT JOIN lamina.publication AS p ON p.view = v.name
LEFT JOIN lamina.compiled AS c ON c.kind = 'view' AND c.name = v.name;

-- Previews: per view of each preview, its freshness, and true if its cells are maintained. Otherwise the view raises.
CREATE OR REPLACE VIEW lamina.previews AS
WITH RECURSIVE below (preview, view, reads) AS (
  SELECT preview, view, view FROM lamina.previewed
  UNION
  SELECT b.preview, b.view, r.name
  FROM below AS b
  JOIN lamina.previewed AS v ON v.preview = b.preview AND v.view = b.reads
  CROSS JOIN jsonb_array_elements_text(v.texts -> 'reads') AS r (name)
)
SELECT p.name AS preview, v.view, v.texts ->> 'version' AS version,
       NOT EXISTS (SELECT
                   FROM below AS b
                   JOIN lamina.previewed AS read ON read.preview = b.preview AND read.view = b.reads
                   CROSS JOIN unnest(read.places) AS of (place)
                   WHERE b.preview = v.preview AND b.view = v.view AND NOT EXISTS (
                     SELECT FROM lamina.generation_cells AS c
                     JOIN lamina.generation AS g ON g.id = c.generation
                     WHERE c.place = of.place AND g.state = 'live')) AS served,
       p.made_at, fed.newest_record, fed.seconds_behind
FROM lamina.preview AS p
JOIN lamina.previewed AS v ON v.preview = p.name
CROSS JOIN LATERAL (
  SELECT min(q.newest) AS newest_record,
         CASE WHEN bool_and(a.seconds_behind IS NOT NULL) THEN max(a.seconds_behind) END AS seconds_behind
  FROM jsonb_array_elements_text(v.texts -> 'sources') AS s (name)
  JOIN lamina.query AS q ON q.name = s.name
  JOIN lamina.ages AS a ON a.source = s.name) AS fed;

-- Offsets of previews: the range of counted records per view and partition, as lamina.offsets for deployed views.
CREATE OR REPLACE VIEW lamina.preview_offsets AS
SELECT v.preview, v.view, p.query AS source, p.topic, p.partition, p.start_offset AS first_offset, p.next_offset
FROM lamina.previewed AS v
CROSS JOIN jsonb_array_elements_text(v.texts -> 'sources') AS s (name)
JOIN lamina.progress AS p ON p.query = s.name;

GRANT USAGE ON SCHEMA lamina TO analyst;
GRANT SELECT ON lamina.freshness, lamina.freshness_met, lamina.offsets, lamina.generations, lamina.bad_records, lamina.duplicates, lamina.skipped,
  lamina.provenance, lamina.previews, lamina.preview_offsets
TO analyst;
