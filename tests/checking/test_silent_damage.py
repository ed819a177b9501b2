"""What a broker would not notice: each damage gives its findings, with their places, and no other;
without damage there is nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from data.copy_samples import SAMPLES, copy_sample
from kafkalog.checking.finding_kinds import KIND, Severity
from kafkalog.format.file_names import LEADER_EPOCH_CHECKPOINT_FILE
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.checking.damages import DAMAGES, ORDERS, Damage, segments
from tests.checking.running import failures, findings
from tests.support.log_builder import START_MS, LogBuilder

HEALTHY = ("broker", "cleaning/before", "cleaning/after")


@pytest.fixture
def sample(log_dir: Path) -> Path:
    return copy_sample("broker", log_dir / "broker")


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_dir_gives_no_finding_at_all(name: str) -> None:
    assert findings(SAMPLES / name) == ()


# No search comes to entries of an index past the end of a closed segment.
WARNINGS_ONLY = {("an_empty_middle_segment", "offset-index-disagrees")}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name)
def test_damage_is_found_and_nothing_else(sample: Path, damage: Damage) -> None:
    damage.do(sample)
    found = [finding for finding in findings(sample) if finding.severity.is_failure]
    assert {finding.kind for finding in found} == damage.finds
    for finding in found:
        is_lower = (damage.name, finding.kind) in WARNINGS_ONLY
        severity = Severity.WARNING if is_lower else KIND[finding.kind].severity
        assert finding.severity is severity
        assert finding.log_dir == str(sample)
        assert finding.text
        assert Path(finding.path).is_relative_to(sample)
    places = {f"{finding.topic}-{finding.partition}" for finding in found}
    assert damage.partition in places or places == {"None-None"}


def test_that_the_first_segment_is_gone_only_leader_epochs_tell(sample: Path) -> None:
    first = segments(sample / ORDERS)[0]
    for path in first.parent.glob(f"{first.stem}.*"):
        path.unlink()
    assert failures(sample) == {"first-segments-missing"}
    (first.parent / LEADER_EPOCH_CHECKPOINT_FILE).unlink()
    assert failures(sample) == {"leader-epochs-missing"}


def test_a_shortened_offset_index_is_harmless(sample: Path) -> None:
    path = segments(sample / ORDERS)[1].with_suffix(".index")
    path.write_bytes(path.read_bytes()[:8])
    assert failures(sample) == set()


def test_a_partition_in_two_log_dirs_of_a_node_is_found_in_both(sample: Path) -> None:
    other = sample.parent / "other"
    other.mkdir()
    shutil.copytree(sample / ORDERS, other / ORDERS)
    shutil.copy(sample / "meta.properties", other)
    found = findings(sample, other)
    assert [f.kind for f in found if f.kind == "partition-twice"] == ["partition-twice"] * 2
    assert [f.kind for f in found if f.kind == "directory-id-twice"] == ["directory-id-twice"]


def test_after_a_crash_what_the_next_start_heals_is_information(sample: Path) -> None:
    """No clean stop, and the recovery point at 0: indexes are made anew, the tail is cut."""
    (sample / ".kafka_cleanshutdown").unlink()
    (sample / "recovery-point-offset-checkpoint").unlink()
    for damage in ("torn_tail", "zeros_behind_the_time_index", "no_transaction_index"):
        next(each for each in DAMAGES if each.name == damage).do(sample)
    path = segments(sample / ORDERS)[2].with_suffix(".index")
    path.write_bytes(path.read_bytes()[:8] + bytes.fromhex("7000000000000001"))
    found = {f.kind: f.severity.is_failure for f in findings(sample)}
    expected = {"torn-tail", "time-index-padded", "transaction-index-missing"}
    assert found.keys() >= expected | {"offset-index-disagrees", "deleted-left"}
    assert not any(found.values())


@pytest.mark.parametrize("clean", [True, False])
def test_a_torn_tail_with_a_sound_batch_behind_it_is_none(log_dir: Path, *, clean: bool) -> None:
    """A length is wrong: a start cuts off what follows as well."""
    long = pack_batch([Record(0, START_MS, b"k", b"x" * 5000)])
    log = LogBuilder(log_dir).raw(long[:70]).batch(("a", "1")).batch(("b", "2"))
    log.write(clean_shutdown=clean)
    (found,) = [f for f in findings(log_dir) if f.kind == "torn-tail"]
    assert found.severity.is_failure
    assert "a sound batch follows at 70" in found.text


def test_an_index_that_is_not_there_is_information(sample: Path) -> None:
    segments(sample / ORDERS)[1].with_suffix(".index").unlink()
    (found,) = findings(sample)
    assert (found.kind, found.severity.is_failure) == ("offset-index-missing", False)
