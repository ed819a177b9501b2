"""What is to be done about more than one kind of finding."""

from __future__ import annotations

# It changes nothing where a batch is damaged. A start that makes an index anew cuts the segment at
# such a batch: so nobody is told to delete index files.
REBUILD = "`kafkalog recover --apply`"
REPLICA = "take the partition from another replica"
# `kafkalog salvage` copies every batch with a right checksum as it is, in the order of offsets.
SALVAGE = f"{REPLICA}, or salvage the rest"
CUT = (
    "of the last segment `kafkalog recover --apply` cuts it off, if no batch lies behind it; else "
    f"{SALVAGE}"
)
# Of a tiered topic the epochs of what is in remote storage are in no local batch.
EPOCHS = (
    "copy the file of a replica, or, if the topic is not tiered, delete it and run `kafkalog "
    "recover --apply`"
)
