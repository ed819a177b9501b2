"""Batch bytes to arrays and back: what stands between `kernels` and everything with names.

`batch_table` says what headers mean, `arena` finds or decompresses the records, `spans` locates
their parts, `gathering` copies them out into columns, `encoder` writes batches.
"""
