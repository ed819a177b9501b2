"""The script of a cluster's settings, run by Kafka's own tools against a fresh broker, sets there
what the old cluster's metadata log has.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from data.copy_samples import SAMPLES
from kafkalog.checking.cluster_run import ClusterRequest, cluster_run
from kafkalog.checking.cluster_view import ClusterView
from kafkalog.checking.settings_script import settings_script
from tests.support.broker import Broker, running_broker

pytestmark = [pytest.mark.oracle, pytest.mark.broker, pytest.mark.soak]
OLD = [str(SAMPLES / "cluster" / "1" / name) for name in ("data", "data-2")]
TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-acls.sh": "org.apache.kafka.tools.AclCommand",
}
ALLOWED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
NAMES = {
    "configs": ("entityType", "entity", "key", "value"),
    "client_quotas": ("entityType", "entity", "key", "value"),
    "acls": ("resourceType", "resourceName", "patternType", "principal", "host", "operation",
             "permissionType"),
}  # fmt: skip


def view_of(*log_dirs: str) -> ClusterView:
    (cluster,) = cluster_run(ClusterRequest(log_dirs)).clusters
    return cluster.view


def in_force(view: ClusterView, table: str) -> set[tuple[Any, ...]]:
    rows = [row for row in view.history.rows[table] if row["endOffset"] is None]
    return {tuple(row[name] for name in NAMES[table]) for row in rows}


def write_tools(broker: Broker, directory: Path) -> None:
    for name, kind in TOOLS.items():
        command = shlex.join(broker.tool(kind))
        (directory / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (directory / name).chmod(0o755)


def test_a_fresh_broker_has_what_the_old_cluster_had(tmp_path: Path) -> None:
    old = view_of(*OLD)
    script = settings_script(old)
    # One broker: it has no room for three copies.
    text = script.text.replace("--replication-factor 3", "--replication-factor 1")
    text = text.replace("--replication-factor 2", "--replication-factor 1")
    (tmp_path / "settings.sh").write_text(text, encoding="utf-8")
    with running_broker(tmp_path / "broker", ALLOWED) as broker:
        write_tools(broker, tmp_path)
        settings = {"BOOTSTRAP": broker.bootstrap_servers, "KAFKA_BIN": str(tmp_path)}
        for _ in range(2):  # run again it sets the same
            done = subprocess.run(
                ["sh", str(tmp_path / "settings.sh")],
                env=settings | {"PATH": "/usr/bin:/bin"},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
    new = view_of(str(broker.log_dir))
    secret = {row for row in in_force(old, "configs") if "password" in row[2]}
    assert in_force(new, "configs") == in_force(old, "configs") - secret
    assert in_force(new, "client_quotas") == in_force(old, "client_quotas")
    assert in_force(new, "acls") == in_force(old, "acls")
    topics = {(state["topic"], state["partition"]) for state in old.states}
    assert {(state["topic"], state["partition"]) for state in new.states} == topics
