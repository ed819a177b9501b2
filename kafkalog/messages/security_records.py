"""Records of the metadata log that tell what clients may: ACLs, quotas, SCRAM users, tokens.

Secrets are in UserScramCredentialRecord alone: who has its keys and salt can try passwords. Of a
delegation token the secret is not in the log.

Source: Kafka metadata/src/main/resources, AclControlManager, ClientQuotaControlManager,
ScramControlManager, DelegationTokenControlManager; KIP-801, KIP-546, KIP-900.
"""

from __future__ import annotations

from kafkalog.messages.metadata_message import metadata_message
from kafkalog.messages.schema import ALL, Array, Field, Primitive, Struct

_INT8, _INT32, _INT64 = Primitive.INT8, Primitive.INT32, Primitive.INT64
_STRING, _UUID, _BYTES = Primitive.STRING, Primitive.UUID, Primitive.BYTES

_ENTITY = Struct(
    (
        Field("entityType", _STRING, "user, client-id or ip"),
        Field("entityName", _STRING, "its name, null: the default of all", nullable=ALL),
    )
)

DELEGATION_TOKEN_RECORD = metadata_message(
    "DelegationTokenRecord", 10, "0", "a delegation token is issued or renewed",
    Field("owner", _STRING, "principal it stands for"),
    Field("requester", _STRING, "principal that asked for it"),
    Field("renewers", Array(_STRING), "principals that may renew it"),
    Field("issueTimestamp", _INT64, "when it was issued, ms"),
    Field("maxTimestamp", _INT64, "when it cannot be renewed any more, ms"),
    Field("expirationTimestamp", _INT64, "when it ends unless it is renewed, ms"),
    Field("tokenId", _STRING, "its id"),
)  # fmt: skip
REMOVE_DELEGATION_TOKEN_RECORD = metadata_message(
    "RemoveDelegationTokenRecord", 26, "0", "a delegation token ends",
    Field("tokenId", _STRING, "its id"),
)  # fmt: skip
USER_SCRAM_CREDENTIAL_RECORD = metadata_message(
    "UserScramCredentialRecord", 11, "0", "a SCRAM credential is set",
    Field("name", _STRING, "the user"),
    Field("mechanism", _INT8, "1 SCRAM-SHA-256, 2 SCRAM-SHA-512"),
    Field("salt", _BYTES, "secret: what the password is hashed with"),
    Field("storedKey", _BYTES, "secret: what proves the client"),
    Field("serverKey", _BYTES, "secret: what proves the server"),
    Field("iterations", _INT32, "rounds of hashing"),
)  # fmt: skip
REMOVE_USER_SCRAM_CREDENTIAL_RECORD = metadata_message(
    "RemoveUserScramCredentialRecord", 22, "0", "a SCRAM credential is removed",
    Field("name", _STRING, "the user"),
    Field("mechanism", _INT8, "1 SCRAM-SHA-256, 2 SCRAM-SHA-512"),
)  # fmt: skip
CLIENT_QUOTA_RECORD = metadata_message(
    "ClientQuotaRecord", 14, "0", "a quota is set or removed",
    Field("entity", Array(_ENTITY), "whom it binds"),
    Field("key", _STRING, "the quota"),
    Field("value", Primitive.FLOAT64, "how much, unless it is removed"),
    Field("remove", Primitive.BOOL, "it is removed"),
)  # fmt: skip
ACCESS_CONTROL_ENTRY_RECORD = metadata_message(
    "AccessControlEntryRecord", 18, "0", "an ACL is added",
    Field("id", _UUID, "its id"),
    Field("resourceType", _INT8, "2 topic, 3 group, 4 cluster, …"),
    Field("resourceName", _STRING, "name or prefix, * is all"),
    Field("patternType", _INT8, "3 literal, 4 prefixed"),
    Field("principal", _STRING, "User:NAME"),
    Field("host", _STRING, "host, * is all"),
    Field("operation", _INT8, "2 all, 3 read, 4 write, …"),
    Field("permissionType", _INT8, "2 deny, 3 allow"),
)  # fmt: skip
REMOVE_ACCESS_CONTROL_ENTRY_RECORD = metadata_message(
    "RemoveAccessControlEntryRecord", 19, "0", "an ACL is removed",
    Field("id", _UUID, "its id"),
)  # fmt: skip

SECURITY_MESSAGES = (
    DELEGATION_TOKEN_RECORD,
    REMOVE_DELEGATION_TOKEN_RECORD,
    USER_SCRAM_CREDENTIAL_RECORD,
    REMOVE_USER_SCRAM_CREDENTIAL_RECORD,
    CLIENT_QUOTA_RECORD,
    ACCESS_CONTROL_ENTRY_RECORD,
    REMOVE_ACCESS_CONTROL_ENTRY_RECORD,
)
