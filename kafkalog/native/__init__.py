"""The fence around everything that is reached by address: zstd, lz4, CRC-32C and pread of the
libraries behind the Python packages, called by compiled code without Python in between.

Past an address nothing is checked by anybody, so it is checked here, and no address leaves this
room: callers hand over arrays and get arrays, and

 - every place and length is held against its buffer first; one outside is an IndexError
 - a function is looked for by name when its module is imported, and tried out once; where a package
   does not have it (another version, another build), or where it does not do what it should, a
   warning says so and the Python functions of the same package do the work (`format.compression`,
   `format.checksum`): slower, with the same results

Read `functions.py` for how a function is found, `codec_batches.py` for the codecs.
"""
