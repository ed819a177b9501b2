"""What a notebook shows of a plan."""

from __future__ import annotations

import html
import re

from tests.planning.facts import HOUR_MS, partition, plan
from tests.planning.test_retention import aged
from tests.planning.test_retention import plan as plan_of_retention


def test_a_compaction_shows_its_groups() -> None:
    made = plan(partition(cleaner=30))
    page = made._repr_html_()
    assert html.escape(made.explain()) in page
    weights = [int(weight) for weight in re.findall(r"flex:(\d+) 0", page)]
    assert weights == [group.size_in_bytes for group in made.groups] != []


def test_a_compaction_that_does_nothing_shows_why_and_no_map() -> None:
    made = plan(partition(cleaner=40))
    page = made._repr_html_()
    assert made.reason in html.unescape(page)
    assert "flex:" not in page


def test_retention_shows_what_goes_and_the_rule_that_keeps_the_rest() -> None:
    made = plan_of_retention(aged(3 * HOUR_MS, 2 * HOUR_MS, 0), f"retention.ms={HOUR_MS}")
    page = made._repr_html_()
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", line) for line in page.split("<tr>")[2:]]
    assert [row[1] for row in rows] == ["goes", "goes", "kept"]
    assert [row[4] for row in rows] == [str(v.rule) for v in (*made.deleted, *made.kept)]
