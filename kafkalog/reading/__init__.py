"""Ranges in, Arrow batches out: the one reading path of Spark, the Python API and the command line.

`views` is the table: a row a view, with what reads it. For records and batches that is `selection`
(which partitions and offsets) → `split_ranges`, `split_plan` (byte ranges at batch boundaries) →
`segment_reader`, `batch_reader` (a split's columns). `scan` is what is the same for all views,
`request` says what is wanted and what happens to damage, `tables` is the Python API.
"""
