-- Overview: the bookkeeping behind the console's first page, as one row of JSON from one statement. It reads no
-- view's rows, and counts at most `:most` rows of the quarantine for each source.
WITH counted AS (
  SELECT query AS source, sum(next_offset - start_offset) AS offsets,
         jsonb_object_agg(partition, next_offset ORDER BY partition) AS next_offsets
  FROM lamina.progress GROUP BY query
)
SELECT jsonb_build_object(
  'views', coalesce((SELECT jsonb_agg(to_jsonb(states)) FROM ({view_states}) AS states), '[]'),
  'sources', coalesce((
    SELECT jsonb_agg(jsonb_build_object(
      'name', q.name, 'topic', q.topic, 'next_offsets', c.next_offsets, 'counted', c.offsets,
      'bad', (SELECT coalesce(sum(records), 0) FROM lamina.bad_count AS b WHERE b.source = q.name),
      'bad_lately', ({bad_lately}), 'writer', q.writer, 'writer_kind', q.writer_kind, 'stopped', q.stopped,
      'heard_age', a.heard_age
    ) ORDER BY q.name)
    FROM lamina.query AS q
    JOIN lamina.ages AS a ON a.source = q.name
    JOIN counted AS c ON c.source = q.name
  ), '[]'),
  'minutes', coalesce((
    SELECT jsonb_agg(jsonb_build_array(extract(epoch FROM clock_timestamp() - minute)::float8, behind) ORDER BY minute)
    FROM lamina.freshness_history WHERE minute > clock_timestamp() - interval '1 hour'
  ), '[]')
)
