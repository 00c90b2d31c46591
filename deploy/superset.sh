#!/bin/sh
# Starts Superset with the dashboard of all views, which `lamina generate superset` has written. The first start creates
# the user `admin`. Every start imports the dashboard again. PGPASSWORD holds the password of Postgres, so no argument
# shows it.
set -eu
superset db upgrade
printf '%s\n%s\n' "$DASHBOARDS_PASSWORD" "$DASHBOARDS_PASSWORD" |
  superset fab create-admin --username admin --firstname Lamina --lastname admin --email admin@localhost
superset init
superset import-datasources --path "$DASHBOARDS/lamina.zip" --username admin
superset import-dashboards --path "$DASHBOARDS/lamina.zip" --username admin
exec gunicorn --bind "0.0.0.0:$SUPERSET_PORT" --workers 1 --worker-class gthread --threads 20 --timeout 120 \
  'superset.app:create_app()'
