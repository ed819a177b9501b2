"""Replicas of a partition against each other: what a consumer gets from each, not its bytes.

    record_stream  its records in offset order, a row of hashes each              RECORD_FACT[r]
    alignment      the copies' rows side by side, by offset                            Aligned
    transactions   ends of transactions that one copy has and another not              WrongEnd
    key_entries    which records are the latest of their key on which copy             Candidates
    missing_runs   ranges that a copy lacks and no cleaner can have taken              MissingRun
    evidence       all of these, of one pass over the rows of all copies               Evidence
    key_verdicts   which side is right about a key's latest value, and why             Difference
    verdicts       which side is right in all that differs, and why                    Difference
    comparison     one partition: reads, gathers, judges                        ComparedPartition
    across_tasks   the same of a large one in ranges of offsets, many at a time      rows of tasks

Facts and rows of one copy (`replicas`, `record_stream`) know nothing of other copies; what compares
them (`alignment` and below) opens no file. It reads and changes nothing.
"""
