"""What is never compacted, whatever its bytes, and that the plan says why."""

from __future__ import annotations

from typing import Any

import pytest

from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionKind, TopicPartition
from kafkalog.planning.compaction import CLEAN, REFUSED, SKIP, CompactionPlan, plan_compaction
from kafkalog.planning.log_config import LogConfig
from tests.planning.facts import NOW_MS, config, facts_of, partition, plan, segment

MAX_INT32 = 2**31 - 1


def _expect(made: CompactionPlan, status: str, *words: str) -> None:
    assert made.status == status
    for word in words:
        assert word in made.reason
    assert made.groups == ()
    if status == REFUSED:
        assert made.checkpoint_reset is None


@pytest.mark.parametrize("kind", [PartitionKind.FUTURE, PartitionKind.DELETE, PartitionKind.STRAY])
def test_only_live_directories_are_compacted(kind: PartitionKind) -> None:
    _expect(plan(partition(kind=kind)), REFUSED, f"-{kind} directory")


def test_cluster_metadata_is_never_compacted() -> None:
    inventory = partition(topic_partition=TopicPartition("__cluster_metadata", 0))
    _expect(plan(inventory), REFUSED, "__cluster_metadata")


def test_a_policy_without_compact_is_skipped_and_its_source_named() -> None:
    facts = PartitionFacts(())
    made = plan_compaction(partition(cleaner=99), LogConfig(), facts, now_ms=NOW_MS)
    _expect(made, SKIP, "cleanup.policy is delete (from default)")
    made = plan(partition(), "cleanup.policy=")
    _expect(made, SKIP, "cleanup.policy is empty (from option)")


def test_compact_and_delete_is_compacted() -> None:
    assert plan(partition(), "cleanup.policy=compact,delete").status == CLEAN


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"has_remote_segments": True}, "there are remote segments, or the line is stale"),
        ({"problems": ("line 3: 'x' is no number",)}, "line 3: 'x' is no number"),
        ({"leftovers": ("00000000000000000010.log.swap",)}, "resolved first by --apply"),
        ({"leftovers": ("00000000000000000010.log.cleaned",)}, "00000000000000000010.log.cleaned"),
    ],
)
def test_what_the_inventory_shows_is_refused(changes: dict[str, Any], words: str) -> None:
    _expect(plan(partition(cleaner=99, **changes)), REFUSED, words)


def test_our_own_temporary_files_and_pending_deletions_refuse_nothing() -> None:
    leftovers = ("kafkalog-run-1-00000000000000000000.log.tmp",)
    made = plan(partition(leftovers=leftovers))
    assert (made.status, made.leftovers) == (CLEAN, leftovers)


def test_an_unknown_high_watermark_is_refused() -> None:
    _expect(plan(partition(high_watermark=None)), REFUSED, "--high-watermark")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"corrupt": "batch length 3", "corrupt_position": 61}, "segment 10 @ 61: batch length 3"),
        ({"trailing_bytes": 9}, "9 bytes after the last whole batch"),
        ({"last_offset": 20}, "reaches offset 20, into segment 20"),
    ],
)
def test_what_the_headers_of_a_source_show_is_refused(changes: dict[str, Any], words: str) -> None:
    _expect(plan(partition(), facts=[facts_of(segment(10), **changes)]), REFUSED, words)


def test_a_last_source_that_reaches_into_the_active_segment_is_refused() -> None:
    facts = [facts_of(segment(30), last_offset=40)]
    _expect(plan(partition(), facts=facts), REFUSED, "reaches offset 40, into segment 40")
    assert plan(partition(), facts=[facts_of(segment(30), last_offset=39)]).status == CLEAN


def test_an_unsupported_magic_is_named() -> None:
    facts = facts_of(
        segment(0), unsupported_magic=True, corrupt="magic 3", corrupt_position=0, magics=()
    )
    _expect(plan(partition(), facts=[facts]), REFUSED, "magic 3", "cannot be compacted")


def test_a_span_of_31_bits_is_not_refused() -> None:
    inventory = partition([(0, 100), (MAX_INT32 + 1, 100)], end=MAX_INT32 + 9)
    facts = [facts_of(segment(0), last_offset=MAX_INT32)]
    assert plan(inventory, facts=facts).status == CLEAN


def test_legacy_magics_are_not_refused() -> None:
    facts = [facts_of(segment(base), magics=(0, 1, 2)) for base in (0, 10, 20, 30)]
    assert plan(partition(), facts=facts).status == CLEAN


def test_segments_past_the_end_of_the_round_refuse_nothing() -> None:
    facts = [facts_of(segment(base), corrupt="x", corrupt_position=0) for base in (20, 30, 40)]
    assert plan(partition(high_watermark=25), facts=facts).status == CLEAN


def test_transactions_are_not_refused() -> None:
    facts = [facts_of(segment(base), has_transactional=True, has_control=True) for base in (0, 10)]
    assert plan(partition(), facts=facts).status == CLEAN


def test_unknown_producer_state_is_refused() -> None:
    _expect(plan(partition(), problems=("a hole",)), REFUSED, "producer state: a hole")


def test_a_source_that_was_not_scanned_is_refused() -> None:
    made = plan_compaction(
        partition(), config(), PartitionFacts((facts_of(segment(0)),)), now_ms=NOW_MS
    )
    _expect(made, REFUSED, "segment 10 was not scanned")


def test_nothing_to_clean_is_not_refused_for_what_is_in_the_log() -> None:
    facts = [facts_of(segment(0), corrupt="x", corrupt_position=0)]
    _expect(plan(partition(cleaner=40), facts=facts), SKIP, "nothing to clean")
