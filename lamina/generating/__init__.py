"""Files for other tools, made from a catalog (`lamina generate`).

In: a compiled catalog, and the address of Postgres. Out: texts by file name: a data dictionary, a dbt project's
sources, Grafana's provisioning, a bundle for Superset. The promise: equal inputs give equal files, and no file holds a
password.

`view_facts` describes a view for all of them: its rows, its chart, its freshness.
"""
