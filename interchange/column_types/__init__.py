"""Column types for the fields of a schema: Arrow's, Avro's or Protobuf's. A field that no type fits is a STRING."""
