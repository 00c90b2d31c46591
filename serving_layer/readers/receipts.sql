-- Receipts: what a view showed in the caller's snapshot, in one line that can be verified from the master log later.
-- All functions run with the caller's rights, and STABLE: what they read is the snapshot of the statement that calls.

-- 64 bits of a sum, in hexadecimal.
CREATE OR REPLACE FUNCTION lamina.lane(total numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT encode((mod(mod(coalesce(total, 0), size) + size, size) - size / 2)::int8::bytea, 'hex')
  FROM (SELECT 18446744073709551616::numeric) AS of (size)
$$;

-- A nested value with its numbers as short as they can be written: 1.50 and 1.5 are one number.
CREATE OR REPLACE FUNCTION lamina.canonical(nested jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog AS $$
BEGIN
  CASE jsonb_typeof(nested)
    WHEN 'number' THEN RETURN to_jsonb(trim_scale(nested::numeric));
    WHEN 'array' THEN RETURN (
      SELECT coalesce(jsonb_agg(lamina.canonical(each) ORDER BY place), '[]')
      FROM jsonb_array_elements(nested) WITH ORDINALITY AS found (each, place));
    WHEN 'object' THEN RETURN (
      SELECT coalesce(jsonb_object_agg(name, lamina.canonical(each)), '{}') FROM jsonb_each(nested) AS found (name, each));
    ELSE RETURN nested;
  END CASE;
END
$$;

-- The digest of a relation's rows, whatever their order: sums of SHA-256 of rows, and of the values of each column.
-- columns: an array of {name, spark, postgres}. Of a column of doubles (or floats) the rows' digest holds which are
-- numbers; `doubles` holds the sum of the numbers and of their sizes, each weighted by the digest of its row. A nested
-- column with such numbers in it is left out.
CREATE OR REPLACE FUNCTION lamina.digest(relation regclass, columns jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' AS $$
DECLARE
  given record;
  value text;
  hashed text[] := '{}';
  hashes text[] := '{}';
  names text[] := '{}';
  lanes text[] := '{}';
  doubles text[] := '{}';
  sums text[] := '{}';
  left_out text[] := '{}';
  found jsonb;
BEGIN
  FOR given IN
    SELECT place, column_ ->> 'name' AS name, column_ ->> 'postgres' AS kind,
           upper(column_ ->> 'spark') ~ '\m(DOUBLE|FLOAT)\M' AS inexact
    FROM jsonb_array_elements(columns) WITH ORDINALITY AS listed (column_, place) ORDER BY place
  LOOP
    IF given.inexact AND given.kind = 'jsonb' THEN
      left_out := left_out || given.name;
      CONTINUE;
    END IF;
    value := CASE
      WHEN given.inexact THEN $inexact$CASE WHEN abs(%1$I) < 'Infinity' THEN 'number' ELSE %1$I::text END$inexact$
      WHEN given.kind LIKE 'numeric%' THEN 'trim_scale(%1$I)::text'
      WHEN given.kind = 'jsonb' THEN 'lamina.canonical(%1$I)::text'
      -- A long text of a group is shown as its beginning and its digest.
      WHEN given.kind = 'text' THEN $texts$CASE WHEN %1$I ~ '… sha256 [0-9a-f]{64}$' THEN right(%1$I, 64)
        ELSE encode(sha256(convert_to(%1$I, 'UTF8')), 'hex') END$texts$
      ELSE '%1$I::text'
    END;
    value := format('sha256(convert_to(coalesce(''='' || ' || value || ', ''''), ''UTF8''))', given.name);
    hashed := hashed || format('%s AS h%s', value, given.place);
    hashes := hashes || format('h%s', given.place);
    names := names || given.name;
    lanes := lanes || format('lamina.lane(sum(substr(h%s, 1, 8)::int8))', given.place);
    IF given.inexact THEN
      hashed := hashed
        || format($sized$CASE WHEN abs(%1$I) < 'Infinity' THEN %1$I::float8::numeric END AS d%2$s$sized$, given.name, given.place);
      doubles := doubles || given.name;
      sums := sums || format('concat_ws('' '', coalesce(sum(weight * d%1$s), 0), coalesce(sum(weight * abs(d%1$s)), 0))', given.place);
    END IF;
  END LOOP;
  -- OFFSET 0: what is named is computed once.
  EXECUTE format(
    $query$
      SELECT jsonb_build_object(
        'rows', count(*),
        'digest', lamina.lane(sum(substr(whole, 1, 8)::int8)) || lamina.lane(sum(substr(whole, 9, 8)::int8)),
        'columns', jsonb_object(%L::text[], ARRAY[%s]::text[]), 'doubles', jsonb_object(%L::text[], ARRAY[%s]::text[]),
        'left_out', %L::jsonb)
      FROM (
        SELECT *, 1 + 256 * get_byte(whole, 16) + get_byte(whole, 17) AS weight
        FROM (SELECT *, sha256(''::bytea || %s) AS whole FROM (SELECT %s FROM %s OFFSET 0) AS hashed OFFSET 0) AS with_whole
        OFFSET 0
      ) AS weighted
    $query$,
    names, array_to_string(lanes, ', '), doubles, array_to_string(sums, ', '), to_jsonb(left_out),
    array_to_string(array_append(hashes, '''''::bytea'), ' || '), array_to_string(array_append(hashed, '1 AS nothing'), ', '), relation
  ) INTO found;
  RETURN found;
END
$$;

-- The receipt of a view: one line of JSON. `lamina verify` takes it.
CREATE OR REPLACE FUNCTION lamina.receipt(view text) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog SET timezone = 'UTC' SET datestyle = 'ISO' AS $$
DECLARE
  stands lamina.provenance;
  digest jsonb;
BEGIN
  SELECT * INTO stands FROM lamina.provenance AS p WHERE p.view = receipt.view;
  IF NOT FOUND THEN
    RAISE undefined_table USING MESSAGE = format('There is no view named %s', receipt.view);
  ELSIF stands.definition IS NULL THEN
    RAISE object_not_in_prerequisite_state USING
      MESSAGE = format('%s was deployed by a Lamina that kept no SELECT for receipts', receipt.view),
      HINT = '`lamina apply` of the same catalog keeps it.';
  END IF;
  digest := lamina.digest(format('analytics.%I', receipt.view)::regclass, stands.columns);
  RETURN json_build_object(
    'receipt', 1, 'view', stands.view, 'version', stands.version, 'generation', stands.generation,
    'definition', stands.definition, 'read_at', statement_timestamp(), 'clock', now(),
    'rows', digest -> 'rows', 'digest', digest -> 'digest',
    'columns', digest -> 'columns', 'doubles', digest -> 'doubles', 'left_out', digest -> 'left_out',
    'made_of', stands.made_of, 'sources', stands.sources)::text;
END
$$;
