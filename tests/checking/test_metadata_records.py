"""Records of the metadata log that no controller replays, and a metadata log that is broken: what
can be told is told. Kafka's part of the table is asked in `tests/oracle/test_metadata_starts.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.checking.finding import Finding
from kafkalog.cluster.history import ClusterHistory
from kafkalog.log.metadata_log import read_cluster_settings
from kafkalog.log.metadata_records import METADATA_DIR
from kafkalog.planning.config_sources import GivenSettings, resolve_config
from kafkalog.planning.log_config import LogConfig
from tests.checking.running import findings
from tests.support.metadata_builder import (
    MetadataBuilder,
    config,
    feature,
    frame,
    partition,
    topic,
)
from tests.support.metadata_variants import OTHER_NEW_ID, VARIANTS, append_records

POLICY = "cleanup.policy"
TOLD = GivenSettings(LogConfig.from_overrides([], is_partial=True))


def of_metadata(log_dir: Path) -> list[Finding]:
    return [
        f for f in findings(log_dir) if f.topic == "__cluster_metadata" and f.severity.is_failure
    ]


@pytest.mark.parametrize("name", VARIANTS)
def test_verify_finds_the_record_at_which_a_controller_ends_itself(
    tmp_path: Path, name: str
) -> None:
    values, refused = VARIANTS[name]
    log_dir = copy_sample("broker", tmp_path / "data")
    end = append_records(log_dir, values)
    found = [(f.kind, f.offset) for f in of_metadata(log_dir)]
    assert found == ([] if refused is None else [("metadata-record", end + refused)])


@pytest.mark.parametrize(("level", "severity"), [(30, "error"), (40, "warning")])
def test_an_unknown_type_is_a_warning_where_a_newer_release_may_know_it(
    tmp_path: Path, level: int, severity: str
) -> None:
    """The level of metadata.version tells which releases wrote the log."""
    log_dir = copy_sample("broker", tmp_path / "data")
    newest = feature("metadata.version", level)
    append_records(log_dir, [newest, frame(99, 0, b"\0"), frame(99, 0, b"\0")])
    found, *more = sorted(of_metadata(log_dir), key=lambda f: f.kind, reverse=True)
    assert (found.kind, found.severity, found.text) == (
        "metadata-record-unknown",
        severity,
        "2 of type 99 version 0",
    )
    # The sample's broker is one of 4.3, whatever the level.
    assert [(f.kind, f.severity, f.text) for f in more] == (
        []
        if level == 30
        else [
            (
                "feature-level-unsupported",
                "error",
                "metadata.version is at level 40, broker 1 registered for 7 to 30; "
                "Kafka 4.4, the newest release known here, has level 31",
            )
        ]
    )


def test_what_the_newest_snapshot_covers_is_not_replayed(tmp_path: Path) -> None:
    """A start begins with the snapshot: what is wrong before its end nobody comes to."""
    cluster = (
        MetadataBuilder(tmp_path).batch(topic("a"), topic("a")).batch(topic("b", OTHER_NEW_ID))
    )
    cluster.snapshot(2, 1, topic("a")).write()
    assert not of_metadata(tmp_path)


def broken(log_dir: Path) -> Path:
    """A log that begins at 9, and a snapshot that ends at 5."""
    cluster = MetadataBuilder(log_dir)
    cluster.segment(9).batch(config("a", POLICY, "delete"), partition([1], OTHER_NEW_ID))
    records = [topic("a"), config("a", POLICY, "compact"), partition([2])]
    return cluster.snapshot(5, 1, *records).write()


def test_a_gap_is_named_and_the_snapshot_in_front_of_it_still_tells(tmp_path: Path) -> None:
    directory = broken(tmp_path)
    (found,) = of_metadata(tmp_path)
    assert (found.kind, found.severity, found.offset) == ("metadata-snapshot-missing", "error", 9)
    assert "offsets 5 to 8 are missing" in found.text

    history = ClusterHistory(directory)
    (state,) = history.partitions_now()
    assert (state["topic"], state["replicas"]) == ("a", [2])
    gap, contradictions = history.problems
    assert "offsets 5 to 8 are missing" in gap
    assert "1 records contradict" in contradictions
    assert "never created" not in " ".join(history.problems)

    settings = read_cluster_settings(directory)
    assert settings.topics["a"].config == {POLICY: "compact"}
    assert settings.end_offset == 5
    (problem,) = settings.problems
    assert "offsets 5 to 8 are missing" in problem


def test_nothing_is_changed_by_what_a_broken_metadata_log_tells(tmp_path: Path) -> None:
    """It is shown, and whoever changes a log is refused, forced or not."""
    settings = read_cluster_settings(broken(tmp_path))
    shown = resolve_config("a", None, TOLD, settings, 1)
    assert shown.config.is_compacted
    assert "cannot be relied on" in (shown.refusal or "")
    forced = resolve_config("a", None, TOLD, settings, 1, force_differs=True)
    assert "cannot be relied on" in (forced.refusal or "")
    assert not forced.config.is_compacted
    unknown = resolve_config("b", None, TOLD, settings, 1)
    assert "cannot be relied on" in (unknown.refusal or "")
    assert "has no topic" not in (unknown.refusal or "")


@pytest.mark.parametrize("at", [0, 1])
def test_a_log_that_breaks_goes_on_from_the_snapshot_behind_it(tmp_path: Path, at: int) -> None:
    cluster = MetadataBuilder(tmp_path)
    cluster.batch(topic("a")).batch(config("a", POLICY, "compact")).batch(partition([1]))
    directory = cluster.snapshot(2, 1, topic("a"), config("a", POLICY, "compact")).write()
    path = directory / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    second = 12 + int.from_bytes(data[8:12], "big")
    data[(0, second)[at] + 70] ^= 1
    path.write_bytes(data)
    history = ClusterHistory(directory)
    (state,) = history.partitions_now()
    assert (state["topic"], state["replicas"], history.end_offset) == ("a", [1], 3)
    (problem,) = history.problems
    assert "CRC" in problem
    assert "is left out" in problem
    settings = read_cluster_settings(directory)
    assert settings.problems == ()
    assert settings.topics["a"].config == {POLICY: "compact"}


def test_what_lies_in_front_of_damage_is_told(tmp_path: Path) -> None:
    log_dir = copy_sample("broker", tmp_path / "data")
    whole = read_cluster_settings(log_dir / METADATA_DIR)
    end = append_records(log_dir, [b"\1", topic("new", OTHER_NEW_ID)])
    settings = read_cluster_settings(log_dir / METADATA_DIR)
    assert settings.topics == whole.topics
    assert settings.end_offset == end
    (problem,) = settings.problems
    assert problem.endswith(f"(the state before offset {end} is used)")
