"""Reports about a deployment: its state is read here, and put into lines, JSON and metrics.

The promise: a report changes nothing in the deployment.
"""
