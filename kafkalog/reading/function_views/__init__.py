"""Views that are more than a look at one partition, whatever engine shows them: what
`kafkalog.spark` has as functions of the same names.

`table` is the table: a row a view, with its columns and how it is made. `shared_reads` is what
several of them need and is read once; `record_queries` has those over all records or batches as
SQL over a view of `reading.views`. The others make Arrow tables in this process: what they are made
of is small, or read in parts of which each keeps the last record of each key.
"""
