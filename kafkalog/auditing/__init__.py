"""What the policies in force make of the logs on disk: the audit of retention and compaction.

    AuditRequest → audit_partition, one partition at a time, in any process → AuditedPartition
                 → AuditRun → audit_document, one JSON document whose schema is audit.schema.json

Rules are those of `planning`, which decide for `retain` and `compact` as well: an audit never
guesses by rules of its own. Nothing here writes into logs, and there is no clock.
"""
