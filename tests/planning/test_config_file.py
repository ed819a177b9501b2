"""The file of settings per topic."""

from __future__ import annotations

import pytest

from kafkalog.errors import InvalidConfigError
from kafkalog.planning.config_file import parse_config_file


def test_keys_may_be_quoted_or_not_and_values_be_of_any_kind() -> None:
    text = """
        [orders]
        cleanup.policy = ["compact", "delete"]
        "min.cleanable.dirty.ratio" = 0.25
        min.compaction.lag.ms = 5
        preallocate = true
        ["a.b"]
        compression.type = "zstd"
        ["*"]
        segment.ms = "1"
    """
    assert parse_config_file(text.encode()) == {
        "orders": {
            "cleanup.policy": "compact,delete",
            "min.cleanable.dirty.ratio": "0.25",
            "min.compaction.lag.ms": "5",
            "preallocate": "true",
        },
        "a.b": {"compression.type": "zstd"},
        "*": {"segment.ms": "1"},
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[orders", "not TOML"),
        ("\xff", "not TOML"),
        ("cleanup.policy = 5", "topic cleanup: unknown setting policy"),
        ("orders = 5", "orders is not a table"),
        ("[a.b]\ncleanup.policy='compact'", r"topic a: unknown setting b\.cleanup\.policy"),
        ("[orders]\ncleanup.polity='compact'", r"did you mean cleanup\.policy"),
        ("[orders]\nsegment.ms=0", r"topic orders: segment\.ms: 0 is not at least 1"),
        ("[orders]\nsegment.ms=1.5", "expected a 64 bit integer"),
    ],
)
def test_a_wrong_file_is_refused_with_its_path_topic_and_key(text: str, reason: str) -> None:
    with pytest.raises(InvalidConfigError, match=reason) as caught:
        parse_config_file(text.encode("latin-1"), "/etc/x.toml")
    assert caught.value.path == "/etc/x.toml"
