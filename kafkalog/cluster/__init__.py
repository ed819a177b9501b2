"""The cluster as its metadata log tells it: every broker, controller, partition, setting and right
over time, as rows of the tables in `columns.cluster_schemas`.

`history` replays one metadata partition (a snapshot where the log does not go back to the
beginning, then the log, then what this member's `quorum-state` promised) and hands each record to
the table it belongs to: `nodes`, `partitions`, `settings`, `rights`. `find` chooses the metadata
log that knows most among the log dirs of several nodes.

Plain Python over small data: a broker keeps all of this in memory.
"""
