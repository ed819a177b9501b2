"""A plan as a notebook shows it: what `_repr_html_` of a compaction's and a retention's returns."""

from __future__ import annotations

from kafkalog.html.pieces import Part, Piece, render
from kafkalog.planning.compaction_plan import CompactionPlan
from kafkalog.planning.retention_plan import RetentionPlan, SegmentVerdict
from kafkalog.texts import format_bytes, format_timestamp


def compaction_plan_html(plan: CompactionPlan) -> str:
    """The plan in words, a map of the segments that are rewritten, a row a group of them."""
    return render(
        Piece(
            "Compaction",
            plan.explain(),
            parts=[
                Part(
                    f"from offset {group.base_offset:,}: {len(group.sources)} segments, "
                    f"{format_bytes(group.size_in_bytes)}",
                    max(1, group.size_in_bytes),
                    "rewritten",
                )
                for group in plan.groups
            ],
            map_label=f"{len(plan.groups)} groups of segments by size",
            columns=("into base offset", "segments", "bytes before"),
            rows=[[g.base_offset, len(g.sources), g.size_in_bytes] for g in plan.groups],
        )
    )


def retention_plan_html(plan: RetentionPlan) -> str:
    """The plan in words, a map of all segments, and a row a segment with the rule that decides."""
    judged = [(verdict, "goes") for verdict in plan.deleted]
    judged += [(verdict, "kept") for verdict in plan.kept]
    return render(
        Piece(
            "Retention",
            plan.explain(),
            parts=[
                Part(_label(verdict), max(1, verdict.size_in_bytes), kind)
                for verdict, kind in judged
            ],
            map_label=f"{len(judged)} segments by size",
            columns=("base offset", "", "bytes", "time", "rule", "reason"),
            rows=[
                [
                    verdict.base_offset, kind, verdict.size_in_bytes, _time(verdict),
                    str(verdict.rule), verdict.reason,
                ]
                for verdict, kind in judged
            ],
        )
    )  # fmt: skip


def _label(verdict: SegmentVerdict) -> str:
    return f"from offset {verdict.base_offset:,}: {format_bytes(verdict.size_in_bytes)}"


def _time(verdict: SegmentVerdict) -> str:
    return format_timestamp(verdict.timestamp_ms) if verdict.timestamp_ms >= 0 else "-"
