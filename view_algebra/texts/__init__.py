"""The texts that run: each leaf's `partial`, `cells` and `merge`, the fusion of partials, and the years of times."""
