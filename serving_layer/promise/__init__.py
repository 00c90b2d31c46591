"""The promise: after every committed transaction, cells of a live generation = partial(all records below progress).

In: cells, bad records and ids, with the range of offsets that they were computed from. Out: progress, live generations,
and their proofs. `micro_batch.py`, `generations.py` and `overwriting.py` hold the transactions that move cells. The
other modules keep one kind of row each (progress, ids, quarantine, history, schemas, skips, rebuilds), load a batch
view (`loading.py`) or compare two generations (`proof.py`).
"""
