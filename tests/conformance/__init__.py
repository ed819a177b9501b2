"""Kafka's own tests of compaction, item by item, on logs small enough to count on one's fingers."""
