"""Leader epochs against what the batches prove: `leader-epoch-checkpoint` as it should not be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from tests.checking.running import findings
from tests.support.log_builder import LogBuilder

# A log of offsets 0 to 7: epoch 0 from 0 on, epoch 1 from 4 on; two batches each, a segment each.
NOT_RISING, BEYOND, DISAGREE = (
    "leader-epochs-not-rising",
    "leader-epochs-beyond-end",
    "leader-epochs-disagree",
)
FILES = {
    "right": ("0 0\n1 4", set()),
    "a leader that wrote nothing at the end": ("0 0\n1 4\n2 8", set()),
    "a leader that wrote nothing between": ("0 0\n1 4", set()),
    "begins at the deleted part's end": ("1 4", {"log-start-lost"}),
    "begins inside an epoch": ("0 2\n1 4", {"log-start-lost"}),
    "two that contradict each other": ("5 1\n3 2", {NOT_RISING, DISAGREE}),
    "an epoch that comes back": ("0 0\n1 4\n0 6", {NOT_RISING, DISAGREE}),
    "an offset that comes back": ("0 0\n1 4\n2 3", {NOT_RISING, DISAGREE}),
    "two at an offset": ("0 0\n1 4\n2 4", {NOT_RISING, DISAGREE}),
    "a line twice": ("0 0\n1 4\n1 4", {NOT_RISING}),
    "only beyond the end": ("7 100000", {BEYOND}),
    "beyond the end": ("0 0\n1 4\n2 5000", {BEYOND}),
    "another log's": ("0 0\n9 2", {DISAGREE}),
    "begins late": ("0 0\n1 6", {DISAGREE}),
    "begins at the end": ("1 8", {DISAGREE}),
    "begins at the end with the next": ("9 8", {DISAGREE}),
    "begins above and contradicts": ("0 6", {DISAGREE}),
    "contradicts between two batches that agree": ("0 1\n1 4", {"log-start-lost"}),
    "an epoch is missing": ("0 0", {DISAGREE}),
    "empty": (None, {"leader-epochs-missing"}),
    "no line": ("", {"leader-epochs-missing"}),
    "negative epoch": ("-1 4", {"leader-epochs-unreadable"}),
    "no number": ("a 4", {"leader-epochs-unreadable"}),
}


def log_of(log_dir: Path, lines: str | None, log_start: int | None = None) -> LogBuilder:
    log = LogBuilder(log_dir, "orders-0")
    if log_start is not None:
        log.log_start_offset(log_start)
    for epoch in (0, 1):
        log.leader_epoch = epoch
        log.segment().batch(("a", "1"), ("b", "1")).batch(("a", "2"), ("b", "2"))
    log.write()
    entries = lines.split("\n") if lines else []
    text = "" if lines is None else "\n".join(["0", str(len(entries)), *entries, ""])
    (log.path / LEADER_EPOCH_CHECKPOINT_FILE).write_text(text)
    return log


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_is_held_against_the_batches(tmp_path: Path, name: str) -> None:
    """Nothing is inferred from one that they contradict, of the log's start least of all."""
    lines, expected = FILES[name]
    log_of(tmp_path, lines)
    found = [f for f in findings(tmp_path) if f.severity.is_failure]
    assert {f.kind for f in found} == expected, [(f.kind, f.text) for f in found]
    for finding in found:
        if finding.kind == BEYOND:
            assert finding.offset in (100_000, 5000)
            assert "the log ends at 8" in finding.text


def test_one_batch_of_many_offsets_counts_to_its_last_one(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path, "orders-0").segment().batch(*[("k", str(n)) for n in range(186)])
    log.write()
    (log.path / LEADER_EPOCH_CHECKPOINT_FILE).write_text("0\n2\n0 0\n3 20\n")
    (found,) = findings(tmp_path)
    assert (found.kind, found.offset, found.text) == (DISAGREE, 20, "it says 3, the batch 0")


def test_what_the_log_start_has_passed_is_no_contradiction(tmp_path: Path) -> None:
    log_of(tmp_path, "1 4", log_start=4)
    assert not [f for f in findings(tmp_path) if f.kind.startswith("leader-epoch")]
