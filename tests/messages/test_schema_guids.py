"""GUIDs of schemas: the MD5 of their parts, one behind the other, as the registry makes it."""

from __future__ import annotations

from hashlib import md5
from typing import Any
from uuid import UUID

import pytest

from kafkalog.messages.schema_guids import schema_guid

REFERENCES = [{"name": "n", "subject": "s", "version": 258}]
METADATA = {
    "tags": {"b": ["2", "1"], "a": []},
    "properties": {"z": "ü", "p": "q"},
    "sensitive": ["y", "x"],
}
RULE = {
    "name": "r", "doc": None, "kind": "TRANSFORM", "mode": "WRITE", "type": "T", "tags": ["t", "s"],
    "params": {"k": "v"}, "expr": "e", "onSuccess": "ok", "onFailure": "no", "disabled": True,
}  # fmt: skip
RULES = {"domainRules": [RULE], "migrationRules": [{"name": "first"}]}


@pytest.mark.parametrize(
    ("more", "hashed"),
    [
        ({}, b""),
        ({"references": [], "metadata": None, "ruleSet": None}, b""),
        ({"references": REFERENCES}, b"ns\0\0\1\2"),
        ({"metadata": METADATA}, b"\1ab12pqz\xc3\xbcxy"),
        ({"metadata": {}}, b"\1"),
        ({"ruleSet": RULES}, b"\1firstrTRANSFORMWRITETstkveokno\1"),
    ],
)
def test_guid_is_the_hash_of_all_parts_in_order(more: dict[str, Any], hashed: bytes) -> None:
    expected = UUID(md5(b'"string"' + hashed).hexdigest())
    assert schema_guid({"schema": '"string"', "id": 1, **more}) == str(expected)


def test_guid_of_the_registry_itself_counts() -> None:
    own = "D629BB05-AD85-3D20-FBCB-895DE3C459F7"
    assert schema_guid({"schema": "s", "guid": own}) == own.lower()


@pytest.mark.parametrize(
    "more", [{"guid": "none"}, {"guid": 1}, {"references": [1]}, {"metadata": 1}, {"ruleSet": "r"},
             {"references": [{"name": "n", "subject": "s", "version": 2**31}]}],
)  # fmt: skip
def test_what_no_registry_writes_has_no_guid(more: dict[str, Any]) -> None:
    assert schema_guid({"schema": "s", **more}) is None
