"""A cluster back from what is left: topics from segments, metadata of a quorum that is lost.

Topics, offsets as they were, into the log dirs of a stopped cluster (`restore`):

    request   what is asked for                                                     RestoreRequest
    source    log dirs, their segments in remote storage, or that alone             LogInventory
    copies    of several copies of a partition the one that goes furthest           Source
    begin     where a restored log begins, if later than its source                 Since
    cut       where a restored log ends, which transactions are open there          LogCut
    wholeness whether it has all that it had: unfinished swaps, gaps                 Wholeness
    target    the stopped cluster: whose log dirs, which topics                     Target
    plan      which source goes into which directories, and why not                 RestorePlan
    segments  the segments up to the cut, with ids that the target cannot meet      files
    stage     the restored partition beside the target's, with its indexes: `copied_log` copies it
              and reads the copy once, right behind; compared: consumers get from it what they get
              from the source, by bytes (`header_digest`, `same_bytes`), else record by record
              (`equal`); `beside` is what a large log has threads for; then `compacted`, if asked
    restore   one partition: staged, compared, swapped in                           RestoreResult
    run       all of them in the frame of verbs that change logs                    RestoreRun
    document  the run as JSON and as a table;  groups  committed offsets as a script

Into a cluster that was never started (`fresh` tells what its log dirs are) topics are made with it:
`new_topic` says of each what it gets, `offsets_topic` makes a `__consumer_offsets` of groups'
offsets, `fresh_plan` where replicas go; `new_directory` makes a partition beside its place,
`fresh_run` puts all of them in place and writes the metadata last. `execute` is who does the tasks.

The metadata that a lost quorum had, made anew (`attach`):

`disks` reads what all nodes' log dirs say of partitions, `left_metadata` what a metadata log that
is still there somewhere says of the rest; `attach_plan` decides, without input and output;
`attach_records` makes the records; `attach` writes them (`place_run`), verified and with undo.

A fresh cluster over a bucket (`fresh`: what fresh log dirs are): `bucket_reading` reads what is
there, `bucket_old_metadata` by the old cluster's own topic; `bucket_plan` decides where each log
begins and ends, `bucket_cluster` what metadata it gets, `bucket_stubs` makes the files,
`bucket_attach` writes them.
"""
