-- Overview: the bookkeeping behind the console's first page, as one row of JSON from one statement. It reads no row of a
-- view and counts no record one by one.
WITH lately AS (
  SELECT q.name AS source, bad.records
  FROM lamina.query AS q
  CROSS JOIN LATERAL (
    SELECT count(*) AS records
    FROM (SELECT FROM lamina.quarantine AS r
          WHERE r.source = q.name AND r.quarantined_at > clock_timestamp() - interval '1 hour'
          LIMIT :most_bad) AS r
  ) AS bad
),
counted AS (
  SELECT query AS source, sum(next_offset - start_offset) AS offsets,
         jsonb_object_agg(partition, next_offset ORDER BY partition) AS next_offsets
  FROM lamina.progress GROUP BY query
),
proved AS (
  SELECT DISTINCT ON (view) view, cells, differing, proved_at
  FROM lamina.proof ORDER BY view, proved_at DESC
),
shown AS (
  SELECT p.view, p.generation, {estimated} AS cells
  FROM lamina.publication AS p
  JOIN lamina.generation_cells AS c ON c.generation = p.generation
  JOIN pg_class AS t ON t.oid = to_regclass(c.place)
  GROUP BY p.view, p.generation
),
fed AS (
  SELECT view, array_agg(DISTINCT source ORDER BY source) AS sources FROM lamina.offsets GROUP BY view
)
SELECT jsonb_build_object(
  'views', coalesce((
    SELECT jsonb_agg(jsonb_build_object(
      'name', v.name, 'kind', v.kind, 'sources', f.sources, 'seconds_behind', b.seconds_behind,
      'fresh_within', b.fresh_within,
      'generation', s.generation, 'cells', s.cells, 'held', v.name IN (SELECT view FROM ({held}) AS held), 'served', v.served IS NOT NULL,
      'compared', p.cells, 'differing', p.differing, 'proved_at', p.proved_at
    ) ORDER BY v.position)
    FROM lamina.view AS v
    LEFT JOIN fed AS f ON f.view = v.name
    LEFT JOIN lamina.freshness AS b ON b.view = v.name
    LEFT JOIN shown AS s ON s.view = v.name
    LEFT JOIN proved AS p ON p.view = v.name
  ), '[]'),
  'sources', coalesce((
    SELECT jsonb_agg(jsonb_build_object(
      'name', q.name, 'topic', q.topic, 'next_offsets', c.next_offsets, 'counted', c.offsets,
      'bad', (SELECT coalesce(sum(records), 0) FROM lamina.bad_count AS b WHERE b.source = q.name),
      'bad_lately', l.records, 'writer', q.writer, 'writer_kind', q.writer_kind, 'stopped', q.stopped,
      'heard_age', a.heard_age
    ) ORDER BY q.name)
    FROM lamina.query AS q
    JOIN lamina.ages AS a ON a.source = q.name
    JOIN counted AS c ON c.source = q.name
    JOIN lately AS l ON l.source = q.name
  ), '[]'),
  'minutes', coalesce((
    SELECT jsonb_agg(jsonb_build_array(extract(epoch FROM clock_timestamp() - minute)::float8, behind) ORDER BY minute)
    FROM lamina.freshness_history WHERE minute > clock_timestamp() - interval '1 hour'
  ), '[]')
)
