"""The page of a disk whose contents were read and simulated: every age there is has its bar."""

from __future__ import annotations

from pathlib import Path

from kafkalog.auditing.scenarios import parse_scenarios
from kafkalog.report.page import render_page
from tests.auditing.documents import audited_document
from tests.support.log_builder import START_MS, LogBuilder

DAY_MS = 86_400_000


def test_ages_without_an_end_in_the_future_and_without_a_time_are_shown(log_dir: Path) -> None:
    log = LogBuilder(log_dir)
    log.segment().batch(("k", "v"), timestamp=START_MS)
    log.batch(("k", "v"), timestamp=START_MS + 4000 * DAY_MS)
    log.batch(("k", "v"), timestamp=-1)
    log.segment().batch(("k", "v"), timestamp=START_MS + 2000 * DAY_MS)
    log.write()
    scope = {
        "reads_records": True,
        "reads_keys": True,
        "scenarios": parse_scenarios(["retention.ms=1d", "retention.ms=1h"]),
    }
    document = audited_document(log_dir, now_ms=START_MS + 2001 * DAY_MS, scope=scope)
    assert [(row["fromMs"], row["toMs"]) for row in document["ageHistogram"]] == [
        (-2, -1), (-1, 0), (DAY_MS, 2 * DAY_MS), (1825 * DAY_MS, -1),
    ]  # fmt: skip
    page = render_page(document)
    for label in ("without a time", "in the future", "1 d – 2 d", "retention.ms=86400000"):
        assert label in page
