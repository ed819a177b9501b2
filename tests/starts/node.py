"""A real node started on a disk, and what became of what was there.

One JVM starts and stops whole nodes (`oracle.StartCmd`), about a second each; it is replaced where
a node that failed may have left threads. What the sound sample has after its start is what others
are compared with.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from kafkalog.log.metadata_records import metadata_files, metadata_log_end
from tests.oracle.kafka import Answer, Kafka
from tests.starts.disk import METADATA, Disk
from tests.support.broker import SETTINGS, free_ports

# A node that was stopped leaves some of its memory behind.
MOST_STARTS = 20
LOADS, LOSES, REFUSES = "loads", "loads with loss", "does not start"
# Nothing happens by itself while a started node is looked at.
STILL = {
    "log.cleaner.backoff.ms": "86400000",
    "log.initial.task.delay.ms": "86400000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "86400000",
    "offsets.retention.minutes": "2147483647",
    "offsets.retention.check.interval.ms": "86400000",
}


@dataclass(frozen=True)
class Start:
    """`outcome` is one of the three; `what`: which loss, or why it does not start."""

    outcome: str
    what: str
    answer: Answer


class Node:
    """Starts one node after the other; keeps the JVM while it is clean."""

    def __init__(self) -> None:
        self._kafka: Kafka | None = None
        self._starts = 0
        self._sound: Answer | None = None
        self._metadata_end = 0

    def __enter__(self) -> Node:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._kafka is not None:
            self._kafka.close()

    def know_sound(self, disk: Disk) -> Answer:
        """Starts the unchanged sample: must load, and is what others are compared with."""
        self._metadata_end, _ = metadata_log_end(metadata_files(disk.path(METADATA))[0])
        self._sound = self._ask(disk)
        assert self._sound["outcome"] == "started", self._sound
        return self._sound

    def start(self, disk: Disk) -> Start:
        strays = set(_strays(disk))
        answer = self._ask(disk)
        if answer["outcome"] != "started":
            return Start(REFUSES, _reason(answer), answer)
        assert self._sound is not None
        losses = list(_losses(self._sound, answer, disk))
        losses += _lost_metadata(self._sound, answer, self._metadata_end)
        renamed = sorted(set(_strays(disk)) - strays)
        losses += [f"{name.rpartition('.')[0]} renamed to -stray" for name in renamed]
        return Start(LOSES if losses else LOADS, "; ".join(losses), answer)

    def _ask(self, disk: Disk) -> Answer:
        if self._kafka is None or not self._kafka.is_alive:
            self._kafka, self._starts = Kafka(log_level="info"), 0
        properties = disk.root / "server.properties"
        settings = _settings(disk)
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        answer = self._kafka.call("start", "--properties", str(properties))
        self._starts += 1
        if answer["dirty"] or self._starts == MOST_STARTS:
            self._kafka.close()
            self._kafka = None
        return answer


def _settings(disk: Disk) -> dict[str, str]:
    port, controller_port = free_ports(2)
    with_metadata = [path for path in disk.log_dirs if (path / METADATA).exists()]
    return dict(SETTINGS) | STILL | {
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "metadata.log.dir": str([*with_metadata, disk.log_dir][0]),
        "log.dirs": ",".join(map(str, disk.log_dirs)),
    }  # fmt: skip


def _reason(answer: Answer) -> str:
    """What the first error of the log with an exception says, else what ended the node."""
    errors = [line for line in answer["log"] if line.startswith(("ERROR", "FATAL"))]
    told = [line for line in errors if " | " in line] or errors or [str(answer["reason"])]
    return told[0].split(" | ")[-1]


# -- losses ----------------------------------------------------------------------------------------


def _losses(sound: Answer, found: Answer, disk: Disk) -> Iterator[str]:
    if len(found["liveLogDirs"]) < len(disk.log_dirs):
        yield f"{len(disk.log_dirs) - len(found['liveLogDirs'])} log dir offline"
    if found["deadCleaners"]:
        yield "the cleaner has ended"
    if found["leaderless"]:
        yield f"{len(found['leaderless'])} partitions without a leader"
    for what in ("topics", "configs", "groups"):
        lost = _lost(sound[what], found[what])
        if lost:
            yield f"{what} lost or other: {lost}"
    for name, before in sound["logs"].items():
        after = found["logs"].get(name)
        if after is None:
            yield f"{name} is not loaded"
            continue
        yield from (f"{name}: {text}" for text in _lost_in_log(before, after))


def _lost_metadata(sound: Answer, found: Answer, end: int) -> Iterator[str]:
    """Of the records below `end`, as the sample has them, those that neither the log nor a snapshot
    has; offsets that no record has; and whether a reader comes to what the node writes first, that
    it leads.
    """
    log = found["metadataLog"]
    there = set(map(tuple, log["records"]))
    wanted = [tuple(r) for r in sound["metadataLog"]["records"]]
    lost = [r for r in wanted if log["snapshotEnd"] <= r[0] < end and r not in there]
    if lost:
        yield f"{METADATA}: {len(lost)} records from offset {lost[0][0]} on"
    offsets = [offset for offset, _ in log["records"]]
    gaps = sum(b - a - 1 for a, b in itertools.pairwise(offsets))
    if gaps:
        yield f"{METADATA}: {gaps} offsets have no record"
    elections = [at for at in sound["metadataLog"]["control"] if at >= log["snapshotEnd"]]
    if not lost and len(log["control"]) < len(elections):
        yield f"{METADATA}: a record that is appended: not found"


def _strays(disk: Disk) -> Iterator[str]:
    for log_dir in disk.log_dirs:
        yield from (path.name for path in log_dir.glob("*-stray"))


def _lost_in_log(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    if "readError" in after:
        yield f"cannot be read: {after['readError']}"
    before, after = ({**log, "open": log["end"] - log["stable"]} for log in (before, after))
    # A state may have more at its end than the sample.
    for key in ("end", "records", "producers"):
        if after[key] < before[key]:
            yield f"{key} {after[key]}, was {before[key]}"
    for key in ("start", "open", "aborted"):
        if after[key] != before[key]:
            yield f"{key} {after[key]}, was {before[key]}"
    # Nothing compacts such a log: a consumer skips what was there.
    if _unused(before) == 0 and after["records"] >= before["records"] and _unused(after):
        yield f"{_unused(after)} offsets have no record"
    if before["records"] == after["records"] and before["checksum"] != after["checksum"]:
        yield "other records"
    if before.get("append") != after.get("append"):
        yield f"a record that is appended: {after['append']}"
    known = [segment for segment in before["times"] if segment not in after["times"]]
    if known and before["records"] == after["records"]:
        yield f"another largest timestamp of {len(known)} segments"
    if _own_epochs(before) != _own_epochs(after):
        yield f"leader epochs {_own_epochs(after)}, were {_own_epochs(before)}"


def _unused(log: dict[str, Any]) -> int:
    """Offsets without a record."""
    return int(log["end"] - log["start"] - log["records"])


def _own_epochs(log: dict[str, Any]) -> list[list[int]]:
    """Those the log had before the start began one at its end."""
    return [entry for entry in log["epochs"] if entry[1] < log["end"]]


def _lost(before: Any, after: Any) -> str:
    """Names of what is not there any more, or is otherwise; the text of what could not be asked."""
    if isinstance(after, str):
        return after
    if isinstance(before, list):
        return ", ".join(each for each in before if each not in after)
    return ", ".join(key for key in before if after.get(key) != before[key])
