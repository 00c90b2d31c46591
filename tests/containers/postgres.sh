# Makes the databases at the first start, reachable by the socket alone, then starts the server: as postgres:18 does.
set -eu
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA"
  chown postgres /var/lib/postgresql "$PGDATA"
  exec setpriv --reuid postgres --regid postgres --clear-groups sh "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" > /tmp/password
  # shellcheck disable=SC2086
  initdb --username postgres --pwfile /tmp/password $POSTGRES_INITDB_ARGS
  rm /tmp/password
  printf "%s = '%s'\n" listen_addresses '*' unix_socket_directories /var/run/postgresql >> "$PGDATA/postgresql.conf"
  shift
  pg_ctl --wait start --options "$(printf " '%s'" "$@" -c listen_addresses=)"
  for script in /docker-entrypoint-initdb.d/*.sql; do
    psql --set ON_ERROR_STOP=1 --no-psqlrc --username postgres --file "$script"
  done
  pg_ctl --wait --mode fast stop
  set -- postgres "$@"
fi
exec "$@"
