"""Settings: addresses, folders and limits of a deployment.

In: texts from the environment, `lamina.toml` and the files that they name. Out: typed, checked values. The promise: a
wrong text is refused before a service is asked, and the refusal shows no password.
"""
