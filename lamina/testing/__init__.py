"""`lamina test`: the tests that stand next to the views of a catalog (`*.test`), run without a deployment.

In: a catalog's folder. Out: for each test and each way of computing its views, the rows that are missing or unexpected.
The promise: a test runs in a database of its own and needs no Kafka, and the same seed cuts the same micro-batches.
"""
