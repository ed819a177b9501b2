"""A wrong copy of a partition put right by the records of a right one, on a stopped node.

    plan     which copy is rewritten from which, and up to which offset; why not          HealPlan
    splice   the batches of both copies, in the order of offsets                          segments
    stage    the healed partition beside the live one, with its indexes, compared
    heal     one partition: staged, compared, swapped in, rebuilt                       HealResult
    patch    the right copies for a host that has only its own disk               a file
    run      all of them in the frame of verbs that change logs                            HealRun
    document the run as JSON and as a table

It knows what compares and what changes; neither of these knows it.
"""
