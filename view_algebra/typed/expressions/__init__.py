"""Expressions over one row.

Syntax comes in. Typed expressions go out, and edits for `lamina check`. An expression has the type that Spark gives it,
and the edits change no value that both engines compute alike.

scalars         a reader for each kind of node
casts, likes    CAST, LIKE
nested          structs, maps and lambdas
sugar           functions that rewrite to others
guards          guards for values that Spark or Postgres lacks
"""
