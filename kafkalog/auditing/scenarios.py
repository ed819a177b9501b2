"""Other settings and later times, as `--what-if` and `--at` name them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafkalog.errors import InvalidConfigError
from kafkalog.planning.log_config import LogConfig
from kafkalog.planning.policy_evidence import POLICY, UNKNOWN
from kafkalog.planning.setting_units import plain_value

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
# Ages from now at which a curve has a point, where none were asked for.
DEFAULT_STEPS_MS = (
    0, _HOUR_MS, 6 * _HOUR_MS,
    *(days * _DAY_MS for days in (1, 2, 3, 5, 7, 10, 14, 21, 30, 60, 90)),
)  # fmt: skip

MODELLED = frozenset(
    {"cleanup.policy", "retention.ms", "retention.bytes", "local.retention.ms",
     "local.retention.bytes", "remote.storage.enable", "remote.log.copy.disable"}
)  # fmt: skip

SOURCE = "what-if"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Settings under Kafka's names with plain values; none at all is "as configured"."""

    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """`retention.ms=259200000, segment.bytes=268435456`; empty as configured."""
        return ", ".join(f"{key}={value}" for key, value in self.settings.items())

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """The settings that leave the curve as it is: see `what_if`."""
        return tuple(key for key in self.settings if key not in MODELLED)

    def config(self, configured: LogConfig) -> LogConfig:
        """A topic's settings with these in place of its own.

        InvalidConfigError where a broker would refuse the change: a combination it does not take.
        """
        if not self.settings:
            return configured
        given = configured.given()
        if configured.source(POLICY) == UNKNOWN:
            given.pop(POLICY)  # what would be under Kafka's default: nothing is advised by it
        sources = {key: configured.source(key) for key in given}
        if "segment.bytes" in self.settings:
            given.pop("internal.segment.bytes", None)
            sources.pop("internal.segment.bytes", None)
        sources |= dict.fromkeys(self.settings, SOURCE)
        return LogConfig.from_properties({**given, **self.settings}, source=sources)


def times_from(now_ms: int, wanted: Iterable[tuple[bool, int]]) -> tuple[int, ...]:
    """Times in ms, ascending: now, then (whether it counts from now, ms) each; without any the
    default ones.

    InvalidConfigError for a time before now: what is deleted does not come back.
    """
    times = sorted({now_ms + ms if is_from_now else ms for is_from_now, ms in wanted})
    if times and times[0] < now_ms:
        raise InvalidConfigError(f"--at {times[0]} is before --now {now_ms}")
    if not times:
        return tuple(now_ms + step for step in DEFAULT_STEPS_MS)
    return tuple(sorted({now_ms, *times}))


def parse_scenarios(texts: Iterable[str]) -> tuple[Scenario, ...]:
    """Scenarios of `KEY=VALUE` texts, "as configured" first. All are one scenario, until a key
    comes again: that begins the next one, so `retention.ms=3d segment.ms=1d retention.ms=1d` are
    two.

    InvalidConfigError for an unknown key or a value outside Kafka's limits.
    """
    found: list[dict[str, str]] = []
    for text in texts:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals:
            raise InvalidConfigError(f"expected KEY=VALUE, found {text!r}")
        plain = plain_value(key, value)
        LogConfig.from_properties({key: plain}, source=SOURCE, is_partial=True)
        if not found or key in found[-1]:
            found.append({})
        found[-1][key] = plain
    return (Scenario(), *map(Scenario, found))
