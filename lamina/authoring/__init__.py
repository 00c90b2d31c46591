"""A catalog as its author keeps it: the folder of `.sql` files, and a first one for sampled records.

In: a folder, or a sample with guessed types. Out: the files' texts, or files that compile. The promise: no file of the
author's is overwritten unasked.
"""
