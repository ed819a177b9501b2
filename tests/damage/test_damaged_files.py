"""Truncated, bit-flipped and length-forged files: never a crash, a hang or memory without a cap;
each yields its named error with its place, is left as it was, and stops no other partition.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import kafkalog
from kafkalog.format.constants import CompressionType
from kafkalog.format.file_names import log_file_name
from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.conformance.rounds import directory_bytes
from tests.damage.doors import (
    APPLY,
    CAP_BYTES,
    LOG_END,
    capped,
    check_all,
    check_segments,
    run_json,
    write_damaged,
)
from tests.damage.forging import (
    Forgery,
    around,
    bombs,
    forged_counts,
    forged_headers,
    forged_streams,
    forged_varints,
    random_damage,
    sound_batch,
)
from tests.support.topics import topic_words

Makers = dict[str, Callable[[], Iterator[Forgery]]]

CODECS = list(CompressionType)
FORGED: Makers = {
    "header": forged_headers,
    "header of a zstd batch": partial(forged_headers, 4),
    "varints": forged_varints,
    "varints under gzip": partial(forged_varints, 1),
    "counts": forged_counts,
    "counts under lz4": partial(forged_counts, 3),
    "streams": forged_streams,
}


def work_without_end() -> None:
    while True:
        pass


def test_the_cap_and_the_clock_are_real() -> None:
    with capped(), pytest.raises(MemoryError):
        bytearray(CAP_BYTES * 11 // 10)
    with pytest.raises(TimeoutError), capped(0.05):
        work_without_end()
    assert bytearray(CAP_BYTES * 11 // 10)


@pytest.mark.parametrize(
    "what",
    [pytest.param(what, marks=pytest.mark.thorough if n else ()) for n, what in enumerate(FORGED)],
)
def test_every_forgery_is_named_and_left_alone(log_dir: Path, what: str) -> None:
    contents = {forgery.name: around(forgery.batch) for forgery in FORGED[what]()}
    wrong = check_all(log_dir, contents)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "codec",
    [*CODECS[:1], *(pytest.param(c, marks=pytest.mark.thorough) for c in CODECS[1:4]), *CODECS[4:]],
)
def test_a_segment_cut_or_flipped_anywhere_is_named_and_left_alone(
    log_dir: Path, codec: int
) -> None:
    sound = around(sound_batch(codec))
    rnd = random.Random(codec)
    contents = {f"cut at {cut}": sound[:cut] for cut in rnd.sample(range(len(sound)), 25)}
    for bit in rnd.sample(range(8 * len(sound)), 40):
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        contents[f"bit {bit}"] = bytes(flipped)
    for count in (1, 17, 61, 300):
        contents[f"{count} zeros behind"] = sound + bytes(count)
        contents[f"{count} bytes behind"] = sound + rnd.randbytes(count)
    wrong = check_all(log_dir, contents)
    assert not wrong, "\n".join(wrong)


@pytest.mark.thorough
def test_bombs_stop_at_the_cap(log_dir: Path) -> None:
    contents = {forgery.name: around(forgery.batch) for forgery in bombs()}
    wrong = check_all(log_dir, contents)
    assert not wrong, "\n".join(wrong)


def test_a_damaged_active_segment_refuses_its_partition(log_dir: Path) -> None:
    sound = around(sound_batch())
    cases = write_damaged(log_dir, dict.fromkeys(("length", "magic", "sound"), sound))
    for case, position, value in ((cases[0], 8, b"\xff" * 4), (cases[1], 16, b"\x07")):
        active = case.path / log_file_name(LOG_END)
        batch = pack_batch([Record(LOG_END, 1, b"k", b"v")])
        active.write_bytes(batch[:position] + value + batch[position + len(value) :])
    wrong = check_segments(log_dir, cases)
    before = [directory_bytes(case.path) for case in cases]
    with capped(60):
        code, document = run_json(
            ["compact", *APPLY, *topic_words(log_dir), "--log-dir", str(log_dir)]
        )
    assert code == 1
    status = {Path(entry["path"]).name: entry["status"] for entry in document["partitions"]}
    assert status == {
        "damaged-0": "refused",
        "damaged-1": "refused",
        "damaged-2": "compacted",
        "healthy-0": "compacted",
    }
    reasons = {Path(entry["path"]).name: entry["reason"] for entry in document["partitions"]}
    for case, content in zip(cases[:2], before, strict=False):
        assert directory_bytes(case.path) == content
        assert str(case.path / log_file_name(LOG_END)) in reasons[case.path.name]
        assert " @ 0" in reasons[case.path.name]
    assert not wrong, "\n".join(wrong)


SMALL_FILES = {
    "an index of garbage": (f"{0:020d}.index", b"\xff" * 64),
    "a time index of garbage": (f"{0:020d}.timeindex", b"\x80" * 61),
    "a huge index of zeros": (f"{0:020d}.index", bytes(1 << 20)),
    "a snapshot of garbage": (f"{LOG_END:020d}.snapshot", b"\x00\x01\xff\xff"),
    "a snapshot of 2^31 producers": (
        f"{LOG_END:020d}.snapshot",
        b"\x00\x01" + bytes(4) + b"\x7f\xff\xff\xff",
    ),
    "a leader epoch file of garbage": ("leader-epoch-checkpoint", b"0\n2147483647\n1 1"),
    "metadata of garbage": ("partition.metadata", b"\xff\xfe version"),
}


@pytest.mark.parametrize("what", SMALL_FILES)
def test_damaged_small_files_crash_nothing(log_dir: Path, what: str) -> None:
    (case,) = write_damaged(log_dir, {what: around(sound_batch())})
    name, content = SMALL_FILES[what]
    (case.path / name).write_bytes(content)
    with capped(60):
        assert not check_segments(log_dir, [case])
        assert kafkalog.read_records(case.path).read_all().num_rows == 7
        code, document = run_json(
            ["compact", *APPLY, *topic_words(log_dir), "--log-dir", str(log_dir)]
        )
    assert code in (0, 1)
    status = {Path(entry["path"]).name: entry["status"] for entry in document["partitions"]}
    assert status["healthy-0"] == "compacted"
    # what it holds cannot matter, or the partition is refused
    assert status["damaged-0"] == ("compacted" if code == 0 else "refused")


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 4))]
)
def test_random_damage_is_named_and_left_alone(log_dir: Path, seed: int) -> None:
    contents = random_damage(random.Random(seed), count=75)
    wrong = check_all(log_dir, contents)
    assert not wrong, "\n".join(wrong)
