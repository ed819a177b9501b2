"""Which offsets a partition's files prove to be missing: the table of
docs/explanation/missing-records.md, row by row, with none of the package's readers.

A file that is not just as a broker writes it is no witness here.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.support.reference.loss import SegmentVerdict, SoundBatch

_COMPACTED = ("__consumer_offsets", "__transaction_state")
_NUMBERED = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex|snapshot)")


@dataclass(frozen=True)
class Proof:
    """The log had the offsets from `start` to `end` (excluded); `why` is the row of the table."""

    start: int
    end: int
    why: str


@dataclass
class _Disk:
    """All that lies in the partition's directory, and its lines in the log dir's files."""

    directory: Path
    verdicts: list[SegmentVerdict]
    numbered: dict[str, list[int]] = field(default_factory=dict)
    waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbered = {ending: [] for ending in ("log", "index", "timeindex", "txnindex")}
        self.numbered["snapshot"] = []
        for file in sorted(self.directory.iterdir()):
            if known := _NUMBERED.fullmatch(file.name):
                self.numbered[known[2]].append(int(known[1]))
            elif known := _NUMBERED.match(file.name):
                self.waiting += [int(known[1])] if known[2] == "log" else []
        self.bases = self.numbered["log"]
        indexes = ("index", "timeindex", "txnindex")
        with_index = {base for ending in indexes for base in self.numbered[ending]}
        self.orphans = sorted(with_index - {*self.bases} - {*self.waiting})
        self.is_clean_stop = (self.directory.parent / ".kafka_cleanshutdown").exists()
        self.epochs = _epoch_starts(self.directory / "leader-epoch-checkpoint")

    def line(self, kind: str) -> int | None:
        """The partition's line of a checkpoint of the log dir."""
        topic, _, number = self.directory.name.rpartition("-")
        path = self.directory.parent / f"{kind}-checkpoint"
        values = [int(o) for t, p, o in _lines(path) if (t, p) == (topic, number)]
        return values[0] if len(values) == 1 else None

    def end(self, i: int) -> int:
        """One past the last sound batch of the segment."""
        return max([self.bases[i], *(b.last_offset + 1 for b in self.verdicts[i].sound)])

    def begin(self, i: int) -> int:
        sound = self.verdicts[i].sound
        if not sound or self.verdicts[i].proof or _is_wrapper(sound[0]):
            return self.bases[i]
        return max(self.bases[i], sound[0].base_offset)


def missing(directory: Path, verdicts: list[SegmentVerdict]) -> list[Proof]:
    """The proven ranges of a partition whose segments were judged one by one."""
    disk = _Disk(directory, verdicts)
    return [*_in_front(disk), *_between(disk), *_at_the_end(disk)]


def log_start(directory: Path) -> int:
    """The partition's line of `log-start-offset-checkpoint`, 0 without one."""
    return _Disk(directory, []).line("log-start-offset") or 0


def _in_front(disk: _Disk) -> list[Proof]:
    if not disk.bases or [base for base in disk.waiting if base < disk.bases[0]]:
        return []
    first, line = disk.bases[0], disk.line("log-start-offset")
    epochs = disk.epochs[0] if disk.epochs else None
    if epochs is not None and epochs >= first:
        return []  # the log's start moved
    if line is not None and line >= first:
        return []
    if line is not None and (epochs is not None or disk.is_clean_stop):
        return [Proof(line, first, "log start below the first segment")]
    if line is None and epochs is not None:
        return [Proof(epochs, first, "leader epochs below the first segment")]
    orphans = [base for base in disk.orphans if (line or 0) <= base < first]
    return [Proof(orphans[0], first, "an index without its .log, in front")] if orphans else []


def _between(disk: _Disk) -> list[Proof]:
    proofs = []
    is_compacted = _is_compacted(disk)
    for i in range(len(disk.bases)):
        start = disk.end(i - 1) if i else disk.bases[0]
        end = disk.begin(i)
        if start >= end or (i and disk.verdicts[i - 1].proof):
            continue
        if not is_compacted:
            proofs.append(Proof(start, end, "a gap between segments"))
        elif [base for base in disk.orphans if start <= base < end]:
            proofs.append(Proof(start, end, "an index without its .log, between"))
        elif i:
            witnesses = _of_indexes(disk, disk.bases[i - 1])
            if _agreed([w for w in witnesses if start < w[0] <= disk.bases[i]]) is not None:
                proofs.append(Proof(start, end, "index entries behind their .log, between"))
    return proofs


def _at_the_end(disk: _Disk) -> list[Proof]:
    if disk.verdicts and disk.verdicts[-1].proof:
        return []
    end = disk.end(len(disk.bases) - 1) if disk.bases else 0
    end = max(end, disk.line("log-start-offset") or 0)
    newest = max(disk.numbered["snapshot"], default=None)
    limit = newest if disk.is_clean_stop and newest is not None and newest >= end else None
    witnesses = [(newest, True)] if newest is not None else []
    for base in disk.orphans:
        witnesses += [(base, True), *_of_indexes(disk, base)]
    if disk.bases:
        witnesses += _of_indexes(disk, disk.bases[-1], limit)
    said = [disk.line(k) for k in ("recovery-point-offset", "replication-offset", "cleaner-offset")]
    for value in [*said, *disk.epochs[-1:]]:
        if value is not None:
            witnesses.append((value, limit is None or value <= limit))
    agreed = _agreed([w for w in witnesses if w[0] > end])
    return [] if agreed is None else [Proof(end, agreed, "witnesses behind the log's end")]


def _agreed(witnesses: list[tuple[int, bool]]) -> int | None:
    """Up to where a strong one goes, or two weak ones."""
    strong = [end for end, is_strong in witnesses if is_strong]
    if strong:
        return max(strong)
    return sorted(end for end, _ in witnesses)[-2] if len(witnesses) > 1 else None


def _of_indexes(disk: _Disk, base: int, limit: int | None = None) -> list[tuple[int, bool]]:
    """(one past the offset of an index's last entry, whether it proves alone)."""
    log = disk.directory / f"{base:020d}.log"
    size = log.stat().st_size if log.exists() else 0
    found = []
    entries = _entries(disk, base, "index", ">ii")
    if entries:
        end = base + entries[-1][0] + 1
        found.append((end, entries[-1][1] >= size > 0 and (limit is None or end <= limit)))
    times = _entries(disk, base, "timeindex", ">qi")
    if times:
        found.append((base + times[-1][1] + 1, False))
    aborted = _entries(disk, base, "txnindex", ">hqqqq")
    if aborted:
        found.append((aborted[-1][3] + 1, False))
    return found


def _entries(disk: _Disk, base: int, ending: str, layout: str) -> list[tuple[int, ...]]:
    """Up to the zeros; none of an index that is not in order."""
    path = disk.directory / f"{base:020d}.{ending}"
    width = struct.calcsize(layout)
    if not path.exists() or path.stat().st_size % width:
        return []
    data = path.read_bytes()
    parts = [data[at : at + width] for at in range(0, len(data), width)]
    while parts and not any(parts[-1]):
        parts.pop()
    found = [struct.unpack(layout, part) for part in parts]
    columns = (0, 1) if ending != "txnindex" else (3,)
    is_sound = all(e[c] >= 0 for e in found for c in columns) and all(map(any, parts))
    if ending == "txnindex":
        is_sound &= all(e[0] == 0 and e[1] >= 0 and e[2] <= e[3] >= e[4] - 1 for e in found)
    for one, other in pairwise(found):
        is_sound &= all(one[c] < other[c] for c in columns)
    return found if is_sound else []


def _is_compacted(disk: _Disk) -> bool:
    topic = disk.directory.name.rpartition("-")[0]
    path = disk.directory.parent / "cleaner-offset-checkpoint"
    number = disk.directory.name.rpartition("-")[2]
    line = f"{topic} {number} ".encode()
    if topic in _COMPACTED or (path.exists() and line in path.read_bytes()):
        return True
    return any(_is_thinned(verdict.sound) for verdict in disk.verdicts)


def _is_thinned(sound: tuple[SoundBatch, ...]) -> bool:
    for batch in sound:
        if batch.data[16] == 2:
            (attributes,) = struct.unpack_from(">h", batch.data, 21)
            (records,) = struct.unpack_from(">i", batch.data, 57)
            if attributes & 0x40 or records < batch.last_offset - batch.base_offset + 1:
                return True
    return any(
        other.base_offset > one.last_offset + 1 and not _is_wrapper(other)
        for one, other in pairwise(sound)
    )


def _is_wrapper(batch: SoundBatch) -> bool:
    return batch.data[16] < 2 and bool(batch.data[17] & 7)


def _lines(path: Path) -> list[tuple[str, str, str]]:
    if not path.exists():
        return []
    text = path.read_bytes().decode("latin-1")
    found = re.findall(r"^(\S+) (\d+) (\d+)$", text, re.MULTILINE)
    whole = "".join(f"{topic} {number} {offset}\n" for topic, number, offset in found)
    return found if text == f"0\n{len(found)}\n{whole}" else []


def _epoch_starts(path: Path) -> list[int]:
    if not path.exists():
        return []
    text = path.read_bytes().decode("latin-1")
    found = re.findall(r"^(\d+) (\d+)$", text, re.MULTILINE)
    whole = "".join(f"{epoch} {start}\n" for epoch, start in found)
    starts = [int(start) for _, start in found]
    is_rising = all(int(a[0]) < int(b[0]) and int(a[1]) < int(b[1]) for a, b in pairwise(found))
    return starts if is_rising and text == f"0\n{len(found)}\n{whole}" else []
