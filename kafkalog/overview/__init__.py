"""What a log dir is, at a glance: names, sizes, small files and a bounded read of a few logs.

`disk` lists, `cluster` takes names and settings out of the metadata log, `heads` and `groups` read
the first and the last bytes of some logs, `era` says which Kafka it was, `findings` what is worth a
look, `overview` puts it together and `document` is its JSON.

Plain Python throughout: no kernel and no Arrow is imported, which would take longer than all of the
rest. So nothing of `kernels`, `batches` or `columns` may be used here, nor what uses them.
"""
