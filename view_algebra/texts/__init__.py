"""The texts that run: the reading of records, each leaf's `partial`, `cells` and `merge`, and their fusion."""
