"""Tables `acls`, `scram` and `tokens`: who may what, and who can prove to be who. Secrets stay out.

Source: Kafka AclsDelta, StandardAcl, ScramDelta, DelegationTokenDelta; the enums of common.acl and
common.resource.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkalog.cluster.moments import Moment, Spans
from kafkalog.format.secret_settings import REDACTED

Fields = Mapping[str, Any]

RESOURCE_TYPES = (
    *("UNKNOWN", "ANY", "TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN"),
    "USER",
)
PATTERN_TYPES = ("UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED")
OPERATIONS = (
    *("UNKNOWN", "ANY", "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
    *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS"),
    *("DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"),
)
PERMISSION_TYPES = ("UNKNOWN", "ANY", "DENY", "ALLOW")
MECHANISMS = ("UNKNOWN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Acls:
    """Access control entries by id."""

    def __init__(self) -> None:
        self.spans = Spans()

    def add(self, fields: Fields, moment: Moment) -> None:
        """AccessControlEntryRecord."""
        columns = {
            "resourceType": _named(RESOURCE_TYPES, fields["resourceType"]),
            "resourceName": fields["resourceName"],
            "patternType": _named(PATTERN_TYPES, fields["patternType"]),
            "principal": fields["principal"],
            "host": fields["host"],
            "operation": _named(OPERATIONS, fields["operation"]),
            "permissionType": _named(PERMISSION_TYPES, fields["permissionType"]),
        }
        self.spans.hold(fields["id"], tuple(columns.values()), moment, columns)

    def remove(self, fields: Fields, moment: Moment) -> None:
        """RemoveAccessControlEntryRecord."""
        self.spans.end(fields["id"], moment)


class ScramCredentials:
    """That a user has a credential, never what it is."""

    def __init__(self) -> None:
        self.spans = Spans()

    def set(self, fields: Fields, moment: Moment) -> None:
        """UserScramCredentialRecord."""
        mechanism = _named(MECHANISMS, fields["mechanism"])
        secrets = tuple(fields[name] for name in ("salt", "storedKey", "serverKey", "iterations"))
        columns = {
            "user": fields["name"],
            "mechanism": mechanism,
            "iterations": fields["iterations"],
            "credential": REDACTED,
        }
        self.spans.hold((fields["name"], mechanism), secrets, moment, columns)

    def remove(self, fields: Fields, moment: Moment) -> None:
        """RemoveUserScramCredentialRecord."""
        self.spans.end((fields["name"], _named(MECHANISMS, fields["mechanism"])), moment)


class DelegationTokens:
    """Tokens by id; their secret is not in the log."""

    def __init__(self) -> None:
        self.spans = Spans()

    def set(self, fields: Fields, moment: Moment) -> None:
        """DelegationTokenRecord: issued, or renewed."""
        columns = {
            "tokenId": fields["tokenId"],
            "owner": fields["owner"],
            "requester": fields["requester"],
            "renewers": ",".join(fields["renewers"]),
            "issueTimestampMs": fields["issueTimestamp"],
            "maxTimestampMs": fields["maxTimestamp"],
            "expirationTimestampMs": fields["expirationTimestamp"],
        }
        self.spans.hold(fields["tokenId"], tuple(columns.values()), moment, columns)

    def remove(self, fields: Fields, moment: Moment) -> None:
        """RemoveDelegationTokenRecord."""
        self.spans.end(fields["tokenId"], moment)


def _named(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else f"unknown({number})"
