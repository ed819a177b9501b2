"""The page: sections out of the document, put into the templates, small enough to be sent around.

    write_page(document, "audit.html")

Only what is named here gets onto the page; keys and values of records are not among it. Long lists
are cut, the largest first, until the page is below MAX_PAGE_BYTES, and the page says so.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kafkalog import __version__
from kafkalog.errors import InvalidConfigError
from kafkalog.report import tables
from kafkalog.report.ages import histograms
from kafkalog.report.curves import curve_charts
from kafkalog.report.figures import (
    bytes_figure,
    condition,
    count_figure,
    time_figure,
    time_text,
)
from kafkalog.report.marks import num, text, tip
from kafkalog.report.timeline import timeline
from kafkalog.report.treemap import KINDS, treemap

MAX_PAGE_BYTES = 2_900_000
_FIRST_ROWS = 1500
_LEAST_ROWS = 10
_SEVERITIES = ("error", "warning", "info")

Document = Mapping[str, Any]


def write_page(document: Document, path: str) -> None:
    """Render and write. InvalidConfigError where the file cannot be written."""
    text = render_page(document)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"the page cannot be written: {error.strerror or error}"
        raise InvalidConfigError(reason, path=path) from None


def render_page(document: Document) -> str:
    """The page as text; it can be encoded whatever the names on the disk are."""
    template = _environment().get_template("page.html")
    most = _FIRST_ROWS
    while True:
        page = _page(document, most)
        made = template.render(page=page).encode("utf-8", "backslashreplace")
        if len(made) <= MAX_PAGE_BYTES or most <= _LEAST_ROWS:
            return made.decode()
        most //= 2


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kafkalog.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"num": num, "tip": tip, "text": text}
    return environment


@cache
def _asset(name: str) -> str:
    return files("kafkalog.report").joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _page(document: Document, most: int) -> dict[str, Any]:
    style, script = _asset("page.css"), _asset("page.js")
    ages = document.get("ageHistogram") or []
    what_if = document.get("whatIf") or []
    findings = [*document["findings"]]
    topics = tables.table(
        "topics", "Bytes by topic", "topics", document["topics"], tables.TOPIC_COLUMNS,
        most=most, largest_by="bytes",
    )  # fmt: skip
    page = {
        "version": __version__,
        "style": Markup(style),
        "script": Markup(script),
        "security_policy": (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        "now": time_figure(document["nowMs"], "nowMs"),
        "kafka_version": document["kafkaVersion"],
        "tiles": _tiles(document),
        "findings": _findings(findings, most),
        "findings_count": count_figure(len(findings), "count(findings)"),
        "findings_left_out": len(findings) > most,
        "severities": [s for s in _SEVERITIES if any(f["severity"] == s for f in findings)],
        "kinds": [{"id": name, **kind} for name, kind in document["kinds"].items()],
        "policy": _policy(document.get("policy"), most),
        "treemap": treemap(document["topics"]),
        "byte_kinds": KINDS,
        "topics": topics,
        "timeline": timeline(document["timeline"], document["nowMs"]),
        "timeline_table": tables.timeline_table(document["timeline"], most),
        "curves": [_with_ends(chart) for chart in curve_charts(what_if)],
        "curves_table": tables.curves_table(what_if, most) if what_if else None,
        "ages": histograms(ages, document["topics"]),
        "ages_table": tables.ages_table(ages, most),
        "log_dirs": tables.table(
            "log-dirs",
            "Log dirs",
            "logDirs",
            document["logDirs"],
            tables.LOG_DIR_COLUMNS,
            most=most,
        ),
        "more": _more(document, most),
    }
    page["contents"] = _contents(page)
    return page


def _tiles(document: Document) -> list[dict[str, Any]]:
    totals = document["totals"]
    rows = [
        ("", "Bytes", bytes_figure(totals["bytes"], "totals.bytes")),
        ("", "Topics", count_figure(totals["topics"], "totals.topics")),
        ("", "Partitions", count_figure(totals["partitions"], "totals.partitions")),
        ("", "Segments", count_figure(totals["segments"], "totals.segments")),
        ("", "Records", count_figure(totals["records"], "totals.records")),
        ("", "Due now", bytes_figure(totals["dueBytes"], "totals.dueBytes")),
        ("", "Held back", bytes_figure(totals["blockedBytes"], "totals.blockedBytes")),
        ("", "Leftovers", bytes_figure(totals["leftoverBytes"], "totals.leftoverBytes")),
    ]
    for severity, name in (("error", "Errors"), ("warning", "Warnings")):
        count = sum(finding["severity"] == severity for finding in document["findings"])
        at = f"count(findings{condition('severity', '=', severity)})"
        rows.append((severity if count else "good", name, count_figure(count, at)))
    return [{"tone": tone, "name": name, "figure": figure} for tone, name, figure in rows]


def _findings(findings: Sequence[Document], most: int) -> list[dict[str, Any]]:
    order = sorted(
        range(len(findings)), key=lambda n: (_SEVERITIES.index(findings[n]["severity"]), n)
    )
    return [{"at": f"findings.{n}", "fix": None, **findings[n]} for n in order[:most]]


def _policy(policy: Document | None, most: int) -> dict[str, Any] | None:
    if policy is None:
        return None
    columns = tables.POLICY_COLUMNS
    rules = tables.table("rules", "Rules", "policy.rules", policy["rules"], columns, most=most)
    return {
        "file": policy["file"],
        "violations": count_figure(policy["violations"], "policy.violations"),
        "rules": rules,
    }


def _with_ends(chart: Any) -> dict[str, Any]:
    times = [point.at.value for curve in chart.curves for point in curve.points]
    return {
        "topic": chart.topic,
        "curves": chart.curves,
        "most": chart.most,
        "first": time_text(min(times, default=None), "%Y-%m-%d"),
        "last": time_text(max(times, default=None), "%Y-%m-%d"),
    }


def _more(document: Document, most: int) -> list[tables.Table]:
    """Lists that have no chart, where there is something in them."""
    history = document.get("history") or {}
    since = document.get("since") or {"topics": [], "settings": [], "findings": []}
    found = (
        ("since-topics", "Bytes since the earlier audit", "since.topics",
         tables.SINCE_TOPIC_COLUMNS, "bytes", since["topics"]),
        ("since-settings", "Settings that changed", "since.settings",
         tables.SINCE_SETTING_COLUMNS, None, since["settings"]),
        ("since-findings", "Findings since the earlier audit", "since.findings",
         tables.SINCE_FINDING_COLUMNS, None, since["findings"]),
        ("contents", "What the records are", "contents", tables.CONTENT_COLUMNS, None,
         document.get("contents") or []),
        ("leftovers", "Leftovers", "leftovers", tables.LEFTOVER_COLUMNS, "bytes",
         document.get("leftovers") or []),
        ("safe-offsets", "Read by every group", "safeDeleteOffsets", tables.SAFE_COLUMNS, "bytes",
         document.get("safeDeleteOffsets") or []),
        ("growth", "Growth", "history.growth", tables.GROWTH_COLUMNS, "bytesPerDay",
         history.get("growth") or []),
    )  # fmt: skip
    return [
        tables.table(id, name, at, rows, columns, most=most, largest_by=largest_by)
        for id, name, at, columns, largest_by, rows in found
        if rows
    ]


def _contents(page: Mapping[str, Any]) -> list[tuple[str, str]]:
    named = [
        ("findings", "Findings", True),
        ("policy", "Policy", page["policy"]),
        ("bytes", "Bytes", True),
        ("timeline", "What goes when", True),
        ("what-if", "What if", page["curves"]),
        ("ages", "Ages", page["ages"]),
        ("disks", "Log dirs", True),
    ]
    found = [(id, name) for id, name, is_there in named if is_there]
    return [*found, *((table.id, table.name) for table in page["more"])]
