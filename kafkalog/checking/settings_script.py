"""What was set and allowed in a cluster, as a script of Kafka's own tools: topics with their
settings, settings of brokers and groups, quotas, access control lists.

Secrets are not known to whoever reads a log without its keys, and none is written: what needs one
is named at the head of the script. Topics that brokers make by themselves are left to them.

Source: Kafka TopicCommand, ConfigCommand, AclCommand.
"""

from __future__ import annotations

import shlex
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafkalog import __version__
from kafkalog.checking.cluster_view import ClusterView
from kafkalog.cluster.moments import Row
from kafkalog.cluster.settings import DEFAULT, TOPIC
from kafkalog.format.secret_settings import REDACTED
from kafkalog.format.topics import INTERNAL_POLICIES
from kafkalog.texts import format_timestamp

# ConfigCommand's names of what settings belong to.
_ENTITIES = {
    TOPIC: "topics",
    "broker": "brokers",
    "client-metrics": "client-metrics",
    "group": "groups",
}
_QUOTA_PARTS = {"user": "user", "client-id": "client", "ip": "ip"}
_RESOURCES = {
    "TOPIC": "--topic",
    "GROUP": "--group",
    "CLUSTER": "--cluster",
    "TRANSACTIONAL_ID": "--transactional-id",
    "DELEGATION_TOKEN": "--delegation-token",
    "USER": "--user-principal",
}
# Signs that mean nothing to java.util.Properties, and that settings are full of.
_PLAIN = frozenset(f"{string.ascii_letters}{string.digits}.-_,/;*@+[]()")
_HEAD = """\
#   BOOTSTRAP=host:9092 [KAFKA_BIN=/opt/kafka/bin] [COMMAND_CONFIG=admin.properties] sh SCRIPT
# Each command is one that Kafka's tools know; run again it sets the same once more.
# The exit code is 1 where one of them failed: the others are run all the same.
: "${BOOTSTRAP:?host:port of a broker}"
failed=0
tool() {
  name=$1; shift
  "${KAFKA_BIN:+$KAFKA_BIN/}$name" --bootstrap-server "$BOOTSTRAP" \\
    ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} "$@" || failed=1
}
"""


@dataclass(frozen=True, slots=True)
class SettingsScript:
    """commands: how many of Kafka's tools are run; left_out: what the script cannot do, a line
    each.
    """

    text: str
    commands: int
    left_out: tuple[str, ...]


def settings_script(view: ClusterView, topics: Iterable[str] | None = None) -> SettingsScript:
    """Of what is in force where the view was taken; with `topics` of these alone, and nothing that
    is not a topic's.
    """
    chosen = None if topics is None else frozenset(topics)
    left_out: list[str] = []
    commands = [*_topics(view, chosen), *_configs(view, chosen, left_out)]
    if chosen is None:
        commands += [*_quotas(view, left_out), *_acls(view, left_out)]
        left_out += _credentials(view)
    moment = _moment(view)
    told = f"Of cluster {view.history.cluster_id}, {moment}; by kafkalog {__version__}"
    head = ["#!/bin/sh", _comment(told), *(_comment(f"Left out: {line}") for line in left_out)]
    text = "\n".join([*head, _HEAD, *commands, "exit $failed", ""])
    return SettingsScript(text, len(commands), tuple(left_out))


def _moment(view: ClusterView) -> str:
    rows = [row for name in ("configs", "topics") for row in view.history.rows.get(name, ())]
    last = max(rows, key=lambda row: row["offset"], default=None)
    if last is None:
        return "nothing is set"
    at = "" if last["timestampMs"] is None else f", {format_timestamp(last['timestampMs'])}"
    return f"last change of a setting or topic at offset {last['offset']}{at}"


def _in_force(view: ClusterView, table: str) -> list[Row]:
    return [row for row in view.history.rows.get(table, ()) if row["endOffset"] is None]


def _topics(view: ClusterView, chosen: frozenset[str] | None) -> Iterator[str]:
    partitions: dict[str, list[Row]] = {}
    for state in view.states:
        partitions.setdefault(state["topic"], []).append(state)
    for topic, states in sorted(partitions.items()):
        if _is_wanted(topic, chosen):
            copies = max(len(state["replicas"]) for state in states)
            yield _tool(
                *("kafka-topics.sh", "--create", "--if-not-exists", "--topic", topic),
                *("--partitions", str(len(states)), "--replication-factor", str(copies)),
            )


def _is_wanted(topic: str, chosen: frozenset[str] | None) -> bool:
    return topic not in INTERNAL_POLICIES if chosen is None else topic in chosen


def _configs(
    view: ClusterView, chosen: frozenset[str] | None, left_out: list[str]
) -> Iterator[str]:
    entities: dict[tuple[str, str | None], dict[str, str]] = {}
    for row in _in_force(view, "configs"):
        kind, entity = row["entityType"], row["entity"]
        is_wanted = _is_wanted(entity, chosen) if kind == TOPIC else chosen is None
        if not is_wanted:
            continue
        name = f"{row['key']} of {kind} {entity or DEFAULT}"
        if kind not in _ENTITIES:
            left_out.append(f"{name}, of a kind that Kafka's tools do not set")
        elif row["value"] == REDACTED:
            left_out.append(f"{name}, a secret")
        else:
            entities.setdefault((kind, entity), {})[row["key"]] = row["value"]
    in_order = sorted(entities.items(), key=lambda each: (each[0][0], each[0][1] or ""))
    for (kind, entity), settings in in_order:
        named = ("--entity-default",) if entity is None else ("--entity-name", entity)
        words = ("--alter", "--entity-type", _ENTITIES[kind], *named)
        # As properties: values may hold whatever the command line would take for its own.
        lines = [_property(key, value) for key, value in sorted(settings.items())]
        command = _tool("kafka-configs.sh", *words, "--add-config-file", "/dev/stdin")
        yield "\n".join([f"{command} <<'END'", *lines, "END"])


def _quotas(view: ClusterView, left_out: list[str]) -> Iterator[str]:
    entities: dict[tuple[str, str], list[str]] = {}
    for row in _in_force(view, "client_quotas"):
        entities.setdefault((row["entityType"], row["entity"]), []).append(
            f"{row['key']}={row['value']}"
        )
    for (types, names), quotas in sorted(entities.items()):
        kinds = types.split("/")
        parts = [names] if len(kinds) == 1 else names.split("/")
        if len(parts) != len(kinds) or not set(kinds) <= set(_QUOTA_PARTS):
            what = f"quota {', '.join(quotas)} of {types} {names}"
            left_out.append(f"{what}, whose parts are not told apart")
            continue
        words = ["--alter", "--add-config", ",".join(sorted(quotas))]
        for kind, part in zip(kinds, parts, strict=True):
            option = f"--{_QUOTA_PARTS[kind]}"
            words += [f"{option}-defaults"] if part == DEFAULT else [option, part]
        yield _tool("kafka-configs.sh", *words)


def _acls(view: ClusterView, left_out: list[str]) -> Iterator[str]:
    operations: dict[tuple[str, ...], list[str]] = {}
    names = ("resourceType", "resourceName", "patternType", "principal", "host", "permissionType")
    for row in _in_force(view, "acls"):
        operations.setdefault(tuple(row[name] for name in names), []).append(row["operation"])
    for key, own in sorted(operations.items()):
        acl = dict(zip(names, key, strict=True))
        known = acl["resourceType"] in _RESOURCES and acl["patternType"] in ("LITERAL", "PREFIXED")
        if not known or acl["permissionType"] not in ("ALLOW", "DENY"):
            left_out.append(
                f"{acl['permissionType']} {', '.join(sorted(own))} for {acl['principal']} on "
                f"{acl['resourceType']} {acl['resourceName']}, which Kafka's tools do not set"
            )
            continue
        yield _tool("kafka-acls.sh", *_acl_words(acl, own))


def _acl_words(acl: Mapping[str, str], operations: Sequence[str]) -> Iterator[str]:
    yield "--add"
    yield from (f"--{acl['permissionType'].lower()}-principal", acl["principal"])
    yield from (f"--{acl['permissionType'].lower()}-host", acl["host"])
    for operation in sorted(operations):
        # IDEMPOTENT_WRITE is the tool's IdempotentWrite.
        yield from ("--operation", "".join(map(str.capitalize, operation.split("_"))))
    yield _RESOURCES[acl["resourceType"]]
    if acl["resourceType"] != "CLUSTER":
        yield from (acl["resourceName"], "--resource-pattern-type", acl["patternType"].lower())


def _credentials(view: ClusterView) -> Iterator[str]:
    for row in _in_force(view, "scram"):
        yield (
            f"password of {row['user']} ({row['mechanism']}, {row['iterations']} iterations): "
            f"kafka-configs.sh --alter --add-config '{row['mechanism']}=[iterations="
            f"{row['iterations']},password=…]' --entity-type users --entity-name {row['user']}"
        )
    for row in _in_force(view, "tokens"):
        yield f"delegation token {row['tokenId']} of {row['owner']}: a new one is to be issued"


def _tool(*words: str) -> str:
    return shlex.join(("tool", *words))


def _property(key: str, value: str) -> str:
    """`key=value` as java.util.Properties reads it, in ASCII."""
    return f"{_escaped(key)}={_escaped(value)}"


def _escaped(text: str) -> str:
    data = text.encode("utf-16-be", "surrogatepass")
    units = [chr(data[at] << 8 | data[at + 1]) for at in range(0, len(data), 2)]
    return "".join(c if c in _PLAIN else f"\\u{ord(c):04x}" for c in units)


def _comment(text: str) -> str:
    """One line, whatever is in it."""
    return "# " + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
