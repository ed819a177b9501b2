"""Settings of topics against a file that declares them.

A declared setting is compared with what is in force: the topic's own, else Kafka's default where
it is known here. What a topic of the file has set beyond what is declared is drift as well.
Numbers, booleans and lists are compared as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kafkalog.checking.cluster_view import MIN_ISR, ClusterView
from kafkalog.checking.finding import Finding
from kafkalog.planning.log_config import LogConfig

Declared = Mapping[str, Mapping[str, str]]

EVERY_TOPIC = "*"


def check_drift(view: ClusterView, declared: Declared) -> Iterator[Finding]:
    """Every topic of the cluster, then those that only the file has."""
    defaults = {**LogConfig().to_properties(), MIN_ISR: view.static.get(MIN_ISR, "1")}
    everybody = declared.get(EVERY_TOPIC, {})
    topics = sorted({state["topic"] for state in view.states})
    for topic in topics:
        place = {"topic": topic, "partition": None}
        if topic not in declared and not everybody:
            yield view.finding("topic-undeclared", "the file has no table of it", place)
            continue
        own = view.own_configs(topic)
        wanted = {**everybody, **declared.get(topic, {})}
        for key, value in sorted(wanted.items()):
            in_force = own.get(key, defaults.get(key))
            if in_force is None or not _same(value, in_force):
                has = "nothing is set" if in_force is None else f"it is {in_force}"
                if key not in own and in_force is not None:
                    has += " by default"
                yield view.finding("config-drift", f"{key}: {value} is declared, {has}", place)
        for key in sorted(own.keys() - wanted.keys()):
            text = f"{key}: {own[key]} is set and not declared"
            yield view.finding("config-drift", text, place)
    for topic in sorted(declared.keys() - {EVERY_TOPIC, *topics}):
        place = {"topic": topic, "partition": None}
        yield view.finding("topic-absent", "the cluster has no such topic", place)


def _same(one: str, other: str) -> bool:
    return _value(one) == _value(other)


def _value(text: str) -> object:
    parts = sorted(part.strip() for part in text.split(","))
    if len(parts) > 1:
        return tuple(parts)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text.strip().lower()
