"""Every on-disk structure, one file each: bytes ↔ values, in plain Python.

The docstring of a module is the format; `parse_` and `pack_` are the two directions. Nothing here
opens a file: parsers take bytes, and a `path` only to name it in an error. Read `record_batch`
first, then `record`; only `compression` and `checksum` know codec and CRC libraries.

The record codec is slow on purpose: it is what the kernels are held to, and what tests build logs
with.
"""
