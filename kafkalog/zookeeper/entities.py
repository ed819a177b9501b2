"""Settings and ACLs over time: spans in which something held."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from urllib.parse import unquote

from kafkalog.format.secret_settings import REDACTED, is_secret
from kafkalog.zookeeper.changes import ChangeKind, NodeChange
from kafkalog.zookeeper.cluster_changes import Problems, Row, TableBuilder, when
from kafkalog.zookeeper.znodes import (
    DEFAULT_ENTITY,
    AclValue,
    parse_acls,
    parse_config,
    protocol_name,
)

_ENTITY_TYPES = {
    "topics": "topic",
    "clients": "client-id",
    "users": "user",
    "brokers": "broker",
    "ips": "ip",
}
_QUOTAS = frozenset(
    {
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    }
)
_SCRAM = "SCRAM-"
_ITERATIONS = re.compile(r"(?:^|,)iterations=(?P<count>[0-9]{1,9})(?:,|$)")


class Spans(TableBuilder):
    """Rows that are open until the same thing is gone or has another value."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._open: dict[str, dict[Hashable, Row]] = {}

    def hold(self, change: NodeChange, things: Mapping[Hashable, Row]) -> None:
        """From a change on a node holds exactly these, a row each."""
        alive = self._open.setdefault(change.path, {})
        for thing in [thing for thing in alive if thing not in things]:
            alive.pop(thing).update(endTimestampMs=change.time_ms, endOffset=change.zxid)
        for thing, row in things.items():
            if thing not in alive:
                alive[thing] = {**row, **when(change)}
                self.rows.append(alive[thing])


class EntityConfigs(Spans):
    """`/config/<kind>/<entity>`, of users with clients two levels deeper: settings of topics and
    brokers, quotas, and the credentials of users, each in a table of its own. A subclass says which
    are its rows.
    """

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        entity = _entity(parts)
        if entity is None or change.kind is ChangeKind.ACL:
            return
        is_gone = change.kind is ChangeKind.DELETED
        config = {} if is_gone else self.problems.parsed(change, parse_config)
        if config is not None:
            # By key and true value: a secret that is changed is another row, though shown alike.
            rows = {(key, text): self.row(*entity, key, text) for key, text in config.items()}
            self.hold(change, {thing: row for thing, row in rows.items() if row is not None})

    def row(self, type_: str, name: str, key: str, text: str) -> Row | None:
        """The columns of a setting, None for one of another table."""
        raise NotImplementedError


class Configs(EntityConfigs):
    """Table `configs`."""

    def row(self, type_: str, name: str, key: str, text: str) -> Row | None:
        if key in _QUOTAS or key.startswith(_SCRAM):
            return None
        entity = None if name == DEFAULT_ENTITY else name
        value = REDACTED if is_secret(key) else text
        return {"entityType": type_, "entity": entity, "key": key, "value": value}


class ClientQuotas(EntityConfigs):
    """Table `client_quotas`."""

    def row(self, type_: str, name: str, key: str, text: str) -> Row | None:
        if key not in _QUOTAS or type_ in ("topic", "broker"):
            return None
        try:
            value = float(text)
        except ValueError:
            self.problems.texts.append(f"quota {key} of {type_} {name}: {text[:60]!r} is no number")
            return None
        return {"entityType": type_, "entity": name, "key": key, "value": value}


class Scram(EntityConfigs):
    """Table `scram`."""

    def row(self, type_: str, name: str, key: str, text: str) -> Row | None:
        if type_ != "user" or not key.startswith(_SCRAM):
            return None
        found = _ITERATIONS.search(text)
        return {
            "user": name,
            "mechanism": key,
            "iterations": int(found["count"]) if found else 0,
            "credential": REDACTED,
        }


class Acls(Spans):
    """Table `acls`: `/kafka-acl/<Type>/<name>`, and of prefixes
    `/kafka-acl-extended/prefixed/<Type>/<name>`.
    """

    def add(self, change: NodeChange, parts: Sequence[str]) -> None:
        if len(parts) == 3 and parts[0] == "kafka-acl":
            pattern, type_, name = "LITERAL", parts[1], parts[2]
        elif len(parts) == 4 and parts[0] == "kafka-acl-extended":
            pattern, type_, name = parts[1].upper(), parts[2], parts[3]
        else:
            return
        if change.kind is ChangeKind.ACL:
            return
        is_gone = change.kind is ChangeKind.DELETED
        acls = frozenset[AclValue]() if is_gone else self.problems.parsed(change, parse_acls)
        if acls is not None:
            self.hold(
                change,
                {
                    acl: {
                        "resourceType": protocol_name(type_),
                        "resourceName": name,
                        "patternType": pattern,
                        "principal": acl.principal,
                        "host": acl.host,
                        "operation": acl.operation,
                        "permissionType": acl.permission_type,
                    }
                    for acl in sorted(acls)
                },
            )


def _entity(parts: Sequence[str]) -> tuple[str, str] | None:
    """(type, name) of the entity whose settings a node has."""
    if len(parts) < 3 or parts[0] != "config":
        return None
    type_ = _ENTITY_TYPES.get(parts[1])
    if type_ is None:
        return None
    if len(parts) == 3:
        return type_, _plain(parts[2], type_)
    if len(parts) == 5 and parts[1] == "users" and parts[3] == "clients":
        return "user/client-id", f"{_plain(parts[2], 'user')}/{_plain(parts[4], 'client-id')}"
    return None


def _plain(name: str, type_: str) -> str:
    return unquote(name) if type_ in ("user", "client-id") and name != DEFAULT_ENTITY else name
