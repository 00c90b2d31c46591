"""`lamina test`: the tests that stand next to the views of a catalog (`*.test`), run without a deployment.

A catalog's folder comes in. The missing and the unexpected rows go out, for each test and each way of computing a view.
The promise: a test runs in a database of its own and needs no Kafka, and the same seed cuts the same micro-batches.
"""
