"""Connections to brokers and schema registries: the settings of clients, logins, certificates and tokens.

In: the URLs and options of the settings. Out: clients, and the same settings for Spark's Java client. The promise: no
secret is printed, and certificates and tokens are renewed without a restart.
"""
