"""Carrying out a compaction plan on one partition's log: the only room that writes into a log dir.

Read in this order: `clean.py` (the stages), `key_map.py` (which records a later one supersedes),
`rewrite.py` (one group of segments into one), `verify.py` (read back and compare), `swap.py` (the
change itself, its crash points, its recovery).

Guarantees, each with a test:

* The active segment, everything at or past the plan's end offset, and every batch nothing was
removed from are byte-identical.
* The last record of each key, every unexpired tombstone, the log end offset, and the last sequence
and epoch of each
  active producer are unchanged.
* Until every group of a partition is written, synced, read back and found right, no live file is
touched.
* A run that fails or is killed at any step leaves a directory that a broker loads with nothing
lost; the next run
  finishes or undoes the swap it finds.
* A task that finds other files than its plan was made from, or whose log dir lock is gone, stops
before it changes anything.
* A damaged batch stops its partition only, which stays as it was.
"""
