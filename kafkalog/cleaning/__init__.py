"""One partition's new segments, as Kafka's cleaner makes them: map, decide, rewrite, verify.

Read in this order: `key_map.py` (which records a later one supersedes), `decisions.py` (what
becomes of each batch), `rewrite.py` (one group of segments into one), `verify.py` (read back and
compare). `operations.compact_partition` has the stages in their order.

Guarantees, each with a test:

* The active segment, everything at or past the plan's end offset, and every batch nothing was
  removed from are byte-identical.
* The last record of each key, every unexpired tombstone, the log end offset, and the last sequence
  and epoch of each active producer are unchanged.
* Until every group of a partition is written, synced, read back and found right, no live file is
  touched.
* A damaged batch stops its partition only, which stays as it was.
"""
