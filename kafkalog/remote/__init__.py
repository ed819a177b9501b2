"""Segments in remote storage as their objects are: stores, layouts, manifests, chunks, keys.

    stores       directories, `buckets` and `webhdfs`: what is listed, how large, ranges of bytes
    layouts      which objects are whose segments, and layouts that are not read
    segment      one segment behind a manifest: its chunks and index files, decoded and checked
    keys         the RSA keys that open the data keys of segments
    cache        decoded blocks of a process, of a bounded size
    paths        how a file behind a manifest is named, so that readers of files can read it

What of it belongs to a log, and before what on a broker's disk, is `log.remote_segments`.
"""
