"""Reports: the state of a deployment, and the results of commands, as lines, JSON, metrics and charts.

In: an open deployment, or a value that a layer returned. Out: text, records of JSON and samples. The promise: a report
changes nothing and runs no Spark. It reads the state, and puts it into words.
"""
