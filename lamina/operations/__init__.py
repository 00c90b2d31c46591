"""The operations on one deployment, from planning to upkeep. They call the layers, and narrate what they do."""
