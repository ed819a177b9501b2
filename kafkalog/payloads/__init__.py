"""Keys and values that are JSON, Avro or Protobuf → Arrow columns, by schemas that a registry gave
ids: what a payload's type is, and what becomes of its bytes.

Everything here is a Python object a record, some microseconds each: the libraries of these formats
know no columns. What cannot be decoded is null beside the reason, and ends nothing.
"""
