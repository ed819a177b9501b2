"""Copies of a partition, wherever they are: whose each one is, and what is known of it without its
records. What compares them and what goes by them decides both here.

    replica    a copy on this host, and what its small files say              Replica, ReplicaFacts
    copies     which directories are copies of one partition                  by partition
    log_end    where a copy ends by its batches, whatever an index says       LogEnd
    epochs     where histories of leaders part, and what truncation takes     first offsets

It reads and changes nothing.
"""
