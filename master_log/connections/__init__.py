"""Connections to brokers and schema registries: the settings of clients, logins, certificates and tokens."""
