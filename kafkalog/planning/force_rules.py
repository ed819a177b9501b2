"""The rules that `--force` lifts, by their names."""

from __future__ import annotations

from typing import Final

FORCE_NULL_KEYS: Final = "null-keys"
FORCE_CONFIG_DIFFERS: Final = "config-differs"
FORCE_NOTHING_DIRTY: Final = "nothing-dirty"
FORCE_CLOCK_DIFFERS: Final = "clock-differs"
FORCE_METADATA_LEFT: Final = "metadata-left"
FORCE_LOST_PARTITIONS: Final = "lost-partitions"
# A rule that has nothing to lift is accepted: scripts may always name it.
KNOWN_FORCE_RULES: Final = frozenset(
    {
        FORCE_NULL_KEYS, FORCE_CONFIG_DIFFERS, FORCE_NOTHING_DIRTY, FORCE_CLOCK_DIFFERS,
        FORCE_METADATA_LEFT, FORCE_LOST_PARTITIONS,
    }
)  # fmt: skip
