"""Damaged files through every door: reading, listing, compaction."""
