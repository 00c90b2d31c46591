"""The console: a read-only page over a deployment, for operators and analysts (`lamina console`).

In: the bookkeeping, the ends of the topics, and SELECTs that the analyst may run. Out: HTML pages, which change every
second by server-sent events, and `/metrics`. `watcher` reads for all open pages together. `routes` answers requests
with the values of `page_values`. `request_guards` refuses requests from other sites.

The promise: the console changes nothing in Postgres or Kafka. No text of a catalog or a record reaches a page
unescaped.
"""
