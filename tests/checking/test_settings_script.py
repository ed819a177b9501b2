"""What was set and allowed in a cluster, as a script of Kafka's own tools: a shell gives each tool
the words and the properties that the metadata log has, and nothing secret is in it.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.copy_samples import SAMPLES
from kafkalog.checking.cluster_run import ClusterRequest, cluster_run
from kafkalog.checking.cluster_view import ClusterView
from kafkalog.checking.settings_script import _property, settings_script
from kafkalog.cli.main import main
from tests.support import metadata_builder as metadata
from tests.support.metadata_builder import MetadataBuilder

CLUSTER = SAMPLES / "cluster" / "1"
DIRS = [str(CLUSTER / name) for name in ("data", "data-2")]
# Stands for each of Kafka's tools: its words and what it is given to read, a line each.
FAKE = """#!/bin/sh
printf 'words'; printf ' <%s>' "$(basename "$0")" "$@"; echo
for word; do [ "$word" = /dev/stdin ] && sed 's/^/line /'; done
case "$*" in *fails*) exit 1;; esac
exit 0
"""
TOOLS = ("kafka-topics.sh", "kafka-configs.sh", "kafka-acls.sh")


def view_of(*log_dirs: str) -> ClusterView:
    (cluster,) = cluster_run(ClusterRequest(log_dirs)).clusters
    return cluster.view


def run_by_shell(script: str, directory: Path) -> tuple[int, list[str]]:
    """Exit code and lines of the fake tools."""
    for tool in TOOLS:
        (directory / tool).write_text(FAKE)
        (directory / tool).chmod(0o755)
    (directory / "script.sh").write_text(script, encoding="utf-8")
    # Given to a shell as its environment names nothing else.
    settings = {"BOOTSTRAP": "host:1", "KAFKA_BIN": str(directory), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", str(directory / "script.sh")], env=settings, capture_output=True, check=False
    )
    assert done.stderr == b""
    return done.returncode, done.stdout.decode().splitlines()


def read_properties(lines: list[str]) -> dict[str, str]:
    """As java.util.Properties reads what has no sign but `\\u` escapes that means something."""
    pairs = (line.split("=", 1) for line in lines)
    return {_plain(key): _plain(value) for key, value in pairs}


def _plain(text: str) -> str:
    units = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")


def test_each_setting_in_force_reaches_its_tool_and_secrets_are_named(tmp_path: Path) -> None:
    view = view_of(*DIRS)
    script = settings_script(view)
    code, lines = run_by_shell(script.text, tmp_path)
    assert code == 0
    words = [line for line in lines if line.startswith("words")]
    assert len(words) == script.commands
    assert Counter(line.split(" ")[1] for line in words) == {
        "<kafka-topics.sh>": len({state["topic"] for state in view.states}),
        "<kafka-configs.sh>": 8,
        "<kafka-acls.sh>": 3,
    }
    assert all("<--bootstrap-server> <host:1>" in line for line in words)
    in_force = [row for row in view.history.rows["configs"] if row["endOffset"] is None]
    secret = [row for row in in_force if "password" in row["key"]]
    given = read_properties([line.removeprefix("line ") for line in lines if line[:5] == "line "])
    assert secret
    assert given == {row["key"]: row["value"] for row in in_force if row not in secret}
    assert "listener.name.plaintext.ssl.keystore.password of broker 1, a secret" in script.left_out
    assert sum(line.startswith("password of ") for line in script.left_out) == 2
    assert (
        "words <kafka-configs.sh> <--bootstrap-server> <host:1> <--alter> <--add-config> "
        "<request_percentage=50.5> <--user> <alice> <--client-defaults>"
    ) in words
    assert words[-1] == (
        "words <kafka-acls.sh> <--bootstrap-server> <host:1> <--add> <--allow-principal> "
        "<User:alice> <--allow-host> <*> <--operation> <Read> <--topic> <orders> "
        "<--resource-pattern-type> <literal>"
    )


def test_topics_that_are_asked_for_come_alone(tmp_path: Path) -> None:
    script = settings_script(view_of(*DIRS), ["orders"])
    code, lines = run_by_shell(script.text, tmp_path)
    assert (code, script.commands, script.left_out) == (0, 2, ())
    assert lines[0].endswith("<--topic> <orders> <--partitions> <3> <--replication-factor> <3>")
    assert lines[2:] == [
        "line cleanup.policy=delete",
        "line min.insync.replicas=2",
        "line retention.ms=172800000",
    ]


def test_names_and_values_that_a_shell_would_read_stay_what_they_are(tmp_path: Path) -> None:
    cluster = MetadataBuilder(tmp_path / "data")
    awkward = "x'; touch $HOME/`id` \\ é=😀\nEND\nexit 3 #"
    cluster.batch(
        metadata.topic("orders"),
        metadata.partition([1]),
        metadata.config("orders", "k", awkward),
        metadata.config(awkward, "consumer.session.timeout.ms", "5", kind=32),
        metadata.config("fails", "consumer.session.timeout.ms", "6", kind=32),
        metadata.config(awkward, "ssl.key.password", "s3cret", kind=4),
        metadata.config("1", "kafka.x", "DEBUG", kind=8),
    )
    cluster.write()
    script = settings_script(view_of(str(tmp_path / "data")))
    assert "s3cret" not in script.text
    assert len(script.left_out) == 2
    tools = tmp_path / "tools"
    tools.mkdir()
    code, lines = run_by_shell(script.text, tools)
    assert code == 1, "the exit code says that one failed"
    text = "\n".join(lines)
    assert f"<--entity-name> <{awkward}>" in text
    given = [line.removeprefix("line ") for line in lines if line.startswith("line ")]
    assert read_properties(given)["k"] == awkward
    behind = text.partition("<--entity-name> <fails>")[2]
    assert "line consumer.session.timeout.ms=5" in behind, "those behind one that fails run too"


@given(st.text(min_size=1), st.text())
def test_properties_are_what_java_reads_back(key: str, value: str) -> None:
    line = _property(key, value)
    assert line.isascii()
    assert line.isprintable()
    assert read_properties([line]) == {key: value}


def test_the_verb_writes_a_new_file_and_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.sh"
    main(["cluster", *DIRS, "--script", str(path)])
    assert f"{path}: 15 commands of Kafka's tools, 3 left out" in capsys.readouterr().err
    before = path.read_bytes()
    # Whatever the encoding of the user's locale is.
    assert "password=…]" in before.decode("utf-8")
    assert main(["cluster", *DIRS, "--script", str(path)]) == 2
    assert "File exists" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["cluster", *DIRS, "--redact", "--script", str(tmp_path / "other.sh")]) == 2
    assert not (tmp_path / "other.sh").exists()
