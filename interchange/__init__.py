"""Records and rows outside the log: files in and out, values of every format, and types guessed from values.

In: lines of files, records of topics, rows of views. Out: records in a topic, files, and columns with types for `lamina
init`. The promise: every value is judged before it is sent as Spark will read it, a file is written whole or not at
all, and memory stays bounded however long the file is.
"""
