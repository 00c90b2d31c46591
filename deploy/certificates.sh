#!/bin/sh
# Makes a server certificate for Postgres: certificates.sh FOLDER NAME…
# Does nothing if FOLDER has a server.key. The certificate is valid for these names. It is signed by an authority whose
# certificate is root.crt. The authority's key is not kept. For other names, remove the files, run the script again, and
# give clients the new root.crt.
set -eu
folder=$(cd "$1" && pwd)
shift
[ -s "$folder/server.key" ] && exit 0
draft=$(mktemp -d)
trap 'rm -rf "$draft"' EXIT
cd "$draft"
umask 077
quietly() {
  "$@" 2> errors || { cat errors >&2; exit 1; }
}
key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
names=$(printf 'DNS:%s,' "$@")
printf 'subjectAltName=%s\n' "${names%,}" > names
# shellcheck disable=SC2086 # $key is several words
quietly openssl req -x509 $key -days 3650 -keyout root.key -out root.crt -subj "/CN=Lamina's Postgres"
# shellcheck disable=SC2086
quietly openssl req $key -keyout server.key -out server.csr -subj "/CN=$1"
quietly openssl x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -days 3650 -extfile names \
  -out server.crt
chmod 644 root.crt server.crt
if [ "$(id -u)" = 0 ]; then
  # Postgres accepts a key that root owns and that its own group may read. In Postgres' image, that group is 999.
  chown "0:${POSTGRES_GROUP:-999}" server.key
  chmod 640 server.key
fi
mv root.crt server.crt "$folder/"
mv server.key "$folder/" # last, because the script takes it as the sign of a complete run
