"""Records that a coordinator does not load are found: the table is
`tests.support.coordinator_variants`.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from kafkalog.checking.group_checks import _firsts
from kafkalog.format.constants import CompressionType
from kafkalog.messages.coordinator_loading import loading_problem
from tests.checking.running import findings
from tests.support.coordinator_variants import VARIANTS, Loads
from tests.support.group_type_changes import CHANGES
from tests.support.log_builder import LogBuilder

KINDS = {
    Loads.YES: [],
    Loads.PASSED_OVER: [("coordinator-record-unknown", False)],
    Loads.NO: [("coordinator-record", True)],
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_record_is_judged_as_a_coordinator_does(tmp_path: Path, name: str) -> None:
    variant = VARIANTS[name]
    sound = next(v for v in VARIANTS.values() if v.topic == variant.topic)
    problem = loading_problem(variant.topic, variant.key, variant.value)
    assert (problem is None) == (variant.loads is Loads.YES)
    if problem is not None:
        assert problem.is_skipped == (variant.loads is Loads.PASSED_OVER)
    log = LogBuilder(tmp_path, f"{variant.topic}-0").batch((sound.key, sound.value))
    position = len(log.segments[0].log)
    log.batch((sound.key, sound.value), (variant.key, variant.value), codec=CompressionType.ZSTD)
    path = log.batch((sound.key, sound.value)).write()
    found = [f for f in findings(tmp_path) if f.kind.startswith("coordinator-record")]
    assert [(f.kind, f.severity.is_failure) for f in found] == KINDS[variant.loads]
    for finding in found:
        assert problem is not None
        assert (finding.offset, finding.position, finding.text) == (2, position, problem.reason)
        assert Path(finding.path).parent == path


def test_what_lies_below_the_log_start_is_not_loaded(tmp_path: Path) -> None:
    bad = VARIANTS["__consumer_offsets: commit cut"]
    log = LogBuilder(tmp_path, "__consumer_offsets-0").log_start_offset(2)
    log.batch((bad.key, bad.value)).batch((bad.key, None)).batch((bad.key, None)).write()
    assert not [f for f in findings(tmp_path) if f.kind.startswith("coordinator")]


def test_other_topics_hold_what_they_like(tmp_path: Path) -> None:
    bad = VARIANTS["__consumer_offsets: commit cut"]
    LogBuilder(tmp_path, "orders-0").batch((bad.key, bad.value)).write()
    assert not findings(tmp_path)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_group_that_changes_its_type_is_judged_as_a_coordinator_does(
    tmp_path: Path, name: str, split: bool
) -> None:
    change, log = CHANGES[name], LogBuilder(tmp_path, "__consumer_offsets-0")
    for number, pair in enumerate(change.pairs("g")):
        if split and number:
            log.segment()
        log.batch(pair)
    log.write()
    found = [f for f in findings(tmp_path) if f.kind.startswith("coordinator-record")]
    expected = [] if change.fails_at is None else [(change.fails_at, True)]
    assert [(f.offset, f.severity.is_failure) for f in found] == expected
    assert all(f.text.startswith("its group is a ") for f in found)


def test_a_group_of_before_the_log_start_has_no_type(tmp_path: Path) -> None:
    pairs = CHANGES["classic-to-consumer"].pairs("g")
    log = LogBuilder(tmp_path, "__consumer_offsets-0").log_start_offset(1)
    log.batch(*pairs).write()
    assert not [f for f in findings(tmp_path) if f.kind.startswith("coordinator")]


def test_the_first_of_each_group_is_found_whatever_its_bytes() -> None:
    rng = random.Random(3)
    for _ in range(60):
        names = [
            rng.choice(["", "a", "b", "ab", "ba", "g" * 2000, "gé"]).encode() for _ in range(30)
        ]
        buf = np.frombuffer(b"".join(names) + b"-", np.uint8)
        lengths = np.array([len(name) for name in names], np.int64)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        expected = sorted(names.index(name) for name in set(names))
        assert _firsts(buf, starts, lengths).tolist() == expected


def test_groups_whose_sums_are_equal_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafkalog.checking.group_checks._WEIGHTS", np.ones(1, np.uint64))
    buf = np.frombuffer(b"abbaab", np.uint8)
    found = _firsts(buf, np.array([0, 2, 4]), np.array([2, 2, 2]))
    assert found.tolist() == [0, 1]
