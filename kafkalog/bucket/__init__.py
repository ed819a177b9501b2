"""What lies in remote storage, against what the cluster says of it.

    knowledge    what the cluster knows: topics it has and had, copies              ClusterKnowledge
    judgement    each stored segment: whose, whole, wanted, or to be deleted               Judgement
    ranges       offsets that no finished copy has, or two have
    overdue      segments that retention lets go and that are still there
    look         one segment: its manifest, with `deep` each chunk, batch and record      LookResult
    kept_looks   what deep looks found, kept as they go on, so that a run can be taken up again
    run          all of these                                                              BucketRun
    deletion_run, undo_deletions              objects of the delete list, and their way back
    deletion_records                          what it writes into `__remote_log_metadata`
    stored_copies, metadata_log, rebuild      `__remote_log_metadata` made anew from what is there

What an object is nobody says but the cluster's own metadata: what that never had is another
cluster's, and what it does not reach is not judged. Nothing is changed but by `deletion_run`.
"""
