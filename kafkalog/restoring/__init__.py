"""A cluster back from what is on its disks: the metadata that a lost quorum had, made anew.

`disks` reads what all nodes' log dirs say of partitions, `left_metadata` what a metadata log that
is still there somewhere says of the rest; `attach_plan` decides, without input and output;
`attach_records` makes the records; `attach` writes them, verified and with undo.
"""
