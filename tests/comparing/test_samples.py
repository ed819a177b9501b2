"""Two replicas that Kafka's own cleaner made disagree: exactly what differs is found."""

from __future__ import annotations

import json

import pytest

from data.copy_samples import SAMPLES
from kafkalog.cli.main import main
from tests.comparing.comparing import compare, told

NODES = (SAMPLES / "replicas" / "node1", SAMPLES / "replicas" / "node2")


def test_the_two_differences_are_found_and_no_other() -> None:
    assert told(*NODES) == [
        ("aborted-served-as-committed", 0, "2", "1"),
        ("resurrected-key", 0, "2", "1"),
    ]
    assert told(*reversed(NODES)) == told(*NODES)
    run = compare(*NODES)
    ends = {
        str(each.topic_partition): [
            (own.log_start_offset, own.log_end_offset) for own in each.replicas
        ]
        for each in run.partitions
    }
    assert ends == {
        "__cluster_metadata-0": [(0, 225), (0, 244)],
        "abrt-0": [(0, 64), (0, 64)],
        "tomb-0": [(0, 63), (0, 63)],
    }
    assert [each.best for each in run.partitions] == ["node 2", "node 1", "node 1"]


def test_the_verb_names_keys_and_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", *map(str, NODES), "--workers", "1")
    assert main([*words, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(f["topic"], f["offset"], f["key"], f["isProvable"]) for f in document["findings"]] == [
        ("abrt", 0, "a", True),
        ("tomb", 0, "erased", True),
    ]
    assert set(document["kinds"]) == {f["id"] for f in document["findings"]}
    (behind,) = [p for p in document["partitions"] if p["topic"] == "__cluster_metadata"]
    assert [r["behindRecords"] for r in behind["replicas"]] == [18, 0]
    assert main([*words, "--redact"]) == 1
    out, err = capsys.readouterr()
    assert "erased" not in out + err
    assert "sha256:" in out
    assert main([*words, "--topic", "__cluster_metadata"]) == 0
    assert main(["compare", str(NODES[0])]) == 2
