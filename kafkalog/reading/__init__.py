"""Ranges in, Arrow batches out: the one reading path of Spark, the Python API and the command line.

`selection` (which partitions and offsets) → `splits` (byte ranges at batch boundaries) →
`segment_reader` (a split's columns). `scan` ties them together for a view; `log_views` are the
views with a row per file or directory; `tables` is the Python API. `request` says what is wanted
and what happens to damage.
"""
