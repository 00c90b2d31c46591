"""Column types for the fields of a schema: Arrow's, Avro's or Protobuf's.

In: a schema. Out: a type for each of its fields. The promise: every value of a field fits its column, and a field that
no other type fits is a STRING.
"""
