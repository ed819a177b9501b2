"""View `batches` without checksums reads headers only: the same rows as with them."""

from __future__ import annotations

from pathlib import Path

import kafkalog
from data.copy_samples import SAMPLES
from tests.support.log_builder import LogBuilder


def rows(path: Path, *, verify_checksums: bool) -> list[dict[str, object]]:
    table = kafkalog.read_batches(path, verify_checksums=verify_checksums)
    return table.drop_columns(["isValid"]).to_pylist()


def test_headers_alone_give_the_same_rows_of_the_samples() -> None:
    found = rows(SAMPLES / "broker", verify_checksums=False)
    assert len(found) > 200
    assert found == rows(SAMPLES / "broker", verify_checksums=True)


def test_headers_alone_give_the_same_rows_of_large_batches_and_a_torn_tail(log_dir: Path) -> None:
    log = LogBuilder(log_dir).segment()
    for _ in range(200):
        log.batch(("k", "v" * 40_000))
    log.batch(("k", "1")).torn(30)
    path = log.write()
    found = rows(path, verify_checksums=False)
    assert len(found) == 201
    assert found == rows(path, verify_checksums=True)
