"""The commands. Each opens the parts that it needs, calls one function of a layer, and shows the result.

In: options and arguments. Out: data on stdout, an exit code. The promise: a command that failed exits with a code other
than 0, and its error names the way out.
"""
