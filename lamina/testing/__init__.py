"""`lamina test`: the tests that stand next to the views of a catalog (`*.test`), run without a deployment.

A catalog's folder comes in. For each test and each way of computing its views, the missing and the unexpected rows go out.
The promise: a test runs in a database of its own and needs no Kafka, and the same seed cuts the same micro-batches.
"""
