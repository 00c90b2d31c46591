"""The operations on one deployment, from planning to upkeep. They call the layers, and narrate what they do.

In: the settings of a deployment. Out: what the layers return. The promise: an operation opens only the services that it
needs, and closes them.
"""
