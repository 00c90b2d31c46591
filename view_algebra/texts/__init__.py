"""The texts that run: `partial`, `cells` and `merge` of leaves, their fusion, and NULL outside of the calendar."""
