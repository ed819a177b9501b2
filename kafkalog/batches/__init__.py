"""Batch bytes to arrays and back: what stands between `kernels` and everything with names.

`batch_table` says what headers mean, `record_areas` where the records are, decompressed by
`decompressor` into an `arena`; `spans` locates their parts, `gathering` copies them out into
columns, `encoder` writes batches.
"""
