-- Run once, as the superuser, when the server's data are made: a role and a password for each who connects.

\getenv lamina LAMINA_PASSWORD
\getenv analyst ANALYST_PASSWORD
\getenv airflow AIRFLOW_DATABASE_PASSWORD

-- The owner makes the role of writers, waits for old readers (which pg_monitor alone sees), and sets the analyst up.
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
