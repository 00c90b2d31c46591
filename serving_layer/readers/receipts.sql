-- Receipts: the content of a view in the caller's snapshot, in one line that can be verified from the master log later.
-- All functions run with the caller's rights. They are STABLE, so they read the snapshot of the calling statement.

-- 64 bits of a sum, as 16 hexadecimal digits.
CREATE OR REPLACE FUNCTION lamina.lane(total numeric) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT encode((mod(mod(coalesce(total, 0), size) + size, size) - size / 2)::int8::bytea, 'hex')
  FROM (SELECT 18446744073709551616::numeric) AS of (size)
$$;

-- A nested value with each number in its shortest form: 1.50 and 1.5 are equal.
CREATE OR REPLACE FUNCTION lamina.canonical(nested jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog AS $$
BEGIN
  CASE jsonb_typeof(nested)
    WHEN 'number' THEN RETURN to_jsonb(trim_scale(nested::numeric));
    WHEN 'array' THEN RETURN (
      SELECT coalesce(jsonb_agg(lamina.canonical(element) ORDER BY number), '[]')
      FROM jsonb_array_elements(nested) WITH ORDINALITY AS elements (element, number));
    WHEN 'object' THEN RETURN (
      SELECT coalesce(jsonb_object_agg(name, lamina.canonical(field)), '{}') FROM jsonb_each(nested) AS fields (name, field));
    ELSE RETURN nested;
  END CASE;
END
$$;

-- The digest of a relation's rows in any order: sums of the SHA-256 of rows, and of the values of each column.
-- columns: an array of {name, spark, postgres}. For a column of doubles (or floats) the digest only holds which values
-- are numbers. `doubles` holds the sums of the numbers and of their sizes, each weighted by the digest of its row. A
-- nested column that contains doubles is left out.
CREATE OR REPLACE FUNCTION lamina.digest(relation regclass, columns jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog SET timezone = 'UTC' SET datestyle = 'ISO' SET intervalstyle = 'postgres' AS $$
DECLARE
  field record;
  value text;
  hashed text[] := '{}';
  hashes text[] := '{}';
  names text[] := '{}';
  lanes text[] := '{}';
  doubles text[] := '{}';
  sums text[] := '{}';
  left_out text[] := '{}';
  result jsonb;
BEGIN
  FOR field IN
    SELECT place, column_ ->> 'name' AS name, column_ ->> 'postgres' AS kind,
           upper(column_ ->> 'spark') ~ '\m(DOUBLE|FLOAT)\M' AS inexact
    FROM jsonb_array_elements(columns) WITH ORDINALITY AS listed (column_, place) ORDER BY place
  LOOP
    IF field.inexact AND field.kind = 'jsonb' THEN
      left_out := left_out || field.name;
      CONTINUE;
    END IF;
    value := CASE
      WHEN field.inexact THEN $inexact$CASE WHEN abs(%1$I) < 'Infinity' THEN 'number' ELSE %1$I::text END$inexact$
      WHEN field.kind LIKE 'numeric%' THEN 'trim_scale(%1$I)::text'
      WHEN field.kind = 'jsonb' THEN 'lamina.canonical(%1$I)::text'
      -- A long text of a group is shown as its beginning and its digest. The digest is compared.
      WHEN field.kind = 'text' THEN $texts$CASE WHEN %1$I ~ '… sha256 [0-9a-f]{64}$' THEN right(%1$I, 64)
        ELSE encode(sha256(convert_to(%1$I, 'UTF8')), 'hex') END$texts$
      ELSE '%1$I::text'
    END;
    value := format('sha256(convert_to(coalesce(''='' || ' || value || ', ''''), ''UTF8''))', field.name);
    hashed := hashed || format('%s AS h%s', value, field.place);
    hashes := hashes || format('h%s', field.place);
    names := names || field.name;
    lanes := lanes || format('lamina.lane(sum(substr(h%s, 1, 8)::int8))', field.place);
    IF field.inexact THEN
      hashed := hashed
        || format($sized$CASE WHEN abs(%1$I) < 'Infinity' THEN %1$I::float8::numeric END AS d%2$s$sized$, field.name, field.place);
      doubles := doubles || field.name;
      sums := sums || format('concat_ws('' '', coalesce(sum(weight * d%1$s), 0), coalesce(sum(weight * abs(d%1$s)), 0))', field.place);
    END IF;
  END LOOP;
  -- OFFSET 0 makes Postgres compute each named value once.
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
  ) INTO result;
  RETURN result;
END
$$;

-- The receipt of a view: one line of JSON, for `lamina verify`.
CREATE OR REPLACE FUNCTION lamina.receipt(view text) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog SET timezone = 'UTC' SET datestyle = 'ISO' AS $$
DECLARE
  provenance lamina.provenance;
  digest jsonb;
BEGIN
  SELECT * INTO provenance FROM lamina.provenance AS p WHERE p.view = receipt.view;
  IF NOT FOUND THEN
    RAISE undefined_table USING MESSAGE = format('There is no view named %s', receipt.view);
  ELSIF provenance.definition IS NULL THEN
    RAISE object_not_in_prerequisite_state USING
      MESSAGE = format('%s was deployed by a Lamina that kept no SELECT for receipts', receipt.view),
      HINT = '`lamina apply` of the same catalog keeps it.';
  END IF;
  digest := lamina.digest(format('analytics.%I', receipt.view)::regclass, provenance.columns);
  RETURN json_build_object(
    'receipt', 1, 'view', provenance.view, 'version', provenance.version, 'generation', provenance.generation,
    'definition', provenance.definition, 'read_at', statement_timestamp(), 'clock', now(),
    'rows', digest -> 'rows', 'digest', digest -> 'digest',
    'columns', digest -> 'columns', 'doubles', digest -> 'doubles', 'left_out', digest -> 'left_out',
    'made_of', provenance.made_of, 'sources', provenance.sources)::text;
END
$$;
