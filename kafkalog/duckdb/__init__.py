"""The engine of `kafkalog sql`: SQL over all views of a log in this process, on embedded DuckDB: no
JVM, no server.

Each view is an Arrow dataset of our own (`dataset`) that DuckDB asks for columns and conditions, so
that what a query does not name is not decoded; `connection` has them under their names, and nothing
else: no file can be read or written by SQL. `session` runs queries in Spark's dialect.
"""
