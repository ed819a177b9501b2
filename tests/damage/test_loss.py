"""Random mutations of a log dir: no record is missing without a word. `make fuzz WHAT=loss` tries
as many as you like.
"""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.fuzz.loss import LossTally, loss_trial
from tests.support.log_builder import LogBuilder
from tests.support.reference.loss import judge_segment
from tests.support.reference.missing import Proof, missing

BATCHES = [pack_batch([Record(n, 5, b"key", b"value %d" % n)]) for n in range(4)]
LOG = b"".join(BATCHES)
SIZE = len(BATCHES[0])


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (2, 3))]
)
def test_no_mutation_hides_a_record_without_a_word(seed: int) -> None:
    tally, wrong = LossTally(), list[str]()
    with loss_trial() as trial:
        for number in range(40):
            wrong += trial.try_one(seed * 1000 + number, tally)
    assert not wrong, "\n".join(wrong)
    assert tally.proven >= 10
    assert tally.proven_elsewhere >= 1


def test_the_judge_itself() -> None:
    assert judge_segment(LOG, 0, 4).proof == ""
    assert len(judge_segment(LOG, 0, None).sound) == 4
    assert judge_segment(LOG[:-1], 0, None).proof == ""  # a torn tail
    assert "another segment" in judge_segment(LOG[:-1], 0, 4).proof
    assert judge_segment(LOG + bytes(50), 0, None).proof == ""
    assert judge_segment(LOG + bytes(50), 0, 4).proof == ""
    assert "zeros" in judge_segment(LOG + bytes(50), 0, 9).proof
    assert "no batch from" in judge_segment(LOG[:SIZE] + LOG[SIZE + 1 :], 0, None).proof
    flipped = LOG[:-1] + bytes([LOG[-1] ^ 1])
    assert "not sound" in judge_segment(flipped, 0, None).proof
    swapped = BATCHES[1] + BATCHES[0] + BATCHES[2]
    assert "behind" in judge_segment(swapped, 0, None).proof
    long = bytearray(LOG)
    struct.pack_into(">i", long, SIZE + 8, 2**24)
    verdict = judge_segment(bytes(long), 0, None)
    assert (len(verdict.sound), verdict.proof) == (3, f"no batch from {SIZE} to {2 * SIZE}")


def test_the_judge_of_what_other_files_prove(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path / "logs", index_interval_bytes=10)
    (tmp_path / "logs").mkdir()
    for number in range(9):
        if number % 3 == 0:
            log.segment()
        log.batch((f"k{number}", "v"))
    path = log.write()
    files = {file: file.read_bytes() for file in path.iterdir()}

    def proofs(*gone: str, cut: int | None = None) -> list[Proof]:
        for file, content in files.items():
            file.write_bytes(content)
        for name in gone:
            (path / name).unlink()
        logs = sorted(path.glob("*.log"))
        if cut is not None:
            logs[-1].write_bytes(logs[-1].read_bytes()[:cut])
        ends = [int(each.stem) for each in logs[1:]]
        judged = zip(logs, [*ends, None], strict=True)
        return missing(path, [judge_segment(f.read_bytes(), int(f.stem), end) for f, end in judged])

    first, middle, last = (f"{base:020d}" for base in (0, 3, 6))
    size = log.segments[-1].batches[1][0]
    assert proofs() == []
    assert proofs(f"{first}.log") == [Proof(0, 3, "leader epochs below the first segment")]
    assert proofs(f"{middle}.log") == [Proof(3, 6, "a gap between segments")]
    assert proofs(f"{last}.log") == [Proof(6, 9, "witnesses behind the log's end")]
    assert proofs(cut=size) == [Proof(7, 9, "witnesses behind the log's end")]
    # the indexes of the first one alone prove it
    gone = f"{first}.log", "leader-epoch-checkpoint"
    assert proofs(*gone) == [Proof(0, 3, "an index without its .log, in front")]
    assert proofs(*gone, f"{first}.index", f"{first}.timeindex") == []
