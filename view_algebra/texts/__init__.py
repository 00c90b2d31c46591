"""The texts that run: how records are read, `partial`, `cells` and `merge` of each leaf, and all of them in one job."""
