"""Arrays to Arrow: `schemas` is the table of all views, `arrow_arrays` makes arrays Arrow owns, one
module per view shape.

Below this floor there are only bytes and arrays, above it only Arrow.
"""
