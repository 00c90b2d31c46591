#!/bin/sh
# Sets the password of Airflow's user `admin`, and migrates Airflow's database. It runs before Airflow's services start.
set -eu
umask 077
python -c 'import json, os; print(json.dumps({"admin": os.environ["AIRFLOW_ADMIN_PASSWORD"]}))' \
  > "$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
exec airflow db migrate
