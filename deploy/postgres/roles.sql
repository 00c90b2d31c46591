-- Creates a role with a password for each client. The superuser runs this once, when the data folder is initialized.

\getenv lamina LAMINA_PASSWORD
\getenv analyst ANALYST_PASSWORD
\getenv airflow AIRFLOW_DATABASE_PASSWORD

-- The owner creates the role of writers, waits for old readers (which only pg_monitor sees), and sets up the analyst.
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
