"""A simulation keeps at a time what a plan of retention made at that time keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkalog.auditing.scenarios import DEFAULT_STEPS_MS, Scenario, parse_scenarios, times_from
from kafkalog.auditing.what_if import SimulatedLog, ceiling_bytes, kept_at, simulate
from kafkalog.cli.main import main
from kafkalog.cli.option_values import parse_at
from kafkalog.errors import InvalidConfigError
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.inventory import PartitionInventory
from kafkalog.planning.loaded_segments import loaded_segments
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import PolicyStanding
from kafkalog.planning.retention import plan_retention
from kafkalog.planning.setting_units import plain_value
from tests.auditing.documents import audited_document
from tests.planning.facts import NOW_MS, partition, segment
from tests.support.log_builder import START_MS, LogBuilder

DAY_MS = 86_400_000
_AGES = st.integers(-3, 12).map(lambda days: NOW_MS - days * DAY_MS)


@st.composite
def logs(draw: st.DrawFn) -> PartitionInventory:
    infos = []
    for number in range(draw(st.integers(1, 7))):
        size = draw(st.sampled_from([0, 50, 100, 100, 300]))
        time = draw(_AGES | st.just(-1) | st.just(10**17))
        infos.append(segment(10 * number, size, largest_timestamp_ms=time))
    infos = [
        replace(info, modification_time_ms=draw(_AGES)) if draw(st.booleans()) else info
        for info in infos
    ]
    end = 10 * len(infos)
    return partition(
        infos,
        end=end,
        start=draw(st.none() | st.integers(0, end)),
        high_watermark=draw(st.just(end) | st.integers(0, end)),
    )


@st.composite
def changes(draw: st.DrawFn) -> dict[str, str]:
    found = {
        "retention.ms": str(draw(st.integers(-1, 12).map(lambda days: max(days * DAY_MS, -1)))),
        "retention.bytes": str(draw(st.sampled_from([-1, 0, 99, 100, 101, 250, 400, 1000]))),
        "cleanup.policy": draw(st.sampled_from(["delete", "delete,compact", "compact"])),
        "segment.bytes": str(1 << 20),
    }
    return {key: value for key, value in found.items() if draw(st.booleans())}


@settings(max_examples=150)
@given(log=logs(), configured=changes(), changed=changes(), days=st.lists(st.integers(0, 15)))
def test_simulation_at_a_time_is_the_plan_of_that_time(
    log: PartitionInventory, configured: dict[str, str], changed: dict[str, str], days: list[int]
) -> None:
    config = LogConfig.from_properties(configured)
    facts = PartitionFacts(())
    assert log.checkpoints.high_watermark is not None
    segments = loaded_segments(log, facts)
    simulated = SimulatedLog(
        topic="orders",
        config=config,
        segments=segments,
        records=[10] * len(segments),
        log_start_offset=log.log_start_offset,
        high_watermark=max(log.checkpoints.high_watermark, log.log_start_offset),
    )
    times = times_from(NOW_MS, [(True, day * DAY_MS) for day in days] or [(True, 0)])
    scenario = Scenario(changed)
    found = kept_at(simulated, scenario.config(config), times)
    expected = LogConfig.from_properties({**configured, **changed})
    for at_ms, (size, records) in zip(times, found, strict=True):
        plan = plan_retention(log, expected, facts, now_ms=at_ms, standing=PolicyStanding.IN_FORCE)
        assert plan.status != "refused", plan.reason
        assert size == plan.kept_bytes
        assert records == 10 * len(plan.kept)


def test_scenarios_are_told_apart_by_a_setting_that_comes_again() -> None:
    found = parse_scenarios(
        ["retention.ms=3d", "segment.bytes=256MiB", "retention.ms=1w", "retention.ms=-1"]
    )
    assert [dict(scenario.settings) for scenario in found] == [
        {},
        {"retention.ms": "259200000", "segment.bytes": "268435456"},
        {"retention.ms": "604800000"},
        {"retention.ms": "-1"},
    ]
    assert found[1].not_modelled == ("segment.bytes",)
    assert found[0].label == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("retention=3d", "did you mean"),
        ("retention.ms", "KEY=VALUE"),
        ("retention.ms=3x", "no whole number of ms"),
        ("retention.ms=0.0001s", "no whole number of ms"),
        ("segment.bytes=1KiB", "at least 1048576"),
        ("segment.bytes=3d", "no whole number of bytes"),
        ("cleanup.policy=keep", "expected compact, delete"),
    ],
)
def test_bad_settings_are_named(text: str, expected: str) -> None:
    with pytest.raises(InvalidConfigError, match=expected):
        parse_scenarios([text])


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("retention.ms", "1.5h", "5400000"),
        ("retention.ms", " 2w ", "1209600000"),
        ("segment.ms", "10min", "600000"),
        ("retention.bytes", "1.5GiB", "1610612736"),
        ("retention.bytes", "2GB", "2000000000"),
        ("retention.bytes", "5m", "5242880"),
        ("retention.bytes", "-1", "-1"),
        ("min.cleanable.dirty.ratio", "0.5", "0.5"),
    ],
)
def test_units(key: str, text: str, expected: str) -> None:
    assert plain_value(key, text) == expected


def test_times() -> None:
    assert times_from(1000, [(True, 500), (False, 1200), (True, 200)]) == (1000, 1200, 1500)
    assert times_from(0, ()) == DEFAULT_STEPS_MS
    with pytest.raises(InvalidConfigError, match="before"):
        times_from(1000, [(False, 999)])


def test_a_change_a_broker_refuses_leaves_the_topic_as_it_is() -> None:
    config = LogConfig.from_properties(
        {"remote.storage.enable": "true", "local.retention.ms": "5000", "retention.ms": "9000"}
    )
    log = SimulatedLog("orders", config, loaded_segments(partition(), PartitionFacts(())), [1] * 5,
                       0, 50)  # fmt: skip
    (curve,) = simulate([log], [Scenario({"retention.ms": "1000"})], [NOW_MS])
    assert curve["refused"] == [
        {"topic": "orders", "text": "local.retention.ms 5000 is greater than retention.ms 1000"}
    ]
    assert curve["points"] == [
        {"topic": topic, "atMs": NOW_MS, "bytes": 500, "records": 5, "expectedBytes": 500,
         "remoteBytes": 0, "remoteCostPerMonth": None}
        for topic in ("", "orders")
    ]  # fmt: skip


@pytest.mark.parametrize(("uploaded", "kept"), [(-1, 5), (19, 3), (28, 3), (49, 0)])
def test_local_segments_of_a_tiered_topic_go_as_far_as_they_are_uploaded(
    uploaded: int, kept: int
) -> None:
    tiered = {"remote.storage.enable": "true", "local.retention.ms": "1000"}
    log = SimulatedLog(
        "orders", LogConfig.from_properties(tiered),
        loaded_segments(partition(), PartitionFacts(())), [1] * 5, 0, 50, uploaded,
    )  # fmt: skip
    late = NOW_MS + 400 * DAY_MS
    assert kept_at(log, log.config, [late]) == [(100 * kept, kept)]
    local = Scenario({"remote.storage.enable": "false"}).config(log.config)
    assert kept_at(log, local, [late]) == [(0, 0)]


def test_internal_segment_bytes_gives_way_to_the_changed_one() -> None:
    config = LogConfig.from_properties({"internal.segment.bytes": "4096"}, source="topic")
    changed = Scenario({"segment.bytes": "1048576"}).config(config)
    assert changed.segment_bytes == 1_048_576
    assert changed.source("segment.bytes") == "what-if"


def test_ceiling_is_a_segment_a_partition_more() -> None:
    limited = LogConfig.from_properties({"retention.bytes": "1000", "segment.bytes": "1048576"})
    assert ceiling_bytes([(limited, 10), (limited, 2_000_000)]) == 2000 + 1_048_576 + 2_000_000
    assert ceiling_bytes([(limited, 10), (LogConfig(), 0)]) is None
    compacted = LogConfig.from_properties({"retention.bytes": "1000", "cleanup.policy": "compact"})
    assert ceiling_bytes([(compacted, 10)]) is None


def test_curves_of_an_audit(log_dir: Path) -> None:
    """From files to the document: three days of segments, a day each, under two settings."""
    for number in range(2):
        log = LogBuilder(log_dir, f"orders-{number}")
        for day in range(3):
            log.segment().batch(("k", "v"), ("k", "v"), timestamp=START_MS + day * DAY_MS)
        log.write()
    size = log.segments[0].batches[0][1].size_in_bytes
    now = START_MS + 2 * DAY_MS
    document = audited_document(
        log_dir,
        now_ms=now,
        config=["cleanup.policy=delete"],
        scope={"scenarios": parse_scenarios(["retention.ms=36h"]), "times": [(True, DAY_MS)]},
    )
    # segments of each partition now and a day later
    expected = {"": (3, 3), "retention.ms=129600000": (2, 1)}
    for curve in document["whatIf"]:
        for point in curve["points"]:
            arrived = point.pop("expectedBytes") - point["bytes"]
            # three segments in two days: half as much again in the day to come
            assert arrived == (0 if point["atMs"] == now else pytest.approx(3 * size, abs=2))
        assert len(curve["assumptions"]) == 1
        assert curve["points"] == [
            {
                "topic": topic, "atMs": at_ms,
                "bytes": 2 * segments * size, "records": 2 * segments * 2,
                "remoteBytes": 0, "remoteCostPerMonth": None,
            }
            for topic in ("", "orders")
            for at_ms, segments in zip((now, now + DAY_MS), expected[curve["label"]], strict=True)
        ]  # fmt: skip


def test_metadata_log_stays_as_it_is() -> None:
    log = SimulatedLog(
        "__cluster_metadata", LogConfig(), loaded_segments(partition(), PartitionFacts(())),
        [1] * 5, 0, 50,
    )  # fmt: skip
    assert kept_at(log, log.config, [NOW_MS]) == [(500, 5)]


def test_command_line_shows_curves_and_what_is_not_modelled(
    log_dir: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = LogBuilder(log_dir)
    for day in range(3):
        log.segment().batch(("k", "v" * 1000), timestamp=START_MS + day * DAY_MS)
    log.write()
    arguments = ["audit", "--log-dir", str(log_dir), "--now", str(START_MS + 2 * DAY_MS)]
    arguments += ["--workers", "1", "--run-dir", str(tmp_path / "runs"), "--contents"]
    changes = ["--what-if", "retention.ms=36h", "--what-if", "segment.bytes=256MiB"]
    assert main([*arguments, *changes, "--at", "+1d", "--at", "+0d"]) == 0
    out, err = capsys.readouterr()
    (header,) = [line for line in out.splitlines() if line.startswith("at ")]
    assert "as configured" in header
    assert "retention.ms=129600000, segment.bytes=268435456" in header
    (now, later) = [line.split() for line in out.splitlines() if line.startswith("2023-11-1")]
    assert now[0] == "2023-11-16T22:13:20.000Z"
    assert later[0] == "2023-11-17T22:13:20.000Z"
    assert now[1:3] == ["3.1", "KiB"]
    assert later[5:7] == ["1.0", "KiB"]
    assert now[3:] == ["3.1", "KiB", "2.1", "KiB", "2.1", "KiB"]
    assert "partitions go on at the pace of their newest 7 days" in err
    assert "segment.bytes change what is written from then on" in err
    assert main([*arguments, "--at", "1999-01-01"]) == 2
    assert "is before --now" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["+7", "+x", "+3y", "tomorrow", "+"])
def test_no_time_ahead(text: str) -> None:
    with pytest.raises(ValueError, match=r"time ahead, as \+7d"):
        parse_at(text)


def test_times_on_the_command_line() -> None:
    assert parse_at("+36h") == (True, 129_600_000)
    assert parse_at("1700000000000") == (False, 1_700_000_000_000)
    assert parse_at("2023-11-14T22:13:20Z") == (False, 1_700_000_000_000)
