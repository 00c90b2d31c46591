"""Files for other tools, made of a catalog (`lamina generate`).

In comes a compiled catalog; out go texts by file name: a data dictionary, a dbt project's sources, Grafana's
provisioning, a bundle for Superset. Nothing is read but the catalog, and no file holds a password.

`shown` says what all of them say of a view: its rows, its chart, its freshness.
"""
