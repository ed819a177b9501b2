"""What is on storage; reads only.

    log_dir.open_log_dir          paths → LogInventory: partitions, segments, checkpoints, problems
    inventory                     these facts as frozen values, with the token a plan is valid for
    segment_facts                 batch headers → what a plan must know of each segment
    producer_state                snapshot + replay → the producers a broker still remembers
    segment_file, storage         a `.log` as headers or as chunks of whole batches, by pread

Nothing on the disk is trusted: what is wrong becomes a problem or a fact with its place, and an
exception only where nothing can be said at all.
"""
