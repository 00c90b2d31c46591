"""The console: a read-only page over a deployment, for operators and analysts (`lamina console`).

In come the bookkeeping, the ends of the topics, and SELECTs that the analyst may run. Out go HTML pages, which change
every second by server-sent events, and `/metrics`. `watch` asks for all open pages together, `pages` answers requests,
`guards` refuses those of other sites, `charts` draws.

Promise: nothing is written, and no text of a catalog or a record reaches a page unescaped.
"""
