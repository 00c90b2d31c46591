# Stands in for postgres:18: a server with TLS, Debian's clients, the same user and folders.
FROM bookworm
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql-client-15
RUN groupadd --system --gid 999 postgres && useradd --system --uid 999 --gid 999 postgres \
    && mkdir --parents /var/run/postgresql && chown postgres /var/run/postgresql
COPY server /usr/local/pgsql
COPY postgres.sh /usr/local/bin/
ENV PATH=/usr/local/pgsql/bin:/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin PGDATA=/var/lib/postgresql/18/docker
ENTRYPOINT ["/bin/sh", "/usr/local/bin/postgres.sh"]
