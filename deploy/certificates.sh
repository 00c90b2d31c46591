#!/bin/sh
# Makes a server certificate for Postgres unless there is one: certificates.sh FOLDER NAME…
# It is valid for these names, and signed by an authority whose certificate is root.crt and whose key is thrown away. For
# other names, remove the files, run the script again, and give clients the new root.crt.
set -eu
folder=$1
shift
[ -s "$folder/server.key" ] && exit 0
names=$(printf 'DNS:%s,' "$@")
draft=$(mktemp -d)
trap 'rm -rf "$draft"' EXIT
cd "$draft"
umask 077
key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
# shellcheck disable=SC2086
openssl req -x509 $key -days 3650 -keyout root.key -out root.crt -subj "/CN=Lamina's Postgres" 2> errors || { cat errors >&2; exit 1; }
# shellcheck disable=SC2086
openssl req $key -keyout server.key -out server.csr -subj "/CN=$1" 2> errors || { cat errors >&2; exit 1; }
printf 'subjectAltName=%s\n' "${names%,}" > names
openssl x509 -req -in server.csr -CA root.crt -CAkey root.key -CAcreateserial -days 3650 -extfile names -out server.crt 2> errors \
  || { cat errors >&2; exit 1; }
chmod 644 root.crt server.crt
if [ "$(id -u)" = 0 ]; then
  # Postgres accepts a key owned by root that its own group may read. This is the group of Postgres in its image.
  chown "0:${POSTGRES_GROUP:-999}" server.key
  chmod 640 server.key
fi
mv root.crt server.crt "$folder/"
mv server.key "$folder/"
