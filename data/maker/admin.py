"""A cluster as its admin API shows it: what of it an observation writes down.

Everything is asked twice around the end of the metadata log: an observation counts only if nothing
moved meanwhile, so that it is the cluster as of one offset of that log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ACLFilter, ACLOperation, ACLPermissionType, ResourcePatternFilter
from kafka.admin import ACLResourcePatternType as PatternType
from kafka.admin import ResourceType as AclResource
from kafka.errors import KafkaError
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

Observation = dict[str, Any]
Until = Callable[[Observation], bool]

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
ANY_QUOTA = 2  # match_type: whatever name the entity has
OF_ALL_BROKERS = 3
DYNAMIC = {1, 2, OF_ALL_BROKERS, 7, 8}  # config sources: told by the metadata log
DEADLINE_S = 120


class Admin:
    """Admin calls against whatever brokers of the cluster are alive."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._servers = list(servers)
        self._client: KafkaAdminClient | None = None
        self.resources: set[tuple[int, str]] = set()  # whose settings are observed
        self.alive: set[int] = set()

    @property
    def client(self) -> KafkaAdminClient:
        if self._client is None:
            self._client = KafkaAdminClient(
                bootstrap_servers=self._servers, request_timeout_ms=20_000
            )
        return self._client

    def reconnect(self) -> None:
        """Forget all connections: nodes came or went."""
        if self._client is not None:
            self._client.close()
        self._client = None

    def send(self, request: Any, node: int | None = None) -> Any:
        """A request to a broker, or to any."""
        manager = self.client._manager
        return manager.run(manager.send, request, node)

    # -- changes ---------------------------------------------------------------------------------

    def set_configs(self, kind: int, name: str, **config: str | None) -> None:
        """Settings of a topic, broker or group, None removes one."""
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource
        entry = resource.AlterableConfig
        entries = [
            entry(
                name=key.replace("_", "."),
                config_operation=DELETE if value is None else SET,
                value=value,
            )
            for key, value in config.items()
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[resource(resource_type=kind, resource_name=name, configs=entries)],
            validate_only=False,
        )
        _require(self.send(request, _node(kind, name)).responses)
        self.resources.add((kind, name))

    def set_quota(self, entity: Mapping[str, str | None], **quotas: float | None) -> None:
        """Quotas of an entity (`{"user": "alice"}`, None is the default), None removes one."""
        entry = AlterClientQuotasRequest.EntryData
        request = AlterClientQuotasRequest(
            entries=[
                entry(
                    entity=[
                        entry.EntityData(entity_type=kind, entity_name=name)
                        for kind, name in entity.items()
                    ],
                    ops=[
                        entry.OpData(key=key, value=value or 0.0, remove=value is None)
                        for key, value in quotas.items()
                    ],
                )
            ],
            validate_only=False,
        )
        _require(self.send(request).entries)

    # -- looking ---------------------------------------------------------------------------------

    def observe(self, until: Until = lambda _: True) -> Observation:
        """The cluster once `until` holds and nothing moves."""
        deadline = time.monotonic() + DEADLINE_S
        last: Any = None
        while time.monotonic() < deadline:
            try:
                before = self._quorum()
                seen = self._look()
                if before == self._quorum() and until(seen) and seen == self._look():
                    return {**before, **seen}
                last = seen
            except KafkaError as error:
                last = error
                self.reconnect()
            time.sleep(0.3)
        raise SystemExit(f"the cluster did not come to rest as expected: {last}")

    def _quorum(self) -> Observation:
        (topic,) = self.client.describe_metadata_quorum()["topics"]
        (partition,) = topic["partitions"]
        return {
            "endOffset": partition["high_watermark"],
            "controllerId": partition["leader_id"],
            "controllerEpoch": partition["leader_epoch"],
            "voters": sorted(voter["replica_id"] for voter in partition["current_voters"]),
        }

    def _look(self) -> Observation:
        return {
            "brokers": self._brokers(),
            "topics": self._topics(),
            "configs": self._configs(),
            "quotas": self._quotas(),
            "acls": self._acls(),
            "scram": self._scram(),
            "features": {
                name: levels["finalized"][1]
                for name, levels in self.client.describe_features().items()
                if "finalized" in levels
            },
        }

    def _brokers(self) -> dict[str, Any]:
        return {
            str(broker["broker_id"]): {"rack": broker["rack"], "isFenced": broker["is_fenced"]}
            for broker in self.client.describe_cluster()["brokers"]
        }

    def _topics(self) -> dict[str, Any]:
        described = self.client.describe_topic_partitions(self.client.list_topics())["topics"]
        return {
            topic["name"]: {
                "topicId": str(topic["topic_id"]),
                "partitions": {
                    str(partition["partition_index"]): {
                        "leader": partition["leader_id"],
                        "leaderEpoch": partition["leader_epoch"],
                        "replicas": partition["replica_nodes"],
                        "isr": sorted(partition["isr_nodes"]),
                    }
                    for partition in topic["partitions"]
                },
            }
            for topic in described
            if topic["error_code"] == 0
        }

    def _configs(self) -> dict[str, dict[str, str] | None]:
        """`kind/name` → its own settings; None for those of a broker that is not there to tell."""
        return {f"{kind}/{name}": self._config(kind, name) for kind, name in sorted(self.resources)}

    def _config(self, kind: int, name: str) -> dict[str, str] | None:
        node = _node(kind, name)
        if node is not None and node not in self.alive:
            return None
        resource = DescribeConfigsRequest.DescribeConfigsResource
        request = DescribeConfigsRequest(
            resources=[resource(resource_type=kind, resource_name=name, configuration_keys=None)]
        )
        (result,) = self.send(request, node).results
        own = DYNAMIC - {OF_ALL_BROKERS} if name else DYNAMIC
        return {entry.name: entry.value for entry in result.configs if entry.config_source in own}

    def _quotas(self) -> list[Any]:
        component = DescribeClientQuotasRequest.ComponentData
        found = []
        for kind in ("user", "client-id", "ip"):
            request = DescribeClientQuotasRequest(
                components=[component(entity_type=kind, match_type=ANY_QUOTA, match=None)],
                strict=False,
            )
            for entry in self.send(request).entries or []:
                entity = {part.entity_type: part.entity_name for part in entry.entity}
                values = {value.key: value.value for value in entry.values}
                if [entity, values] not in found:
                    found.append([entity, values])
        return sorted(found, key=str)

    def _acls(self) -> list[list[str]]:
        pattern = ResourcePatternFilter(AclResource.ANY, None, PatternType.ANY)
        everything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, pattern)
        acls, _ = self.client.describe_acls(everything)
        return sorted(
            [
                acl.resource_pattern.resource_type.name,
                acl.resource_pattern.resource_name,
                acl.resource_pattern.pattern_type.name,
                acl.principal,
                acl.host,
                acl.operation.name,
                acl.permission_type.name,
            ]
            for acl in acls
        )

    def _scram(self) -> dict[str, dict[str, int]]:
        """user → mechanism → iterations."""
        return {
            user: {each["mechanism"].name: each["iterations"] for each in told["credential_infos"]}
            for user, told in self.client.describe_user_scram_credentials().items()
        }


def _node(kind: int, name: str) -> int | None:
    """A broker answers for its own settings alone."""
    return int(name) if kind == BROKER and name else None


def _require(results: Sequence[Any]) -> None:
    for result in results:
        if result.error_code != 0:
            raise SystemExit(f"refused: {result}")
