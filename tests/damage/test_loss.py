"""Random mutations of a log dir: no record is missing without a word. `make fuzz WHAT=loss` tries
as many as you like.
"""

from __future__ import annotations

import struct

import pytest

from kafkalog.format.record import Record
from kafkalog.format.record_batch import pack_batch
from tests.fuzz.loss import LossTally, loss_trial
from tests.reference.loss import judge_segment

BATCHES = [pack_batch([Record(n, 5, b"key", b"value %d" % n)]) for n in range(4)]
LOG = b"".join(BATCHES)
SIZE = len(BATCHES[0])


@pytest.mark.parametrize("seed", range(4))
def test_no_mutation_hides_a_record_without_a_word(seed: int) -> None:
    tally, wrong = LossTally(), list[str]()
    with loss_trial() as trial:
        for number in range(40):
            wrong += trial.try_one(seed * 1000 + number, tally)
    assert not wrong, "\n".join(wrong)
    assert tally.proven >= 10


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
