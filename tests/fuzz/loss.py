"""Random mutations of a log dir: is any record missing without a word?

Each mutation damages a file or two of a small log dir of several topics (codecs, old magics,
compacted, with transactions, offset commits; stopped in order and crashed) and reads its partition
in every mode. What must hold:

* where the bytes of a segment prove a loss (`tests.support.reference.loss`) every reader in
  FAILFAST raises;
* where other files prove that offsets are missing (`tests.support.reference.missing`) every reader
  in FAILFAST raises, with the range;
* where nothing is wrong by the same bytes and no record is gone FAILFAST does not raise;
* what lies in segments below the log's start only the view of batches reads, and raises;
* PERMISSIVE gives all that `salvage` gives, and every record of a batch that is still whole, where
  two files were damaged too;
* DROPMALFORMED gives the same records as PERMISSIVE.

Records that are gone without a word are counted by kind of mutation.
"""

from __future__ import annotations

import json
import logging
import random
import shutil
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise, zip_longest
from pathlib import Path

import kafkalog
from kafkalog.errors import KafkaLogError
from kafkalog.format.control_record import ControlRecordType
from kafkalog.format.record import Record
from kafkalog.messages.group_records import OFFSET_COMMIT
from kafkalog.planning.statuses import FAILED
from kafkalog.reading.fetch import fetch
from kafkalog.reading.tables import read_view
from kafkalog.repair.salvage import salvage_partition
from kafkalog.swap.local_files import LocalFiles
from tests.oracle.setup import PROJECT_ROOT
from tests.support.log_builder import START_MS, LogBuilder
from tests.support.message_encoder import encode_key, encode_value
from tests.support.packing import pack_legacy_entries
from tests.support.reference.loss import SegmentVerdict, judge_segment
from tests.support.reference.missing import Proof, log_start, missing

STATE_DIR = PROJECT_ROOT / ".cache" / "fuzz"
_MEMORY = Path("/dev/shm")
NOW_MS = START_MS + 1_000_000
LOSS_MUTATIONS = 10_000
_ROW_LENGTH = 10_000_000

Data = bytearray
Mutation = Callable[[random.Random, Data, list[int]], Data]
RecordKey = tuple[int, bytes | None, bytes | None]


# -- the log dir -----------------------------------------------------------------------------------


def build_log_dir(log_dir: Path, *, clean_shutdown: bool = True) -> None:
    """One partition of each topic, all sound."""
    log_dir.mkdir()
    how = {"clean_shutdown": clean_shutdown}
    for name, codecs in (("plain-0", (0,)), ("codecs-0", (4, 3, 2, 1, 0))):
        log = LogBuilder(log_dir, name, index_interval_bytes=150)
        for number in range(15):
            if number % 5 == 0:
                log.segment()
            records = [(f"k{number}", f"value {number}-{i}") for i in range(3)]
            log.batch(*records, codec=codecs[number % len(codecs)])
        log.write(**how)
    compacted = LogBuilder(log_dir, "compacted-0", index_interval_bytes=150).cleaner_offset(60)
    for base in (0, 30, 60):
        compacted.segment(base)
        for number in range(4):
            offset = base + 7 * number
            compacted.batch(
                Record(offset + 1, START_MS, b"k%d" % offset, b"v"), base_offset=offset,
                last_offset=offset + 4,
            )  # fmt: skip
    compacted.write(**how)
    txn = LogBuilder(log_dir, "transactions-0", index_interval_bytes=150)
    for number in range(6):
        if number % 3 == 0:
            txn.segment()
        txn.batch(("k", f"{number}"), ("l", "x" * 20), producer_id=7, is_transactional=True)
        kind = ControlRecordType.ABORT if number % 2 else ControlRecordType.COMMIT
        txn.marker(kind, 7)
    txn.write(**how)
    trimmed = LogBuilder(log_dir, "trimmed-0", index_interval_bytes=150).log_start_offset(9)
    for base in (0, 6, 12, 18):  # the first one lies below the log's start
        trimmed.segment(base)
        for number in range(3):
            trimmed.batch(("k", f"{number}"), ("l", "x" * 20))
    path = trimmed.write(**how)
    (path / "leader-epoch-checkpoint").write_text("0\n1\n0 9\n")
    single = LogBuilder(log_dir, "single-0", index_interval_bytes=150)
    for number in range(6):
        single.batch(("k", f"{number}"), ("l", "x" * 20))
    single.write(**how)
    _write_commits(log_dir, **how)
    for name, magic, codec in (("magic0-0", 0, 0), ("magic1-0", 1, 1)):
        path = log_dir / name
        path.mkdir()
        for base in (0, 8):
            entries = [
                pack_legacy_entries(
                    [Record(base + 2 * n + i, START_MS, b"k", b"old %d" % n) for i in range(2)],
                    magic=magic, codec=codec,
                )
                for n in range(4)
            ]  # fmt: skip
            (path / f"{base:020d}.log").write_bytes(b"".join(entries))


def _write_commits(log_dir: Path, *, clean_shutdown: bool) -> None:
    log = LogBuilder(log_dir, "__consumer_offsets-0", index_interval_bytes=150)
    for number in range(8):
        if number % 4 == 0:
            log.segment()
        names = {"group": f"g{number}", "topic": "t", "partition": 0}
        fields = {
            "offset": number, "leaderEpoch": 0, "metadata": "", "commitTimestamp": START_MS,
            "expireTimestamp": -1,
        }  # fmt: skip
        key = encode_key(OFFSET_COMMIT.key, names)
        log.batch((key, encode_value(OFFSET_COMMIT.value, 3, fields)))
    log.write(clean_shutdown=clean_shutdown)


# -- what is done to a file ------------------------------------------------------------------------


def _flip(rnd: random.Random, data: Data, _: list[int]) -> Data:
    for _ in range(rnd.choice((1, 1, 1, 2, 8))):
        data[rnd.randrange(len(data))] ^= rnd.randrange(1, 256)
    return data


def _length(rnd: random.Random, data: Data, edges: list[int]) -> Data:
    at = rnd.choice(edges[:-1])
    (length,) = struct.unpack_from(">i", data, at + 8)
    others = [other - at - 12 for other in edges if other > at]
    wrong = rnd.choice(
        [length + rnd.randint(-60, 60), rnd.choice(others), 0, -rnd.randrange(1, 99), 2**24,
         2**31 - 1, rnd.randrange(-(2**31), 2**31)]
    )  # fmt: skip
    struct.pack_into(">i", data, at + 8, max(min(wrong, 2**31 - 1), -(2**31)))
    return data


def _offset(rnd: random.Random, data: Data, edges: list[int]) -> Data:
    at = rnd.choice(edges[:-1])
    (offset,) = struct.unpack_from(">q", data, at)
    wrong = rnd.choice([offset + rnd.randint(-40, 40), 0, -1, 2**40, rnd.randrange(2**31)])
    struct.pack_into(">q", data, at, wrong)
    return data


def _zeros(rnd: random.Random, data: Data, _: list[int]) -> Data:
    start = rnd.randrange(len(data))
    end = min(len(data), start + rnd.randrange(1, 300))
    data[start:end] = bytes(end - start)
    return data


def _cut(rnd: random.Random, data: Data, _: list[int]) -> Data:
    return data[: rnd.randrange(len(data))]


def _swapped(rnd: random.Random, data: Data, edges: list[int]) -> Data:
    parts = [data[start:end] for start, end in pairwise(edges)]
    one, other = rnd.randrange(len(parts)), rnd.randrange(len(parts))
    parts[one], parts[other] = parts[other], parts[one]
    return Data(b"".join(parts))


def _twice(rnd: random.Random, data: Data, edges: list[int]) -> Data:
    start, end = rnd.choice(list(pairwise(edges)))
    return data[:end] + data[start:end] + data[end:]


def _removed(rnd: random.Random, data: Data, _: list[int]) -> Data:
    start = rnd.randrange(len(data))
    return data[:start] + data[start + rnd.randrange(1, 200) :]


def _inserted(rnd: random.Random, data: Data, _: list[int]) -> Data:
    at = rnd.randrange(len(data) + 1)
    return data[:at] + rnd.randbytes(rnd.randrange(1, 100)) + data[at:]


def _behind(rnd: random.Random, data: Data, _: list[int]) -> Data:
    count = rnd.choice((1, 17, 18, 61, 500))
    return data + (bytes(count) if rnd.random() < 0.5 else rnd.randbytes(count))


OF_SEGMENTS: dict[str, Mutation] = {
    "length": _length,
    "base offset": _offset,
    "batches swapped": _swapped,
    "batch twice": _twice,
}
GONE, SEGMENT_GONE, TWO_KINDS = "file gone", "segment gone", "two of these"
OF_FILES: dict[str, Mutation] = {
    "bytes changed": _flip,
    "zeros": _zeros,
    "cut": _cut,
    "bytes removed": _removed,
    "bytes inserted": _inserted,
    "bytes behind": _behind,
}


# -- one mutation ----------------------------------------------------------------------------------


@dataclass
class LossTally:
    """What a row of mutations came to. `proven` by the segments' own bytes, `proven_elsewhere` by
    other files; `only_told`: by readers, though this judge finds no proof; `claimed`: nothing was
    lost, and a damaged file says so; `traceless`: by kind, mutations after which records were gone
    and no reader can know it.
    """

    mutations: int = 0
    harmless: int = 0
    proven: int = 0
    proven_elsewhere: int = 0
    only_told: int = 0
    claimed: int = 0
    failed: list[int] = field(default_factory=list)
    traceless: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.traceless.items()))
        return (
            f"{self.mutations} mutations: {self.harmless} lost nothing, {self.proven} losses proven"
            f" by the segments' bytes and named, {self.proven_elsewhere} by other files with their"
            f" range, {self.only_told} told without our proof, {self.claimed} claimed by damage,"
            f" {sum(self.traceless.values())} without a trace ({kinds or 'none'}); "
            f"{len(self.failed)} broken promises"
        )


class LossTrial:
    """Log dirs in memory, some files of which are damaged at a time."""

    def __init__(self, root: Path) -> None:
        build_log_dir(root / "clean")
        build_log_dir(root / "crashed", clean_shutdown=False)
        for index in root.glob("crashed/*/*index"):
            # what a crash left preallocated, in short
            index.write_bytes(index.read_bytes().rstrip(b"\0").ljust(1200, b"\0"))
        self._out = root / "salvaged"
        self._partitions = sorted(path for path in root.glob("c*/*") if path.is_dir())
        self._pristine = {path: self._permissive(path) for path in self._partitions}
        self._batches = {
            path: {batch.data for verdict in _verdicts(path) for batch in verdict.sound}
            for path in self._partitions
        }

    def try_one(self, seed: int, tally: LossTally) -> list[str]:
        """What is broken after the mutation of this seed."""
        rnd = random.Random(seed)
        partition = rnd.choice(self._partitions)
        before: dict[Path, bytes] = {}
        told = []
        names = set[str]()
        try:
            for _ in range(rnd.choice((1, 1, 1, 2))):
                kind, name = _damage(rnd, partition, before)
                told.append(f"{kind} of {name}")
                names.add(name)
            kind = kind if len(told) == 1 else TWO_KINDS
            is_twice = len(names) < len(told)
            wrong = self._check(partition, kind, tally, is_twice=is_twice)
        finally:
            for file, content in before.items():
                file.write_bytes(content)
        tally.mutations += 1
        tally.failed += [seed] if wrong else []
        where = f"{partition.parent.name}/{partition.name}: {', '.join(told)}"
        return [f"{seed}: {where}: {text}" for text in wrong]

    def _check(self, partition: Path, kind: str, tally: LossTally, *, is_twice: bool) -> list[str]:
        verdicts = _verdicts(partition)
        any_proof = any(verdict.proof for verdict in verdicts)
        start = log_start(partition)
        proofs = _proofs_from(partition, verdicts, start)
        may_raise = any(verdict.proof for verdict in _reaching(partition, verdicts, start))
        ranges = missing(partition, verdicts)
        found = self._permissive(partition)
        is_lost = bool(Counter(self._pristine[partition]) - Counter(found))
        wrong: list[str] = []
        errors: list[str] = []
        for name, reader in _readers(partition, ranges).items():
            raised = _raised(reader)
            errors += [raised] if name == "records" and raised else []
            is_of_file = name in ("batches", "walk of headers")  # below the log's start as well
            own = proofs if not is_of_file else [v.proof for v in verdicts if v.proof]
            if own and not raised and not name.startswith("walk"):
                wrong.append(f"{name} does not raise: {own[0]}")
            if ranges and not any_proof and not any(_says(raised, each) for each in ranges):
                wrong.append(f"{name} does not raise {ranges[0]}: {raised or 'nothing'}")
            is_right = (
                (any_proof if is_of_file else may_raise)
                or ranges
                or is_lost
                or _is_odd(partition, raised)
            )
            if raised and not is_right:
                wrong.append(f"{name} raises, and nothing is wrong: {raised}")
        dropped = [row[:3] for row in _rows(partition, "DROPMALFORMED")]
        if Counter(found) != Counter(dropped):
            wrong.append("DROPMALFORMED gives other records than PERMISSIVE")
        not_given = Counter(self._salvaged(partition)) - Counter(found)
        if not_given:
            wrong.append(f"salvage gives more than PERMISSIVE: {sorted(not_given)[:3]}")
        if not is_twice:  # damaged twice a file may not tell which of two batches is in its place
            wrong += self._lost_whole(partition, verdicts, found)
        if proofs:
            tally.proven += 1
        elif ranges:
            tally.proven_elsewhere += is_lost
            tally.claimed += not is_lost
        elif is_lost and errors:
            tally.only_told += 1
        elif is_lost:
            tally.traceless[kind] = tally.traceless.get(kind, 0) + 1
        else:
            tally.harmless += 1
        return wrong

    def _lost_whole(
        self,
        partition: Path,
        verdicts: list[SegmentVerdict],
        found: list[RecordKey],
    ) -> list[str]:
        """Records of batches that are still whole, and where they were, but not given."""
        there = {offset for offset, _, _ in found}
        whole = {
            offset
            for verdict in verdicts
            for batch in verdict.sound
            if batch.data in self._batches[partition]  # its offset is what it was
            for offset in range(batch.base_offset, batch.last_offset + 1)
        }
        pristine = {offset for offset, _, _ in self._pristine[partition]}
        lost = sorted((whole & pristine) - there)
        return [f"whole batches are not given: offsets {lost[:5]}"] if lost else []

    def _permissive(self, partition: Path) -> list[RecordKey]:
        return [row[:3] for row in _rows(partition, "PERMISSIVE") if row[3] is None]

    def _salvaged(self, partition: Path) -> list[RecordKey]:
        shutil.rmtree(self._out, ignore_errors=True)
        self._out.mkdir()
        (opened,) = kafkalog.open_log_dir(partition)
        result = salvage_partition(
            opened, self._out, now_ms=NOW_MS, files=LocalFiles(), run_id="loss"
        )
        assert not result.fault, result.fault
        return [] if result.status == FAILED else self._permissive(self._out)


def _damage(rnd: random.Random, partition: Path, before: dict[Path, bytes]) -> tuple[str, str]:
    """Damage a file of the partition, or of its log dir; `before` gets what files were. The kind of
    mutation, and what it was done to.
    """
    logs = [log for log in sorted(partition.glob("*.log")) if log.stat().st_size]
    log_dir_files = sorted(file for file in partition.parent.iterdir() if file.is_file())
    own = sorted(file for file in partition.iterdir() if file.stat().st_size)
    file = rnd.choice(own + 6 * logs + log_dir_files)
    is_log = file.suffix == ".log"
    is_whole = file not in before
    kinds = OF_FILES | (OF_SEGMENTS if is_log and is_whole else {})
    kind = rnd.choice([*sorted(kinds), GONE, *([SEGMENT_GONE] if is_log else [])])
    gone = [file] if kind == GONE else sorted(partition.glob(f"{file.stem}.*"))
    if kind in (GONE, SEGMENT_GONE):
        for each in gone:
            before.setdefault(each, each.read_bytes())
            each.unlink()
        return kind, file.name
    content = file.read_bytes()
    before.setdefault(file, content)
    edges = _edges(content) if is_log and is_whole else []
    file.write_bytes(kinds[kind](rnd, Data(content), edges))
    return kind, file.name


def _says(raised: str, proof: Proof) -> bool:
    """A fetch below the log's start is told where the log begins, as by a broker."""
    is_out_of_range = "the log has offsets" in raised and f"(offset {proof.start}" in raised
    return f"offsets {proof.start} to {proof.end - 1} are not here" in raised or is_out_of_range


def _edges(content: bytes) -> list[int]:
    edges = [0]
    while edges[-1] < len(content):
        edges.append(edges[-1] + 12 + struct.unpack_from(">i", content, edges[-1] + 8)[0])
    return edges


def _verdicts(partition: Path) -> list[SegmentVerdict]:
    files = sorted(partition.glob("*.log"))
    bases = [int(file.stem) for file in files]
    return [
        judge_segment(file.read_bytes(), base, next_base)
        for file, base, next_base in zip(
            files, bases, [*bases[1:], None][: len(bases)], strict=True
        )
    ]


def _proofs_from(partition: Path, verdicts: list[SegmentVerdict], start: int) -> list[str]:
    """The proofs that concern a read from the log's start on; what lies in front may be damaged."""
    files = sorted(partition.glob("*.log"))
    proofs = []
    for file, following, verdict in zip_longest(files, files[1:], verdicts):
        base = int(file.stem)
        next_base = None if following is None else int(following.stem)
        if next_base is not None and next_base <= start:
            continue  # all of it lies in front
        before = [b.position for b in verdict.sound if base < start and b.base_offset <= start]
        rest = file.read_bytes()[max(before, default=0) :]
        proofs.append(judge_segment(rest, base, next_base).proof if before else verdict.proof)
    return [proof for proof in proofs if proof]


def _reaching(partition: Path, verdicts: list[SegmentVerdict], start: int) -> list[SegmentVerdict]:
    """Those of segments that a read from the log's start on passes through."""
    bases = [int(file.stem) for file in sorted(partition.glob("*.log"))]
    return [v for v, end in zip(verdicts, [*bases[1:], start + 1], strict=False) if end > start]


def _rows(partition: Path, mode: str) -> list[tuple[int, bytes | None, bytes | None, str | None]]:
    names = ["offset", "key", "value"]
    table = kafkalog.read_records(
        partition, columns=names, mode=mode, include_control=True
    ).read_all()
    errors = table["error"].to_pylist() if mode == "PERMISSIVE" else [None] * len(table)
    columns = [table[name].to_pylist() for name in names]
    return list(zip(*columns, errors, strict=True))


def _readers(partition: Path, ranges: list[Proof]) -> dict[str, Callable[[], object]]:
    """What reads a partition and fails on damage, from the first offset its log had. Those called
    walk need not look at bodies.
    """
    readers: dict[str, Callable[[], object]] = {
        "records": lambda: _rows(partition, "FAILFAST"),
        "batches": lambda: _valid_batches(partition),
        "walk of headers": lambda: kafkalog.read_batches(partition),
        "walk of a fetch": lambda: _fetch_all(partition, [proof.start for proof in ranges]),
    }
    if partition.name == "__consumer_offsets-0":
        for view in ("messages", "offset_commits", "latest_offset_commits"):
            readers[view] = lambda view=view: read_view(view, partition)
    return readers


def _valid_batches(partition: Path) -> None:
    table = kafkalog.read_batches(partition, verify_checksums=True)
    if not all(table["isValid"].to_pylist()):
        raise KafkaLogError("told in a row")
    before = -1
    names = ("baseOffset", "lastOffset", "segmentBaseOffset")
    columns = (table[name].to_pylist() for name in names)
    for base, last, segment in zip(*columns, strict=True):
        if not max(before, segment - 1) < base <= last or last - segment > 2**31 - 1:
            raise KafkaLogError("told in its columns")
        before = last


def _fetch_all(partition: Path, offsets: list[int]) -> None:
    """As a consumer does, up to the end, where it waits for more."""
    (opened,) = kafkalog.open_log_dir(partition)
    offset = min([opened.log_start_offset, *offsets])
    while True:
        fetched = fetch(opened, offset)
        if fetched.next_offset <= offset:
            return
        offset = fetched.next_offset


def _raised(reader: Callable[[], object]) -> str:
    try:
        reader()
    except KafkaLogError as error:
        return str(error)
    return ""


def _is_odd(partition: Path, raised: str) -> bool:
    """What is wrong with other files than the segments, of which the judge knows nothing."""
    return not any(file.name in raised for file in partition.glob("*.log"))


# -- rows of mutations -----------------------------------------------------------------------------


def run_loss(seed: int, count: int) -> int:
    """The first `count` mutations of a row; a later run goes on where this one ended, after trying
    again what failed. How many promises are broken.
    """
    path = STATE_DIR / f"loss-{seed}.json"
    tally = LossTally(**json.loads(path.read_text())) if path.exists() else LossTally()
    with loss_trial() as trial:
        again, tally.failed = tally.failed, []
        for mutation_seed in again:
            retried = LossTally()  # it was counted when it was tried first
            for line in trial.try_one(mutation_seed, retried):
                sys.stdout.write(f"loss {line}\n")
            tally.failed += retried.failed
        for number in range(tally.mutations, count):
            for line in trial.try_one(seed * _ROW_LENGTH + number, tally):
                sys.stdout.write(f"loss {line}\n")
                sys.stdout.flush()
            tally.mutations = number + 1
            if tally.mutations % 100 == 0 or tally.mutations == count:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(asdict(tally)))
    sys.stdout.write(f"{tally}\n")
    return len(tally.failed)


class loss_trial:
    """A trial whose log dirs go with it."""

    def __enter__(self) -> LossTrial:
        self._logger = logging.getLogger("kafkalog")
        self._level = self._logger.level
        self._logger.setLevel(logging.ERROR)  # what is left out is meant to be
        self._dir = tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)
        return LossTrial(Path(self._dir.name))

    def __exit__(self, *_: object) -> None:
        self._logger.setLevel(self._level)
        self._dir.cleanup()
