-- Spark's arithmetic in Postgres, for merge and final: what raises here is NULL, wraps or becomes Infinity there
-- (Spark with ANSI mode off). Plain SQL expressions, so that the planner inlines them.

CREATE SCHEMA IF NOT EXISTS spark;

-- whole numbers: overflow wraps modulo 2^n

CREATE OR REPLACE FUNCTION spark.wrap_bigint(x numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x BETWEEN -9223372036854775808 AND 9223372036854775807 THEN x::bigint
    ELSE (mod(mod(x, 18446744073709551616) + 27670116110564327424, 18446744073709551616) - 9223372036854775808)::bigint
  END
$$;

CREATE OR REPLACE FUNCTION spark.wrap_int(x bigint) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ((((x & 4294967295) + 2147483648) & 4294967295) - 2147483648)::integer
$$;

CREATE OR REPLACE FUNCTION spark.wrap_smallint(x bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ((((x & 65535) + 32768) & 65535) - 32768)::smallint
$$;

CREATE OR REPLACE FUNCTION spark.wrap_tinyint(x bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ((((x & 255) + 128) & 255) - 128)::smallint
$$;

CREATE OR REPLACE FUNCTION spark.plus(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN (b > 0 AND a > 9223372036854775807 - b) OR (b < 0 AND a < '-9223372036854775808'::bigint - b)
    THEN spark.wrap_bigint(a::numeric + b)
    ELSE a + b
  END
$$;

CREATE OR REPLACE FUNCTION spark.minus(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN (b < 0 AND a > 9223372036854775807 + b) OR (b > 0 AND a < '-9223372036854775808'::bigint + b)
    THEN spark.wrap_bigint(a::numeric - b)
    ELSE a - b
  END
$$;

CREATE OR REPLACE FUNCTION spark.times(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN a BETWEEN -3037000499 AND 3037000499 AND b BETWEEN -3037000499 AND 3037000499 THEN a * b
    ELSE spark.wrap_bigint(a::numeric * b)
  END
$$;

CREATE OR REPLACE FUNCTION spark.div(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN b = -1 THEN spark.minus(0, a) ELSE a / nullif(b, 0) END
$$;

CREATE OR REPLACE FUNCTION spark.pmod(a bigint, b bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN a % nullif(b, 0) < 0 THEN spark.plus(a % nullif(b, 0), b) % nullif(b, 0) ELSE a % nullif(b, 0) END
$$;

CREATE OR REPLACE FUNCTION spark.pmod(a integer, b integer) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN mod(a::bigint, nullif(b, 0)::bigint) < 0
    THEN mod(spark.wrap_int(mod(a::bigint, b::bigint) + b)::bigint, b::bigint)
    ELSE mod(a::bigint, nullif(b, 0)::bigint)
  END::integer
$$;

CREATE OR REPLACE FUNCTION spark.within(x numeric, bound numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x >= -bound AND x < bound THEN x END
$$;

CREATE OR REPLACE FUNCTION spark.absolute(a bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN a = '-9223372036854775808'::bigint THEN a ELSE abs(a) END
$$;

-- Doubles: overflow is Infinity, underflow is 0, division by zero is NULL. Postgres raises: each is foreseen from the same
-- digits some powers of two away.

CREATE OR REPLACE FUNCTION spark.two(n integer) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT power(2::double precision, n)
$$;

CREATE OR REPLACE FUNCTION spark.plus(a double precision, b double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN abs(a) <= 8.9e307 AND abs(b) <= 8.9e307 THEN a + b
    WHEN abs(a) < 'Infinity' AND abs(b) < 'Infinity' AND (a > 0) = (b > 0)
      AND abs(a) - (1.7976931348623157e308 - abs(b)) >= 9.9792015476736e291
    THEN sign(a) * 'Infinity'::double precision
    ELSE a + b
  END
$$;

CREATE OR REPLACE FUNCTION spark.minus(a double precision, b double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.plus(a, -b)
$$;

CREATE OR REPLACE FUNCTION spark.times(a double precision, b double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN abs(a) BETWEEN 1e-150 AND 1e150 AND abs(b) BETWEEN 1e-150 AND 1e150 THEN a * b
    WHEN a = 0 OR b = 0 OR a IN ('NaN', 'Infinity', '-Infinity') OR b IN ('NaN', 'Infinity', '-Infinity') THEN a * b
    WHEN abs(a) > 1 AND abs(b) > 1 AND (abs(a) * spark.two(-512)) * (abs(b) * spark.two(-512)) >= 1
    THEN sign(a) * sign(b) * 'Infinity'::double precision
    WHEN abs(a) < 1 AND abs(b) < 1
      AND (least(abs(a), abs(b), spark.two(-500)) * spark.two(1000)) * (greatest(abs(a), abs(b)) * spark.two(80)) <= 32
    THEN 0
    ELSE a * b
  END
$$;

CREATE OR REPLACE FUNCTION spark.divide(a double precision, b double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN b = 0 THEN NULL
    WHEN abs(a) BETWEEN 1e-150 AND 1e150 AND abs(b) BETWEEN 1e-150 AND 1e150 THEN a / b
    WHEN a = 0 OR a IN ('NaN', 'Infinity', '-Infinity') OR b IN ('NaN', 'Infinity', '-Infinity') THEN a / b
    WHEN abs(b) < 1 AND abs(a) >= abs(b) * spark.two(1023)
      AND (abs(a) * 0.5 >= abs(b) * spark.two(1023) OR abs(a) * 0.25 / abs(b) >= spark.two(1022))
    THEN sign(a) * sign(b) * 'Infinity'::double precision
    WHEN abs(b) > 1 AND least(abs(a), 1) * spark.two(100) <= abs(b) * spark.two(-975) THEN 0
    ELSE a / b
  END
$$;

CREATE OR REPLACE FUNCTION spark.sign(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x = 'NaN' THEN x ELSE sign(x) END
$$;

CREATE OR REPLACE FUNCTION spark.sqrt(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x < 0 THEN 'NaN' ELSE sqrt(x) END
$$;

CREATE OR REPLACE FUNCTION spark.sin(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(x) = 'Infinity' THEN 'NaN' ELSE sin(x) END
$$;

CREATE OR REPLACE FUNCTION spark.cos(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(x) = 'Infinity' THEN 'NaN' ELSE cos(x) END
$$;

CREATE OR REPLACE FUNCTION spark.tan(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(x) = 'Infinity' THEN 'NaN' ELSE tan(x) END
$$;

CREATE OR REPLACE FUNCTION spark.asin(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(x) > 1 THEN 'NaN' ELSE asin(x) END
$$;

CREATE OR REPLACE FUNCTION spark.acos(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(x) > 1 THEN 'NaN' ELSE acos(x) END
$$;

-- 1 / x, which is Infinity where x is 0.
CREATE OR REPLACE FUNCTION spark.inverse(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN abs(x) < 5.6e-309 THEN CASE WHEN x::text LIKE '-%' THEN '-Infinity' ELSE 'Infinity'::double precision END
    ELSE 1 / x
  END
$$;

CREATE OR REPLACE FUNCTION spark.hypot(x double precision, y double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  WITH sides AS (SELECT least(abs(x), abs(y)) AS short, greatest(abs(x), abs(y)) AS long),
    ratio AS (SELECT short, long, spark.divide(short, long) AS r FROM sides)
  SELECT CASE
    WHEN short = 'Infinity' OR long = 'Infinity' THEN 'Infinity'
    WHEN long = 'NaN' OR long = 0 THEN long
    ELSE spark.times(long, sqrt(1 + spark.times(r, r)))
  END FROM ratio
$$;

CREATE OR REPLACE FUNCTION spark.exp(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x > 709.782712893384 AND x <> 'NaN' THEN 'Infinity' WHEN x < -745.13 THEN 0 ELSE exp(x) END
$$;

CREATE OR REPLACE FUNCTION spark.ln(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x > 0 THEN ln(x) END
$$;

CREATE OR REPLACE FUNCTION spark.power(x double precision, y double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  WITH given AS (
    SELECT y = floor(y) AND y / 2 <> floor(y / 2) AND x::text LIKE '-%' AS below,
      CASE
        WHEN abs(y) < 1e-290 AND abs(x) < 'Infinity' THEN 0
        ELSE greatest(-1e300, least(y, 1e300)) * ln(nullif(abs(x), 0))
      END AS e
  )
  SELECT CASE
    WHEN y = 0 THEN 1::double precision
    WHEN x = 'NaN' OR y = 'NaN' OR (abs(x) = 1 AND abs(y) = 'Infinity') THEN 'NaN'
    WHEN x < 0 AND x > '-Infinity' AND y <> floor(y) THEN 'NaN'
    WHEN (x = 0 AND y < 0) OR e > 709.78271289338 THEN
      CASE WHEN below AND abs(y) < 'Infinity' THEN '-Infinity'::double precision ELSE 'Infinity' END
    WHEN x = 0 OR e < -745.13 THEN 0
    ELSE power(x, y)
  END
  FROM given
$$;

CREATE OR REPLACE FUNCTION spark.log10(x double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x > 0 THEN log(x) END
$$;

-- The number that a double is written as, whatever a reader has set. A function with a setting of its own is not inlined,
-- and five times as slow; so it is only called where the reader's own setting gives fewer digits.
CREATE OR REPLACE FUNCTION spark.all_digits(x double precision) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET extra_float_digits = 1 AS $$
  SELECT x::text::numeric
$$;

CREATE OR REPLACE FUNCTION spark.digits(x double precision) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN current_setting('extra_float_digits') IN ('1', '2', '3') THEN x::text::numeric
    ELSE spark.all_digits(x)
  END
$$;

CREATE OR REPLACE FUNCTION spark.round(x double precision, places integer) RETURNS double precision
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x IN ('NaN', 'Infinity', '-Infinity') THEN x
    ELSE round(spark.digits(x), places)::double precision
  END
$$;

-- Halves go to the even neighbour.
CREATE OR REPLACE FUNCTION spark.bround(x numeric, places integer) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN abs(x - trunc(x, places)) = ('5e' || -places - 1)::numeric THEN round(x * 0.5, places) * 2
    ELSE round(x, places)
  END
$$;

CREATE OR REPLACE FUNCTION spark.bround(x double precision, places integer) RETURNS double precision
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x IN ('NaN', 'Infinity', '-Infinity') THEN x
    ELSE spark.bround(spark.digits(x), places)::double precision
  END
$$;

CREATE OR REPLACE FUNCTION spark.to_bigint(x double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x = 'NaN' THEN 0
    WHEN x >= 9223372036854775807 THEN 9223372036854775807
    WHEN x <= -9223372036854775808 THEN '-9223372036854775808'::bigint
    ELSE trunc(x)::bigint
  END
$$;

CREATE OR REPLACE FUNCTION spark.to_int(x double precision) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x = 'NaN' THEN 0
    WHEN x >= 2147483647 THEN 2147483647
    WHEN x <= -2147483648 THEN '-2147483648'::integer
    ELSE trunc(x)::integer
  END
$$;

CREATE OR REPLACE FUNCTION spark.to_float(x double precision) RETURNS real
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x = 'NaN' THEN 'NaN'::real
    WHEN abs(x) >= 3.4028235677973366e38 THEN (x * 'Infinity')::real -- from half a step beyond the greatest
    WHEN abs(x) <= 7.006492321624085e-46 THEN sign(x)::real * 0 -- up to half of the least
    ELSE x::real
  END
$$;

CREATE OR REPLACE FUNCTION spark.width_bucket(x double precision, a double precision, b double precision, n integer)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x = 'NaN' OR a = b OR a IN ('NaN', 'Infinity', '-Infinity') OR b IN ('NaN', 'Infinity', '-Infinity') THEN NULL
    WHEN (a < b AND x < a) OR (a > b AND x > a) THEN 0
    WHEN (a < b AND x >= b) OR (a > b AND x <= b) THEN n + 1::bigint
    WHEN a < b THEN spark.to_bigint(spark.divide(spark.times(n, spark.minus(x, a)), spark.minus(b, a))) + 1
    ELSE spark.to_bigint(spark.divide(spark.times(n, spark.minus(a, x)), spark.minus(a, b))) + 1
  END
$$;

-- decimals: rounded half up to the scale of the result, NULL where the whole digits do not fit

CREATE OR REPLACE FUNCTION spark.decimal(x numeric, digits integer, scale integer) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(round(x, scale)) < power(10::numeric, digits - scale) THEN round(x, scale) END
$$;

CREATE OR REPLACE FUNCTION spark.decimal(x double precision, digits integer, scale integer) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(x) < 1e39 THEN spark.decimal(spark.digits(x), digits, scale) END
$$;

-- Spark divides to 38 places, rounds half up, then rounds again to the scale of the result.
CREATE OR REPLACE FUNCTION spark.divide(a numeric, b numeric, digits integer, scale integer) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.decimal(round((a + 0e-38) / nullif(b, 0), 38), digits, scale)
$$;

-- Spark averages decimals of up to 11 digits as whole numbers of their last place, in doubles.
CREATE OR REPLACE FUNCTION spark.average(total numeric, n numeric, digits integer, scale integer) RETURNS numeric
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN digits > 15 THEN spark.divide(total, n, digits, scale)
    ELSE spark.decimal(
      (total * power(10::numeric, scale - 4))::double precision / nullif(n, 0)::double precision
        / power(10::numeric, scale - 4)::double precision,
      digits, scale
    )
  END
$$;

-- A sum of decimals: NaN marks one that left its type, which takes more records than there will be.
CREATE OR REPLACE FUNCTION spark.plus(a numeric, b numeric, whole integer) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN abs(a + b) < power(10::numeric, whole) THEN a + b ELSE (a + b) * 'NaN'::numeric END
$$;

-- case, by Unicode's tables in the version that Spark's ICU has, whatever the database's own collation

CREATE OR REPLACE FUNCTION spark.lower(x text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT lower(x COLLATE pg_unicode_fast)
$$;

CREATE OR REPLACE FUNCTION spark.upper(x text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT upper(x COLLATE pg_unicode_fast)
$$;

-- numbers as text, with commas

CREATE OR REPLACE FUNCTION spark.format_number(x numeric, places integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x < 0 THEN '-' ELSE '' END || ltrim(to_char(trunc(abs(r)), repeat('999,', 13) || '990'))
    || CASE WHEN places > 0 THEN '.' || rpad(substr(mod(abs(r), 1)::text, 3), places, '0') ELSE '' END
  FROM (SELECT spark.bround(x, places) AS r WHERE places >= 0) AS rounded
$$;

CREATE OR REPLACE FUNCTION spark.sha2(x text, bits integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT encode(CASE bits
    WHEN 224 THEN sha224(convert_to(x, 'UTF8'))
    WHEN 384 THEN sha384(convert_to(x, 'UTF8'))
    WHEN 512 THEN sha512(convert_to(x, 'UTF8'))
    WHEN 256 THEN sha256(convert_to(x, 'UTF8'))
    WHEN 0 THEN sha256(convert_to(x, 'UTF8'))
  END, 'hex')
$$;

-- texts as numbers, their fraction cut off, and as truth

CREATE OR REPLACE FUNCTION spark.whole(x text, bound numeric) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN length(ltrim(m[2], '0')) < 20 AND (m[2] <> '' OR m[3] <> '')
    THEN spark.within((m[1] || '0' || m[2])::numeric, bound) END
  FROM regexp_match(x, E'^[\\u0001-\\u0020\\u007F]*([+-]?)([0-9]*)(\\.?)(?:[0-9]*)[\\u0001-\\u0020\\u007F]*$') AS found (m)
$$;

-- An exponent of any length, of which 12 digits decide: Postgres has no number of 140,000.
CREATE OR REPLACE FUNCTION spark.exponent(digits text) RETURNS numeric
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT regexp_replace(digits, '^([+-]?)0*([1-9][0-9]{11})[0-9]+$', '\1\2')::numeric
$$;

-- As Java reads a double: nothing is too large or too small to be the nearest one, Infinity or 0.
CREATE OR REPLACE FUNCTION spark.to_double(x text) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  text_ text := regexp_replace(x, E'^[\\u0001-\\u0020]+|[\\u0001-\\u0020]+$', '', 'g');
  m text[] := regexp_match(text_, E'^[+-]?([0-9]*)(?:\\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?[dDfF]?$');
  hex text[] := regexp_match(text_, E'^[+-]?0[xX]([0-9a-fA-F]*)(?:\\.([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)[dDfF]?$');
  sign_ double precision := CASE WHEN left(text_, 1) = '-' THEN -1 ELSE 1 END;
  digits text;
  point numeric;
  whole numeric := 0;
BEGIN
  IF text_ ~ '^[+-]?NaN$' OR text_ ~ '^[nN][aA][nN]$' THEN
    RETURN 'NaN';
  ELSIF text_ ~ '^[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?$' THEN
    RETURN sign_ * 'Infinity';
  ELSIF concat(hex[1], hex[2]) <> '' THEN
    digits := ltrim(concat(hex[1], hex[2]), '0');
    point := spark.exponent(hex[3]) - 4 * length(concat(hex[2]));  -- the power of 2 of the last digit
    IF digits = '' OR point + 4 * length(digits) < -1100 THEN
      RETURN sign_ * 0;
    ELSIF point + 4 * length(digits) > 1100 THEN
      RETURN sign_ * 'Infinity';
    END IF;
    IF length(digits) > 40 THEN  -- of what follows only whether it is anything matters
      point := point + 4 * (length(digits) - 41);
      digits := left(digits, 40) || CASE WHEN ltrim(substr(digits, 41), '0') = '' THEN '0' ELSE '1' END;
    END IF;
    FOR place IN 1 .. length(digits) LOOP
      whole := whole * 16 + position(lower(substr(digits, place, 1)) IN '0123456789abcdef') - 1;
    END LOOP;
    digits := trim_scale(whole * power(CASE WHEN point < 0 THEN 5 ELSE 2 END::numeric, abs(point)))::text;
    point := length(digits) + least(point, 0);
  ELSIF concat(m[1], m[2]) <> '' THEN
    digits := ltrim(concat(m[1], m[2]), '0');
    point := length(digits) - length(concat(m[2])) + coalesce(spark.exponent(m[3]), 0);
    IF length(digits) > 1000 THEN
      digits := left(digits, 1000) || CASE WHEN ltrim(substr(digits, 1001), '0') = '' THEN '' ELSE '1' END;
    END IF;
  ELSE
    RETURN NULL;
  END IF;
  -- it is 0.digits times 10 to the point
  IF digits = '' OR point < -330
    OR (point < -320 AND ('0.' || digits || 'e' || point)::numeric * power(2::numeric, 1075) <= 1)
  THEN
    RETURN sign_ * 0;
  ELSIF point > 310
    OR (point > 308 AND ('0.' || digits || 'e' || point)::numeric >= power(2::numeric, 1024) - power(2::numeric, 970))
  THEN
    RETURN sign_ * 'Infinity';
  END IF;
  RETURN sign_ * ('0.' || digits || 'e' || point)::double precision;
END
$$;

CREATE OR REPLACE FUNCTION spark.to_boolean(x text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN x ~* E'^[\\u0001-\\u0020\\u007F]*(t|true|y|yes|1)[\\u0001-\\u0020\\u007F]*$' THEN true
    WHEN x ~* E'^[\\u0001-\\u0020\\u007F]*(f|false|n|no|0)[\\u0001-\\u0020\\u007F]*$' THEN false
  END
$$;

-- dates

CREATE OR REPLACE FUNCTION spark.make_date(y integer, m integer, d integer) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN y BETWEEN 1 AND 9999 AND m BETWEEN 1 AND 12 THEN
    CASE WHEN d BETWEEN 1 AND extract(day FROM make_date(y, m, 1) + interval '1 month' - interval '1 day')
      THEN make_date(y, m, d) END
  END
$$;

-- Whole months as Java counts them: the last day is none where its time of day is not reached.
CREATE OR REPLACE FUNCTION spark.months_apart(a timestamp, b timestamp) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT (
      (extract(year FROM until) - extract(year FROM a)) * 384 + (extract(month FROM until) - extract(month FROM a)) * 32
      + extract(day FROM until) - extract(day FROM a)
    )::bigint / 32
  FROM (
    SELECT b::date + CASE
      WHEN b::date > a::date AND b::time < a::time THEN -1
      WHEN b::date < a::date AND b::time > a::time THEN 1
      ELSE 0
    END AS until
  ) AS last_day
$$;

-- Whole months between two equal days of a month, or two last ones; else of 31 days each, to 8 digits.
CREATE OR REPLACE FUNCTION spark.months_between(a timestamp, b timestamp) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH given AS (
    SELECT 12 * (extract(year FROM a) - extract(year FROM b)) + extract(month FROM a) - extract(month FROM b) AS months,
      extract(day FROM a) - extract(day FROM b) AS days,
      floor(extract(epoch FROM a::time)) - floor(extract(epoch FROM b::time)) AS seconds,
      extract(day FROM a + interval '1 day') = 1 AND extract(day FROM b + interval '1 day') = 1 AS last
  )
  SELECT CASE
    WHEN days = 0 OR last THEN months::double precision
    ELSE floor((months::double precision + (days * 86400 + seconds)::double precision / 2678400) * 1e8 + 0.5) / 1e8
  END
  FROM given
$$;

-- times as text

CREATE OR REPLACE FUNCTION spark.to_text(x timestamp) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT rtrim(rtrim(to_char(x, 'YYYY-MM-DD HH24:MI:SS.US'), '0'), '.')
$$;

-- as `compiled.JSON_TIMES` tells Spark to write them

CREATE OR REPLACE FUNCTION spark.json(x timestamp) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x >= '10000-01-01' THEN '+' ELSE '' END || to_char(x, 'YYYY-MM-DD"T"HH24:MI:SS.US')
$$;

CREATE OR REPLACE FUNCTION spark.json(x timestamptz) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.json(x AT TIME ZONE 'UTC') || 'Z'
$$;

-- sums of doubles, which go on to Infinity where Postgres' own would raise

CREATE OR REPLACE FUNCTION spark.total(a double precision, b double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a ELSE spark.plus(a, b) END
$$;

CREATE OR REPLACE FUNCTION spark.added(a double precision, b double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT spark.plus(a, b)
$$;

CREATE OR REPLACE AGGREGATE spark.sum(double precision) (
  SFUNC = spark.added, STYPE = double precision, COMBINEFUNC = spark.added, PARALLEL = SAFE
);

-- times within the calendar, the years 1 to 9999; others are NULL

CREATE OR REPLACE FUNCTION spark.shown(x timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x >= timestamptz '0001-01-01 00:00:00+00' AND x < timestamptz '10000-01-01 00:00:00+00' THEN x END
$$;

CREATE OR REPLACE FUNCTION spark.shown(x timestamp) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x >= timestamp '0001-01-01 00:00:00' AND x < timestamp '10000-01-01 00:00:00' THEN x END
$$;

CREATE OR REPLACE FUNCTION spark.shown(x date) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x BETWEEN date '0001-01-01' AND date '9999-12-31' THEN x END
$$;

-- infinities, which a time that is made of one is, too

CREATE OR REPLACE FUNCTION spark.infinite(x timestamptz) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN NOT isfinite(x) THEN x END
$$;

CREATE OR REPLACE FUNCTION spark.infinite(x timestamp) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN NOT isfinite(x) THEN x END
$$;

CREATE OR REPLACE FUNCTION spark.infinite(x date) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN NOT isfinite(x) THEN x END
$$;

-- a time moved by a length, within the calendar

CREATE OR REPLACE FUNCTION spark.shifted(x timestamp, length interval) RETURNS timestamp
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN length >= interval '0' THEN CASE WHEN x < timestamp '10000-01-01 00:00:00' - length THEN x + length END
    WHEN x >= timestamp '0001-01-01 00:00:00' - length THEN x + length
  END
$$;

CREATE OR REPLACE FUNCTION spark.shifted(x timestamptz, length interval) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.shifted(x AT TIME ZONE 'UTC', length) AT TIME ZONE 'UTC'
$$;

CREATE OR REPLACE FUNCTION spark.shifted(x date, length interval) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.shifted(x::timestamp, length)::date
$$;

-- days later, within the calendar

CREATE OR REPLACE FUNCTION spark.date_add(x date, days bigint) RETURNS date
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN days BETWEEN date '0001-01-01' - x AND date '9999-12-31' - x THEN x + days::integer END
$$;

-- structs, which are JSON without the fields that are NULL

CREATE OR REPLACE FUNCTION spark.struct(x jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT coalesce(jsonb_object_agg(key, value) FILTER (WHERE value <> 'null'), '{}') FROM jsonb_each(x)
$$;

-- arrays, which are JSON: of texts, whole numbers, decimals, booleans and dates where nothing else is said

CREATE OR REPLACE FUNCTION spark.array_sort(x jsonb, nulls_first boolean DEFAULT false) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY
      (v = 'null') <> nulls_first, CASE WHEN jsonb_typeof(v) = 'string' THEN v #>> '{}' END COLLATE "C", v)
    FROM jsonb_array_elements(x) AS each (v)), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.array_sort_numbers(x jsonb, nulls_first boolean DEFAULT false) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY (v = 'null') <> nulls_first, (v #>> '{}')::double precision)
    FROM jsonb_array_elements(x) AS each (v)), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.array_sort_times(x jsonb, nulls_first boolean DEFAULT false) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY (v = 'null') <> nulls_first, (v #>> '{}')::timestamp)
    FROM jsonb_array_elements(x) AS each (v)), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.array_among(x jsonb, others jsonb, wanted boolean) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL AND others IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY i) FROM jsonb_array_elements(x) WITH ORDINALITY AS each (v, i)
    WHERE (v IN (SELECT jsonb_array_elements(others))) = wanted), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.arrays_overlap(x jsonb, y jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NULL OR y IS NULL THEN NULL
    WHEN spark.array_among(spark.array_among(x, y, true), '[null]', false) <> '[]' THEN true
    WHEN x = '[]' OR y = '[]' OR NOT (x @> 'null' OR y @> 'null') THEN false END
$$;

CREATE OR REPLACE FUNCTION spark.reverse(x jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY i DESC) FROM jsonb_array_elements(x) WITH ORDINALITY AS each (v, i)), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.slice(x jsonb, start integer, length integer) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY i) FROM jsonb_array_elements(x) WITH ORDINALITY AS each (v, i),
      LATERAL (SELECT CASE WHEN start < 0 THEN jsonb_array_length(x) + start + 1 ELSE start END) AS place (first)
    WHERE first > 0 AND i >= first AND i - first < length), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.field_of_each(x jsonb, path text[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v #> path ORDER BY i) FROM jsonb_array_elements(x) WITH ORDINALITY AS each (v, i)), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.sequence(first bigint, last bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_agg(n) FROM generate_series(first, last, CASE WHEN first <= last THEN 1 ELSE -1 END) AS n
  WHERE abs(last::numeric - first) < 1000000
$$;

-- without a step in either direction; with one, where Spark would raise, NULL; so is what has more than a million elements

CREATE OR REPLACE FUNCTION spark.sequence(first bigint, last bigint, step bigint) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_agg(n ORDER BY i) FROM generate_series(first, last, step) WITH ORDINALITY AS each (n, i)
  WHERE abs(last::numeric - first) <= 999999 * abs(step::numeric)
$$;

CREATE OR REPLACE FUNCTION spark.days(first date, last date, step integer DEFAULT NULL) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_agg(first + n ORDER BY i)
  FROM generate_series(0, last - first, coalesce(step, CASE WHEN first <= last THEN 1 ELSE -1 END))
    WITH ORDINALITY AS each (n, i)
  WHERE abs(last - first) <= 999999 * abs(coalesce(step, 1)::bigint)
$$;

CREATE OR REPLACE FUNCTION spark.instants(first timestamptz, last timestamptz, seconds integer) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_agg(spark.json(first + n * interval '1 second') ORDER BY n)
  FROM generate_series(0, floor(extract(epoch FROM last - first))::bigint, seconds::bigint) AS n
  WHERE extract(epoch FROM last - first) <= 999999 * seconds::bigint
$$;

CREATE OR REPLACE FUNCTION spark.array_distinct(x jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(v ORDER BY first) FROM (
      SELECT v, min(i) AS first FROM jsonb_array_elements(x) WITH ORDINALITY AS each (v, i) GROUP BY v) AS once), '[]') END
$$;

CREATE OR REPLACE FUNCTION spark.array_join(x jsonb, delimiter text, null_as text DEFAULT NULL) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL THEN coalesce((
    SELECT string_agg(coalesce(v, null_as), delimiter ORDER BY i)
    FROM jsonb_array_elements_text(x) WITH ORDINALITY AS each (v, i)), '') END
$$;

CREATE OR REPLACE FUNCTION spark.array_contains(x jsonb, wanted jsonb) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x @> wanted THEN true WHEN x IS NOT NULL AND wanted IS NOT NULL AND NOT x @> 'null' THEN false END
$$;

CREATE OR REPLACE FUNCTION spark.array_position(x jsonb, wanted jsonb) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x IS NOT NULL AND wanted IS NOT NULL THEN coalesce((
    SELECT min(i) FROM jsonb_array_elements(x) WITH ORDINALITY AS each (v, i) WHERE v = wanted), 0) END
$$;

-- shares of a group's values, of which each is there with how often it came, in order

CREATE OR REPLACE FUNCTION spark.percentile(x double precision[], times bigint[], share double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH counted AS (
    SELECT v, sum(n) OVER (ORDER BY i) AS upto FROM unnest(x, times) WITH ORDINALITY AS each (v, n, i)
  ), place AS (
    SELECT share * (max(upto) - 1)::double precision AS at FROM counted
  ), neighbours AS (
    SELECT at, (SELECT v FROM counted WHERE upto > floor(at) ORDER BY upto LIMIT 1) AS low,
      (SELECT v FROM counted WHERE upto > ceil(at) ORDER BY upto LIMIT 1) AS high
    FROM place
  )
  SELECT CASE
    WHEN at = floor(at) OR low = high THEN low
    ELSE spark.plus(spark.times(ceil(at) - at, low), spark.times(at - floor(at), high))
  END
  FROM neighbours
$$;

-- of values in no order, each as often as it came
CREATE OR REPLACE FUNCTION spark.percentile(x double precision[], share double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.percentile(array_agg(v ORDER BY v), array_agg(1::bigint), share) FROM unnest(x) AS each (v)
$$;

CREATE OR REPLACE FUNCTION spark.percentile_disc(x double precision[], times bigint[], share double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH counted AS (
    SELECT v, sum(n) OVER (ORDER BY i) AS upto FROM unnest(x, times) WITH ORDINALITY AS each (v, n, i)
  )
  SELECT v FROM counted WHERE upto >= share * (SELECT max(upto) FROM counted)::double precision ORDER BY upto LIMIT 1
$$;

-- means and sums of products of deviations, of two sets of records as of one

CREATE OR REPLACE FUNCTION spark.mean(n1 bigint, a1 double precision, n2 bigint, a2 double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN n1 = 0 THEN a2
    WHEN n2 = 0 OR a1 = a2 THEN a1
    ELSE spark.plus(a1, spark.times(spark.minus(a2, a1), n2::double precision / (n1 + n2)))
  END
$$;

CREATE OR REPLACE FUNCTION spark.comoment(
  n1 bigint, x1 double precision, y1 double precision, c1 double precision,
  n2 bigint, x2 double precision, y2 double precision, c2 double precision
) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN n1 = 0 THEN c2
    WHEN n2 = 0 THEN c1
    ELSE spark.plus(spark.plus(c1, c2), spark.times(
      spark.times(spark.minus(x2, x1), spark.minus(y2, y1)), n1::double precision / (n1 + n2) * n2))
  END
$$;

CREATE OR REPLACE FUNCTION spark.mean_step(state double precision[], n bigint, a double precision)
RETURNS double precision[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY[state[1] + n, spark.mean(state[1]::bigint, state[2], n, a)]
$$;

CREATE OR REPLACE FUNCTION spark.mean_end(state double precision[]) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN state[1] > 0 THEN state[2] END
$$;

CREATE OR REPLACE AGGREGATE spark.mean(bigint, double precision) (
  SFUNC = spark.mean_step, STYPE = double precision[], FINALFUNC = spark.mean_end, INITCOND = '{0,0}', PARALLEL = SAFE
);

CREATE OR REPLACE FUNCTION spark.comoment_step(
  state double precision[], n bigint, x double precision, y double precision, c double precision
) RETURNS double precision[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY[
    state[1] + n, spark.mean(state[1]::bigint, state[2], n, x), spark.mean(state[1]::bigint, state[3], n, y),
    spark.comoment(state[1]::bigint, state[2], state[3], state[4], n, x, y, c)
  ]
$$;

CREATE OR REPLACE FUNCTION spark.comoment_end(state double precision[]) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN state[1] > 0 THEN state[4] END
$$;

CREATE OR REPLACE AGGREGATE spark.comoment(bigint, double precision, double precision, double precision) (
  SFUNC = spark.comoment_step, STYPE = double precision[], FINALFUNC = spark.comoment_end, INITCOND = '{0,0,0,0}',
  PARALLEL = SAFE
);

-- sums of third and fourth powers of deviations, of two sets of records as of one (Pébay, 2008)

CREATE OR REPLACE FUNCTION spark.third(
  n1 bigint, a1 double precision, s1 double precision, t1 double precision,
  n2 bigint, a2 double precision, s2 double precision, t2 double precision
) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN n1 = 0 THEN t2
    WHEN n2 = 0 THEN t1
    ELSE spark.plus(spark.plus(t1, t2), spark.plus(
      spark.times(spark.times(d, spark.times(d, d)), p * q * (p - q) * (n1 + n2)),
      spark.times(spark.times(3, d), spark.minus(spark.times(p, s2), spark.times(q, s1)))))
  END
  FROM (
    SELECT spark.minus(a2, a1) AS d, n1::double precision / nullif(n1 + n2, 0) AS p,
      n2::double precision / nullif(n1 + n2, 0) AS q
  ) AS given
$$;

CREATE OR REPLACE FUNCTION spark.fourth(
  n1 bigint, a1 double precision, s1 double precision, t1 double precision, f1 double precision,
  n2 bigint, a2 double precision, s2 double precision, t2 double precision, f2 double precision
) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN n1 = 0 THEN f2
    WHEN n2 = 0 THEN f1
    ELSE spark.plus(spark.plus(f1, f2), spark.plus(
      spark.plus(
        spark.times(spark.times(spark.times(d, d), spark.times(d, d)), p * q * (p * p - p * q + q * q) * (n1 + n2)),
        spark.times(spark.times(6, spark.times(d, d)), spark.plus(spark.times(p * p, s2), spark.times(q * q, s1)))),
      spark.times(spark.times(4, d), spark.minus(spark.times(p, t2), spark.times(q, t1)))))
  END
  FROM (
    SELECT spark.minus(a2, a1) AS d, n1::double precision / nullif(n1 + n2, 0) AS p,
      n2::double precision / nullif(n1 + n2, 0) AS q
  ) AS given
$$;

CREATE OR REPLACE FUNCTION spark.third_step(
  state double precision[], n bigint, a double precision, s double precision, t double precision
) RETURNS double precision[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ARRAY[
    state[1] + n, spark.mean(state[1]::bigint, state[2], n, a),
    spark.comoment(state[1]::bigint, state[2], state[2], state[3], n, a, a, s),
    spark.third(state[1]::bigint, state[2], state[3], state[4], n, a, s, t)
  ]
$$;

CREATE OR REPLACE FUNCTION spark.fourth_step(
  state double precision[], n bigint, a double precision, s double precision, t double precision, f double precision
) RETURNS double precision[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT spark.third_step(state, n, a, s, t)
    || spark.fourth(state[1]::bigint, state[2], state[3], state[4], state[5], n, a, s, t, f)
$$;

CREATE OR REPLACE FUNCTION spark.fourth_end(state double precision[]) RETURNS double precision
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN state[1] > 0 THEN state[5] END
$$;

CREATE OR REPLACE AGGREGATE spark.third(bigint, double precision, double precision, double precision) (
  SFUNC = spark.third_step, STYPE = double precision[], FINALFUNC = spark.comoment_end, INITCOND = '{0,0,0,0}',
  PARALLEL = SAFE
);

CREATE OR REPLACE AGGREGATE spark.fourth(
  bigint, double precision, double precision, double precision, double precision
) (
  SFUNC = spark.fourth_step, STYPE = double precision[], FINALFUNC = spark.fourth_end, INITCOND = '{0,0,0,0,0}',
  PARALLEL = SAFE
);

-- The first and the last value of a frame that is not NULL: strict, so that NULLs are passed over

CREATE OR REPLACE FUNCTION spark.first_of_two(a anyelement, b anyelement) RETURNS anyelement
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT a $$;

CREATE OR REPLACE FUNCTION spark.last_of_two(a anyelement, b anyelement) RETURNS anyelement
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT b $$;

CREATE OR REPLACE AGGREGATE spark.first_known(anyelement) (SFUNC = spark.first_of_two, STYPE = anyelement);

CREATE OR REPLACE AGGREGATE spark.last_known(anyelement) (SFUNC = spark.last_of_two, STYPE = anyelement);

-- The blocks of panes that a window lies in, each with its bits of the panes that do, 64 to a number

CREATE OR REPLACE FUNCTION spark.panes_between(first integer, after integer, word integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN first < word + 64 AND after > word
    THEN -1::bigint << greatest(0, first - word)
      & ~CASE WHEN after < word + 64 THEN -1::bigint << after - word ELSE 0 END
    ELSE 0
  END
$$;

CREATE OR REPLACE FUNCTION spark.blocks(
  window_start timestamptz, size interval, pane interval, panes integer, origin timestamptz
) RETURNS TABLE (
  start timestamptz,
  seen_00 bigint, seen_01 bigint, seen_02 bigint, seen_03 bigint, seen_04 bigint, seen_05 bigint, seen_06 bigint,
  seen_07 bigint, seen_08 bigint, seen_09 bigint, seen_10 bigint, seen_11 bigint, seen_12 bigint, seen_13 bigint,
  seen_14 bigint, seen_15 bigint
) LANGUAGE plpgsql STABLE PARALLEL SAFE ROWS 2 AS $$
DECLARE
  calendar CONSTANT timestamptz := '0001-01-01 00:00:00+00';
  block timestamptz := date_bin(pane * panes, window_start, origin);
  first integer;
  after integer;
BEGIN
  WHILE block < window_start + size LOOP
    first := greatest(0, extract(epoch FROM window_start - block) / extract(epoch FROM pane));
    after := least(panes, extract(epoch FROM window_start + size - block) / extract(epoch FROM pane));
    RETURN QUERY SELECT CASE WHEN block < calendar AND block + pane * panes > calendar THEN calendar ELSE block END,
      spark.panes_between(first, after, 0), spark.panes_between(first, after, 64),
      spark.panes_between(first, after, 128), spark.panes_between(first, after, 192),
      spark.panes_between(first, after, 256), spark.panes_between(first, after, 320),
      spark.panes_between(first, after, 384), spark.panes_between(first, after, 448),
      spark.panes_between(first, after, 512), spark.panes_between(first, after, 576),
      spark.panes_between(first, after, 640), spark.panes_between(first, after, 704),
      spark.panes_between(first, after, 768), spark.panes_between(first, after, 832),
      spark.panes_between(first, after, 896), spark.panes_between(first, after, 960);
    block := block + pane * panes;
  END LOOP;
END
$$;

-- A list with each of its elements repeated

CREATE OR REPLACE FUNCTION spark.repeated(list jsonb, times bigint[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT jsonb_agg(value ORDER BY place)
  FROM jsonb_array_elements(list) WITH ORDINALITY AS element (value, place), generate_series(1, times[place])
$$;

-- HyperLogLog: the estimate of as many registers, of which those that are taken are given

CREATE OR REPLACE FUNCTION spark.hyperloglog(places integer[], registers bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  WITH kept AS (
    SELECT count(*) AS n, coalesce(sum(power(2::double precision, -place)), 0) AS z FROM unnest(places) AS each (place)
  ), raw AS (
    SELECT n, (0.7213::double precision / (1 + 1.079::double precision / registers) * registers * registers)
      / (z + registers - n) AS e
    FROM kept
  )
  SELECT floor(CASE
    WHEN n < registers AND e <= 2.5::double precision * registers
    THEN registers::double precision * ln(registers::double precision / (registers - n))
    ELSE e
  END + 0.5::double precision)::bigint
  FROM raw
$$;
