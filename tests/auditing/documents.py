"""Audits of a disk as their JSON documents, each held against the published schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema

from kafkalog.auditing.audit_run import AuditRun, audit_run
from kafkalog.auditing.partition_audit import audit_partition
from kafkalog.auditing.request import AuditRequest, AuditScope, audit_request
from kafkalog.auditing.whole import AuditOptions, whole_audit

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "kafkalog/auditing/audit.schema.json").read_text("utf-8"))


def audit(*log_dirs: Path, **options: Any) -> AuditRun:
    """The run in this process; options are those of RunOptions, and `scope` those of AuditScope."""
    return audit_run(_request(log_dirs, options), lambda tasks: map(audit_partition, tasks))


def _request(log_dirs: tuple[Path, ...], options: dict[str, Any]) -> AuditRequest:
    scope = AuditScope(**options.pop("scope", {}))
    return audit_request([str(path) for path in log_dirs], options, scope)  # type: ignore[arg-type]


def audited_document(*log_dirs: Path, **options: Any) -> dict[str, Any]:
    """The document, as JSON readers get it, valid by the schema."""
    request = _request(log_dirs, options)
    whole = whole_audit(
        request, AuditOptions(keeps=False), lambda tasks: map(audit_partition, tasks), lambda: 0
    )
    document = json.loads(json.dumps(whole.document))
    validate(document)
    return document


def validate(document: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    errors = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]
    assert errors == []


def findings_of(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The findings of a kind."""
    return [finding for finding in document["findings"] if finding["id"] == kind]
