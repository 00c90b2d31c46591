# Stands in for python:3.11-slim-bookworm: Debian 12 with Debian's own Python 3.11, as `python`.
FROM bookworm
RUN ln -s python3 /usr/bin/python && rm /usr/lib/python3.11/EXTERNALLY-MANAGED
