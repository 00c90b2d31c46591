#!/bin/sh
# Superset with the dashboard of all views, which `lamina generate superset` has made. The first start makes the user
# `admin`; a later one takes in what has changed. Postgres' password is in PGPASSWORD, so that no argument shows it.
set -eu
superset db upgrade
printf '%s\n%s\n' "$DASHBOARDS_PASSWORD" "$DASHBOARDS_PASSWORD" |
  superset fab create-admin --username admin --firstname Lamina --lastname admin --email admin@localhost
superset init
superset import-datasources --path "$DASHBOARDS/lamina.zip" --username admin
superset import-dashboards --path "$DASHBOARDS/lamina.zip" --username admin
exec gunicorn --bind "0.0.0.0:$SUPERSET_PORT" --workers 1 --worker-class gthread --threads 20 --timeout 120 \
  'superset.app:create_app()'
