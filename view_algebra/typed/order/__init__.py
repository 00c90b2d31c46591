"""The order of rows: unique keys, the order of events, and ties that the rest of a key breaks."""
