-- Protections that only a superuser can set up, in the database that Lamina serves from. Run it again after a major upgrade:
--
--   psql --username postgres --dbname lamina --file superuser.sql

\connect lamina

DO $$
DECLARE
  forbidden regprocedure;
  owner text := (SELECT quote_ident(datdba::regrole::text) FROM pg_database WHERE datname = current_database());
  setting text;
BEGIN
  -- By default any role may take advisory locks until the server runs out of memory, and write large objects and log records.
  FOR forbidden IN
    SELECT oid FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace
      AND (proname ~ '^(pg_advisory|pg_try_advisory|lo)_' OR proname IN ('loread', 'lowrite', 'pg_logical_emit_message'))
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', forbidden);
  END LOOP;
  REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC;
  EXECUTE format('GRANT USAGE ON LANGUAGE plpgsql TO %s', owner);
  -- The owner may limit readers' temporary files, and gets a connection when readers have taken all others.
  EXECUTE format('GRANT SET ON PARAMETER temp_file_limit TO %s', owner);
  EXECUTE format('GRANT pg_use_reserved_connections TO %s', owner);
  -- The owner may see which session of another role holds an old snapshot.
  EXECUTE format('GRANT pg_read_all_stats TO %s', owner);
  -- The limits of readers are settings of the database. A superuser's backups and maintenance are exempt.
  FOREACH setting IN ARRAY ARRAY['statement_timeout', 'idle_in_transaction_session_timeout', 'lock_timeout'] LOOP
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET %I = 0', current_database(), setting);
  END LOOP;
  EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET temp_file_limit = -1', current_database());
END
$$;
