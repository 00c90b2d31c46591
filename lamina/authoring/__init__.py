"""A catalog as its author keeps it: the folder of `.sql` files, and a first one for sampled records."""
