"""The data directory of a ZooKeeper server that is dead: its tree at any time, how it came to be,
and what the Kafka clusters in it say.

`data_dir` finds the files, `txn_log_file` and `snapshot_file` read one each (their bytes are
`kafkalog.format`'s), `tree` is the tree and the rules of a change, `history` puts files together.
Above these ZooKeeper knows nothing of Kafka: `clusters` finds the chroots, `znodes` reads Kafka's
values, `settings`, `members`, `partitions`, `entities` and `consumers` make of them what the
cluster's tables and plans need.

Nothing here changes anything.
"""
