"""The page says what the document says: every number, whatever the names, however much there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.report.figures import bytes_text, duration_text, time_text
from kafkalog.report.page import MAX_PAGE_BYTES, render_page, write_page
from kafkalog.report.timeline import timeline
from kafkalog.report.treemap import treemap
from tests.report.evaluate import evaluate, numbers_of
from tests.report.example import DAY_MS, NOW_MS, example_document

UNITS = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3, "TiB": 4, "PiB": 5, "EiB": 6}
HOSTILE = (
    '"><script>alert(1)</script>',
    "<img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}",
    "a'b&amp;c",
    "]]>--><!--",
    "\u202egnp.exe",
    "naïve-\udcff-name",
    "x" * 249,
)


def empty_document() -> dict[str, Any]:
    document = example_document()
    for name, value in document.items():
        if isinstance(value, list):
            document[name] = []
    return document | {
        "policy": None,
        "history": None,
        "kinds": {},
        "totals": dict.fromkeys(document["totals"], 0),
    }


def assert_numbers_equal(page: str, document: dict[str, Any]) -> int:
    found = numbers_of(page)
    for shown in found:
        value = evaluate(document, shown.at)
        value = ", ".join(value) if isinstance(value, list) else value
        assert shown.value == str(value), shown
        if isinstance(value, str) and value:
            assert shown.text == value, shown
        elif re.fullmatch(r"−?[\d.]+ [KMGTPE]?i?B", shown.text):
            number, unit = shown.text.replace("−", "-").split()
            assert float(number) * 1024 ** UNITS[unit] == pytest.approx(value, rel=0.006), shown
        elif re.fullmatch(r"-?[\d,]+", shown.text):
            assert int(shown.text.replace(",", "")) == value, shown
    return len(found)


@pytest.mark.parametrize("topics", [1, 2, 60])
def test_every_number_is_the_documents(topics: int) -> None:
    document = example_document(topics)
    assert assert_numbers_equal(render_page(document), document) > 100 * topics


def test_a_wrong_number_would_be_seen() -> None:
    document = example_document()
    page = render_page(document)
    document["totals"]["bytes"] += 1
    with pytest.raises(AssertionError, match=r"totals\.bytes"):
        assert_numbers_equal(page, document)


def test_plain_text_of_the_page_has_no_other_numbers() -> None:
    """What is no label, date of an axis or text of a finding says where it is from."""
    document = example_document(findings=0)
    body = render_page(document).partition("</style>")[2].partition("<script>")[0]
    body = re.sub(r"<(\w+)[^>]*data-at=[^>]*>.*?</\1>", "", body, flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", " ", body)
    text = re.sub(r"\d{4}-\d\d-\d\d", "", text)  # the ends of axes
    text = re.sub(r"\d+ (ms|s|min|h|d|y)\b", "", text)  # ages and what rules ask for
    allowed = ("kafkalog 0", "retention.ms=", "segment.bytes=", "topic-")
    words = [w for w in re.findall(r"\S*\d\S*", text) if not w.startswith(allowed)]
    assert [w for w in words if w != "0" and not re.fullmatch(r"\d+\.\d+\.\d+\S*", w)] == []


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    document = example_document()
    for row in [*document["topics"], *document["timeline"], *document["ageHistogram"]]:
        if row["topic"] == "orders":
            row["topic"] = name
    for entry in document["whatIf"]:
        for point in entry["points"]:
            point["topic"] = name if point["topic"] == "orders" else point["topic"]
    document["findings"][0] |= {"topic": name, "text": name, "id": name}
    document["kinds"][name] = {"means": name, "broker": name, "remedy": name}
    document["logDirs"][0]["path"] = name
    document["leftovers"][0]["path"] = name
    page = render_page(document)
    page.encode("utf-8")
    assert len(re.findall("<script", page)) == 1
    assert "<img" not in page
    assert "49" not in [shown.text for shown in numbers_of(page) if shown.at.endswith("topic")]
    if "\udcff" not in name:
        assert_numbers_equal(page, document)


def test_everything_external_is_forbidden() -> None:
    page = render_page(example_document())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src &#39;none&#39;;")
    assert "unsafe" not in policy
    assert "http" not in page.replace("http-equiv", "")
    assert not re.search(r"\sstyle=|\son\w+=", page)


def test_a_page_of_hundreds_of_topics_stays_small() -> None:
    document = example_document(topics=300, findings=5_000)
    page = render_page(document)
    assert len(page.encode()) <= MAX_PAGE_BYTES
    assert "the first" in page
    assert_numbers_equal(page, document)


def test_nothing_to_tell_is_a_page_too() -> None:
    document = empty_document()
    page = render_page(document)
    assert "nothing found" in page
    assert_numbers_equal(page, document)


def test_a_page_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidConfigError, match=r"nowhere.*cannot be written"):
        write_page(example_document(), str(tmp_path / "nowhere" / "audit.html"))


def test_areas_are_bytes() -> None:
    tiles = treemap(example_document(30)["topics"])
    total = sum(tile.figure.value for tile in tiles)
    for tile in tiles:
        assert min(tile.x, tile.y) >= 0
        assert max(tile.x + tile.width, tile.y + tile.height) <= 100.01
        assert tile.width * tile.height / 10_000 == pytest.approx(
            tile.figure.value / total, abs=2e-4
        )
        assert sum(part.figure.value for part in tile.parts) == tile.figure.value


@pytest.mark.parametrize("sizes", [[1, 10**15], [1], [0, 0], [10**18] * 3, [1] * 400, []])
def test_a_treemap_of_any_sizes(sizes: list[int]) -> None:
    topics = [{"topic": str(n), "bytesByKind": {"log": size}} for n, size in enumerate(sizes)]
    tiles = treemap(topics)
    assert sum(tile.figure.value for tile in tiles) == sum(sizes)
    assert len(tiles) <= 49


@pytest.mark.parametrize(
    ("days", "bars", "step"),
    [
        ([0], 1, 1),
        ([-5, 0], 2, 1),
        ([-5], 1, 1),
        ([47], 48, 1),
        ([48], 7, 7),
        ([400], 14, 30),
        ([90_000], 49, 30),
    ],
)
def test_bars_hold_all_bytes(days: list[int], bars: int, step: int) -> None:
    today = NOW_MS // DAY_MS * DAY_MS
    rows = [{"topic": "t", "dayMs": today + d * DAY_MS, "bytes": 5, "segments": 1} for d in days]
    chart = timeline(rows, NOW_MS)
    assert (len(chart.bars), chart.step_days) == (bars + (min(days) < 0 and max(days) < 0), step)
    assert sum(bar.figure.value for bar in chart.bars) == 5 * len(days)


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (bytes_text(0), "0 B"),
        (bytes_text(1023), "1023 B"),
        (bytes_text(1536), "1.50 KiB"),
        (bytes_text(-(2**30)), "−1.00 GiB"),
        (bytes_text(2**63 - 1), "8.00 EiB"),
        (time_text(0), "1970-01-01 00:00"),
        (time_text(-1), "–"),
        (time_text(2**62), f"{2**62:,} ms"),
        (duration_text(0), "0 ms"),
        (duration_text(90_000), "1 min 30 s"),
        (duration_text(7 * DAY_MS), "7 d"),
        (duration_text(400 * DAY_MS), "1 y 35 d"),
        (duration_text(2**63 - 1), "for ever"),
    ],
)
def test_numbers_are_written_for_people(made: str, text: str) -> None:
    assert made == text
