"""Tables `configs`, `client_quotas` and `features`: spans in which a value was in force.

Source: Kafka ConfigurationsDelta, ClientQuotasDelta, FeaturesDelta; ConfigResource.Type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkalog.cluster.moments import Moment, Spans
from kafkalog.format.secret_settings import REDACTED, is_secret

Fields = Mapping[str, Any]

TOPIC = "topic"
ENTITY_TYPES = {
    2: TOPIC,
    4: "broker",
    8: "broker-logger",
    16: "client-metrics",
    32: "group",
}
# What Kafka's tools call the entity that stands for all without their own.
DEFAULT = "<default>"


class Configs:
    """A setting of a topic, broker, group …"""

    def __init__(self) -> None:
        self.spans = Spans()

    def set(self, fields: Fields, moment: Moment) -> None:
        """ConfigRecord; null removes the setting."""
        kind = ENTITY_TYPES.get(fields["resourceType"], f"unknown({fields['resourceType']})")
        name, key, value = fields["resourceName"], fields["name"], fields["value"]
        thing = kind, name, key
        if value is None:
            self.spans.end(thing, moment)
            return
        shown = REDACTED if is_secret(key) else value
        columns = {"entityType": kind, "entity": name or None, "key": key, "value": shown}
        self.spans.hold(thing, value, moment, columns)

    def forget_topic(self, name: str, moment: Moment) -> None:
        """A topic's settings go with it."""
        self.spans.end_all(moment, entityType=TOPIC, entity=name)


class ClientQuotas:
    """A quota of users, clients or addresses."""

    def __init__(self) -> None:
        self.spans = Spans()

    def set(self, fields: Fields, moment: Moment) -> None:
        """ClientQuotaRecord. Whatever the order the parts of an entity come in, it is the same."""
        parts = {part["entityType"]: part["entityName"] for part in fields["entity"]}
        order = ("user", "client-id", "ip")
        types = sorted(parts, key=lambda each: order.index(each) if each in order else len(order))
        names = [DEFAULT if parts[each] is None else parts[each] for each in types]
        # Named twice where a part is the default, so that nobody's name can stand for it.
        thing = tuple((each, parts[each]) for each in types), fields["key"]
        if fields["remove"]:
            self.spans.end(thing, moment)
            return
        columns = {
            "entityType": "/".join(types),
            "entity": "/".join(names),
            "key": fields["key"],
            "value": fields["value"],
        }
        self.spans.hold(thing, fields["value"], moment, columns)


class Features:
    """A feature's level; 0 is none."""

    def __init__(self) -> None:
        self.spans = Spans()

    def set(self, fields: Fields, moment: Moment) -> None:
        """FeatureLevelRecord."""
        self.hold(fields["name"], fields["featureLevel"], moment)

    def hold(self, name: str, level: int, moment: Moment) -> None:
        """A level, of any kind of record."""
        if level == 0:
            self.spans.end(name, moment)
        else:
            self.spans.hold(name, level, moment, {"feature": name, "level": level})

    def levels(self) -> dict[str, int]:
        """Those in force, by feature."""
        return {r["feature"]: r["level"] for r in self.spans.rows if r["endOffset"] is None}
