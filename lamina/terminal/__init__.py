"""Output and errors for people: data on stdout, narration on stderr, every error with its way out.

The promise: what is piped holds data alone, and no traceback of a foreseen failure is shown.
"""
