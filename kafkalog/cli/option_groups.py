"""Under which headings of a verb's help its options stand. Those that are in no list here are the
verb's own.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkalog.options import Option

LOOKED_AT = "what to look at"
OF_VERB = "of this verb"

GROUPS = {
    LOOKED_AT: (
        "--log-dir", "--topic", "--topic-partition", "--files", "--key", "--offset", "--group",
        "--zookeeper-dir", "--zk-root", "--remote-dir", "--remote-layout", "--remote-key",
    ),
    "which settings, which time": (
        "--config", "--config-file", "--server-properties", "--kafka-version", "--now",
        "--high-watermark", "--policy",
    ),
    OF_VERB: (),
    "carrying it out": (
        "--in-place", "--into", "--apply", "--force", "--output", "--no-undo", "--run-dir",
        "--verify", "--swap-per-group", "--on-corrupt-batch", "--table",
    ),
    "how much at once": (
        "--workers", "--memory", "--strategy", "--dedupe-buffer-size", "--max-bytes",
        "--max-minutes", "--max-bytes-per-second", "--max-batch-bytes", "--remote-cache-bytes",
    ),
    "what is printed": (
        "--json", "--format", "--payload", "--wide", "--columns", "--utc", "--redact", "--report",
    ),
}  # fmt: skip


def in_groups(options: Iterable[Option]) -> list[tuple[str, list[Option]]]:
    """(heading, options in the table's order), without empty ones."""
    titles = {name: title for title, names in GROUPS.items() for name in names}
    found: dict[str, list[Option]] = {title: [] for title in GROUPS}
    for option in options:
        found[titles.get(option.name, OF_VERB)].append(option)
    return [(title, own) for title, own in found.items() if own]
