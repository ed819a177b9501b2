"""`__consumer_offsets`: what groups have committed, and what they are. The one place for it.

The way through, from bytes to answers:

 messages.offsets_topic  the layouts of all its records as tables, for whatever is looked at record
                         by record
 kernels.offset_commits  the same of commits, of which there are millions: numbers and spans
 commit_arrays           the seam to that kernel; keys numbered, and the last record of each
 commits                 the records of a partition in order, errors and transactions included: the
                         view `offset_commits`; with `latest` what is in force at the end
 commit_columns          commits as Arrow columns
 latest                  one record a key: of commits as they are read, of groups' and members'
                         records likewise, and of several parts of a partition put together
 parts                   a large partition by several tasks
 groups                  groups and their members: what they are, who is in them
 offset_facts            commits beside what decides about them: groups, and the logs' ends

Above: `spark.latest_commits` and `spark.group_views` are these as DataFrames,
`auditing.committed_offsets` sums them up, `checking.coordinator_checks` finds what no coordinator
loads.
"""
