"""A log dir of damaged partitions beside a healthy one, and the doors damage comes through.

Each `check_…` returns what is wrong as text, nothing when all is as promised. What a damaged file
should do is told by the plain-Python reader: `plain_reading`.
"""

from __future__ import annotations

import io
import json
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kafkalog
from kafkalog.cli.main import main
from kafkalog.errors import KafkaLogError
from kafkalog.format.checkpoints import HIGH_WATERMARK_FILE, pack_offset_checkpoint
from kafkalog.format.file_names import log_file_name
from kafkalog.format.record import Record
from tests.conformance.rounds import NOW_MS, directory_bytes, offsets
from tests.support.log_builder import LogBuilder
from tests.support.reference.batches import parse_batches
from tests.support.topics import topic_words

# More than any of these files may make us ask for, and less than any length in them could: 64 MiB a
# batch, as much again while a buffer grows, and eight times that for the places of its records.
CAP_BYTES = 1024 * 1024 * 1024
SECONDS_A_CASE = 20

MOST_PARTITIONS = 40
LOG_END = 500
APPLY = ["--apply", "--workers", "1", "--force", "null-keys", "--now", str(NOW_MS)]
APPLY.append("--no-undo")
APPLY += ["--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0"]
MODES = ("FAILFAST", "PERMISSIVE", "DROPMALFORMED")
# what a header says of itself may end the search for what is wrong, or the range that is cleaned
# The last: a record below its batch is in order to a plain reader, and nothing we would write.
RULES = ("control record key", "spans offsets", "reaches offset", "record 0: offset not above")
OPEN_TRANSACTION = "transaction open since offset"
TORN = "torn"
# What a plain reading of the batches does not look at.
NOT_READ_PLAINLY = {
    *("max-timestamp", "producer-fields", "sequence-order", "producer-epoch-order"),
    *("leader-epoch-order", "offset-gap", "lz4-content-checksum", "inner-crc", "control-record"),
}
RECORD_ORDER = "offsets of records"


@dataclass(frozen=True, slots=True)
class Damaged:
    """One damaged partition: what was done, and its directory."""

    name: str
    path: Path

    @property
    def log(self) -> Path:
        return self.path / log_file_name(0)


@contextmanager
def capped(seconds: float = SECONDS_A_CASE) -> Iterator[None]:
    """Fail where the block asks for more than CAP_BYTES of new memory, or for so much of a
    processor's time: what other processes take of it is not the block's.
    """

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    with Path("/proc/self/statm").open() as statm:
        used = int(statm.read().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (used + CAP_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def write_damaged(log_dir: Path, contents: dict[str, bytes]) -> list[Damaged]:
    """A partition `damaged-N` for each content of its first segment, an empty active segment
    behind; and `healthy-0`.
    """
    log = LogBuilder(log_dir, "healthy-0")
    log.segment().batch(("key", "old"), ("other", "1")).batch(("key", "new"))
    log.segment().batch(("z", "")).write()
    found = []
    for number, (name, content) in enumerate(contents.items()):
        path = log_dir / f"damaged-{number}"
        path.mkdir()
        for base_offset, data in ((0, content), (LOG_END, b"")):
            for suffix, file_data in ((".log", data), (".index", b""), (".timeindex", b"")):
                (path / f"{base_offset:020d}{suffix}").write_bytes(file_data)
        found.append(Damaged(name, path))
    high_watermarks = {("damaged", number): LOG_END for number in range(len(found))}
    (log_dir / HIGH_WATERMARK_FILE).write_bytes(
        pack_offset_checkpoint({("healthy", 0): 4} | high_watermarks)
    )
    return found


def plain_reading(content: bytes) -> tuple[str | None, list[Record]]:
    """What a plain reading of a closed segment finds wrong (None for nothing), and the records of
    the whole batches it found before.
    """
    end, next_offset, found = 0, 0, list[Record]()
    verdict = None
    try:
        for position, header, records in parse_batches(content):
            if not next_offset <= header.base_offset <= header.last_offset:
                return "offsets of batches", found
            for record in records:
                if not next_offset <= record.offset <= header.last_offset:
                    verdict = RECORD_ORDER
                next_offset = record.offset + 1
            next_offset = header.last_offset + 1
            if next_offset > LOG_END:
                verdict = RECORD_ORDER
            found += records
            end = position + header.size_in_bytes
    except KafkaLogError as error:
        # zeros at the end of a preallocated file are an end to every reader but the plain one
        return (str(error) if any(content[end:]) else TORN), found
    return verdict or (None if end == len(content) else TORN), found


# -- reading ---------------------------------------------------------------------------------------


def check_reading(case: Damaged, content: bytes) -> list[str]:
    """Every mode ends with records or with the named error and its place; once without checksums,
    so that the damage reaches the decoder.
    """
    unchecked = MODES[len(case.name) % len(MODES)]
    wrong = []
    for mode, verify in (*((mode, True) for mode in MODES), (unchecked, False)):
        try:
            table = kafkalog.read_records(
                case.log, mode=mode, verify_checksums=verify, include_control=True
            ).read_all()
            wrong += _check_rows(table.to_pylist(), content, mode, verify=verify)
        except KafkaLogError as error:
            wrong += [f"{mode}: {text}" for text in _check_error(error, case, content, mode)]
    return [f"{case.name}: reading, {text}" for text in wrong]


def _check_error(error: KafkaLogError, case: Damaged, content: bytes, mode: str) -> list[str]:
    wrong = []
    if mode != "FAILFAST":
        wrong.append(f"raises {error!r}")
    if error.path != str(case.log) or error.position is None or error.offset is None:
        wrong.append(f"no place: {error.path} {error.position} {error.offset}")
    elif not 0 <= error.position <= len(content):
        wrong.append(f"position {error.position} of {len(content)} bytes")
    if plain_reading(content)[0] is None:
        wrong.append(f"a sound file raises {error}")
    return wrong


def _check_rows(
    rows: list[dict[str, Any]], content: bytes, mode: str, *, verify: bool
) -> list[str]:
    verdict, expected = plain_reading(content)
    if mode == "FAILFAST" and verify and verdict not in (None, RECORD_ORDER):
        return [f"{mode}: {len(rows)} rows of a file of which a plain reader says {verdict}"]
    found = [(r["offset"], r["key"], r["value"]) for r in rows]
    if verify and verdict in (None, TORN):
        plain = [(r.offset, r.key, r.value) for r in expected]
        # behind what a plain reader takes for the end there may be more
        if found[: len(plain)] != plain or (verdict is None and found != plain):
            return [f"{mode}: rows differ from those of a plain reader"]
    return []


# -- the command line ------------------------------------------------------------------------------


def run_json(argv: list[str]) -> tuple[int, dict[str, Any]]:
    """A verb in this process: exit code and document."""
    said, told = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(told):
        code = main([*argv, "--json"])
    assert said.getvalue(), f"exit code {code}: {told.getvalue()[-2000:]}"
    return code, json.loads(said.getvalue())


def check_segments(log_dir: Path, cases: list[Damaged]) -> list[str]:
    """`kafkalog segments` lists every file, and ends with 0 or 1."""
    code, document = run_json(["segments", "--log-dir", str(log_dir)])
    wrong = [] if code in (0, 1) else [f"segments: exit code {code}"]
    listed = {row["path"]: row for row in document["segments"]}
    wrong += [f"{case.name}: segments: not listed" for case in cases if str(case.log) not in listed]
    if str(log_dir / "healthy-0" / log_file_name(0)) not in listed:
        wrong.append("segments: the healthy partition is not listed")
    return wrong


def check_verification(log_dir: Path, cases: list[Damaged], run_dir: Path) -> list[str]:
    """`kafkalog verify` ends with 0 or 1, finds something in each file that a plain reading finds
    wrong, and nothing in the others; a run after it carries all of it over.
    """
    arguments = ["verify", "--log-dir", str(log_dir), "--workers", "1", "--run-dir", str(run_dir)]
    code, document = run_json(arguments)
    wrong = [] if code in (0, 1) else [f"verify: exit code {code}"]
    found: dict[str, list[str]] = {}
    for row in document["findings"]:
        if row["severity"] != "info":
            found.setdefault(row["path"], []).append(row["id"])
    for case in cases:
        verdict, _ = plain_reading(case.log.read_bytes())
        kinds = set(found.get(str(case.log), [])) - NOT_READ_PLAINLY
        # A record below its batch, and above the batch before, is in order to a plain reader.
        if verdict is None and kinds - {"record-offset-order"}:
            wrong.append(f"{case.name}: verify: sound, but {kinds}")
        if verdict is not None and not kinds:
            wrong.append(f"{case.name}: verify: nothing found, a plain reader says {verdict}")
    code, later = run_json([*arguments, "--since", document["runId"]])
    if later["findings"] != document["findings"]:
        wrong.append("verify: carried over are other findings")
    return wrong


def check_compaction(log_dir: Path, cases: list[Damaged]) -> list[str]:
    """`kafkalog compact --apply` leaves each damaged partition as it was, says why, and cleans the
    healthy one.
    """
    before = {case.name: directory_bytes(case.path) for case in cases}
    code, document = run_json(["compact", *APPLY, *topic_words(log_dir), "--log-dir", str(log_dir)])
    by_path = {entry["path"]: entry for entry in document["partitions"]}
    wrong = []
    any_bad = False
    for case in cases:
        entry = by_path[str(case.path)]
        verdict, _ = plain_reading(before[case.name][log_file_name(0)][0])
        wrong += _check_partition(case, entry, verdict, before[case.name])
        any_bad = any_bad or entry["status"] in ("failed", "refused")
    if code != (1 if any_bad else 0):
        wrong.append(f"compact: exit code {code}")
    healthy = log_dir / "healthy-0"
    if by_path[str(healthy)]["status"] != "compacted" or offsets(healthy) != [1, 2, 3]:
        wrong.append("compact: the healthy partition was not compacted")
    return wrong


def _check_partition(
    case: Damaged, entry: dict[str, Any], verdict: str | None, before: dict[str, Any]
) -> list[str]:
    status, reason = entry["status"], entry["reason"]
    if status == "compacted":
        return [] if verdict is None else [f"{case.name}: compacted in spite of {verdict}"]
    wrong = []
    if status == "skip" and OPEN_TRANSACTION in reason:
        return [] if directory_bytes(case.path) == before else [f"{case.name}: skipped and changed"]
    if status not in ("failed", "refused"):
        wrong.append(f"status {status}: {reason}")
    if directory_bytes(case.path) != before:
        wrong.append(f"the directory has changed ({status}: {reason})")
    is_rule = any(rule in reason for rule in RULES)
    if verdict is None and not is_rule:
        wrong.append(f"sound, but {status}: {reason}")
    if verdict is not None and not is_rule and " @ " not in reason:
        wrong.append(f"no place in {status}: {reason}")
    return [f"{case.name}: {text}" for text in wrong]


def check_all(log_dir: Path, contents: dict[str, bytes]) -> list[str]:
    """All doors, for partitions with these first segments, in log dirs of moderate size."""
    wrong = []
    names = list(contents)
    for first in range(0, len(names), MOST_PARTITIONS):
        part = log_dir / str(first)
        part.mkdir()
        cases = write_damaged(
            part, {name: contents[name] for name in names[first : first + MOST_PARTITIONS]}
        )
        for case in cases:
            with capped():
                wrong += check_reading(case, contents[case.name])
        with capped(60):
            wrong += check_segments(part, cases)
        with capped(120):
            wrong += check_verification(part, cases, log_dir / "runs")
        with capped(120):
            wrong += check_compaction(part, cases)
    return wrong
