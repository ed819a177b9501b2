"""What `kafkalog audit` says below its tables."""

import pytest

from kafkalog.cli.audit_tables import capacity_notes

TIB = 1 << 40


@pytest.mark.parametrize(
    ("growth", "days", "words"),
    [
        (107_374_182_400, 30.72, "100.0 GiB more a day: full in 30 d 17 h"),
        (0, None, "it does not grow"),
        (None, None, "how fast it grows is not known: no earlier audit of it is kept"),
        (None, 0.0, "full"),
    ],
)
def test_a_log_dir_of_known_size_is_told_with_its_outlook(
    growth: int | None, days: float | None, words: str
) -> None:
    row = {
        "path": "/data/a",
        "bytes": TIB,
        "capacityBytes": 4 * TIB,
        "growthBytesPerDay": growth,
        "daysUntilFull": days,
    }
    assert capacity_notes([row, {**row, "capacityBytes": None}]) == [
        f"/data/a: 1.0 TiB of 4.0 TiB, {words}"
    ]
