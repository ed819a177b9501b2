"""Which settings hold a secret, by their name: what a table shows of one is REDACTED.

KRaft keeps dynamic settings of a broker in its metadata log as they were given, passwords too, and
ZooKeeper what a user's SCRAM keys are; a listener's prefix does not change what a name means.

Source: Kafka settings of type PASSWORD (SslConfigs, SaslConfigs, DelegationTokenManagerConfigs).
"""

from __future__ import annotations

REDACTED = "(redacted)"

_PARTS = (
    *("password", "secret", "jaas", "credential", "private.key", "keystore.key"),
    "truststore.certificates",
    "certificate.chain",
    "scram-",
    "token",
)


def is_secret(name: str) -> bool:
    """Whether a setting's value must not be shown."""
    lowered = name.lower()
    return any(part in lowered for part in _PARTS)
