-- Creates a role with a password for each client. Postgres' image runs this once, as the superuser of a new server.

\getenv lamina LAMINA_PASSWORD
\getenv analyst ANALYST_PASSWORD
\getenv airflow AIRFLOW_DATABASE_PASSWORD

-- `lamina` owns the database. It creates the role of the writers and sets up `analyst`. With pg_monitor it sees the
-- sessions of readers, for which it waits.
CREATE ROLE lamina LOGIN CREATEROLE PASSWORD :'lamina';
CREATE ROLE analyst LOGIN PASSWORD :'analyst';
GRANT pg_monitor TO lamina;
GRANT analyst TO lamina WITH ADMIN TRUE, INHERIT FALSE;
CREATE DATABASE lamina OWNER lamina;
REVOKE CONNECT, TEMPORARY ON DATABASE lamina, postgres, template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE lamina TO analyst;

CREATE ROLE airflow LOGIN PASSWORD :'airflow';
CREATE DATABASE airflow OWNER airflow;
REVOKE CONNECT ON DATABASE airflow FROM PUBLIC;
