"""The console: a read-only page over a deployment, for operators and analysts (`lamina console`).

The bookkeeping, the ends of the topics, and SELECTs that the analyst may run come in. HTML pages, which change every
second by server-sent events, and `/metrics` go out. `watcher` reads for all open pages together, `readings` says what
one reading holds, `routes` answers requests, `request_guards` refuses requests from other sites, `charts` draws.

The promise: the console writes nothing, and no text of a catalog or a record reaches a page unescaped.
"""
