"""Files for other tools, made from a catalog (`lamina generate`).

A compiled catalog comes in. Texts by file name go out: a data dictionary, a dbt project's sources, Grafana's
provisioning, a bundle for Superset. Only the catalog is read, and no file holds a password.

`view_facts` describes a view for all of them: its rows, its chart, its freshness.
"""
