"""Copies of a partition, wherever they are: whose each one is, and what is known of it without its
records. What compares them and what goes by them decides both here.

    replica    a copy on this host, and what its small files say              Replica, ReplicaFacts
    copies     which directories are copies of one partition                  by partition
    log_end    where a copy ends by its batches, whatever an index says       LogEnd
    epochs     where histories of leaders part, and what truncation takes     first offsets
    digested   a copy in a digest of another host: facts and hashes           DigestedReplica
    hash_key   the key under which hosts that share it make their digests     secret

It reads and changes nothing.
"""
