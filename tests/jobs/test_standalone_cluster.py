"""A cluster of a master and two workers: the job by spark-submit, with one worker killed midway."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from kafkalog.operations.compact import apply_run
from kafkalog.operations.compact_pack import clean_pack
from kafkalog.planning.log_config import LogConfig
from kafkalog.requests.run_request import CompactionRequest
from tests.benchmarks.generate import LogSpec, write_log
from tests.jobs.submit import ROOT, SPARK_SUBMIT
from tests.support.standalone import standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.soak]

NOW_MS = 1_750_000_000_000
CONFIG = ["cleanup.policy=compact", "segment.bytes=8388608"]


def packed(target: Path) -> Path:
    """Our packages as one file, as executors get them."""
    with zipfile.ZipFile(target, "w") as archive:
        for package in ("kafkalog", "pyspark_kafkalog"):
            for path in (ROOT / package).rglob("*.py"):
                archive.write(path, path.relative_to(ROOT))
    return target


def contents(log_dir: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(log_dir)): path.read_bytes()
        for path in sorted(log_dir.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@pytest.mark.parametrize("strategy", ["within-task", "across-tasks"])
def test_a_worker_killed_midway_changes_nothing_of_the_result(
    log_dir: Path, tmp_path: Path, strategy: str
) -> None:
    for partition in range(3):
        spec = LogSpec(records=200_000, keys=30_000, segment_bytes=8 << 20, seed=partition)
        write_log(log_dir / "source", "t", spec, partition)
    for name in ("wanted", "found"):
        shutil.copytree(log_dir / "source", log_dir / name)
    request = CompactionRequest(
        (str(log_dir / "wanted"),),
        NOW_MS,
        LogConfig.from_overrides(CONFIG),
        topics=("t",),
        keeps_undo=False,
    )
    apply_run(request, clean_pack)
    settings = [word for key in CONFIG for word in ("--config", key)]
    with standalone_cluster(tmp_path, workers=2) as cluster:
        job = subprocess.Popen(
            [
                *(str(SPARK_SUBMIT), "--master", cluster.url, "--executor-memory", "512m"),
                *("--conf", "spark.ui.enabled=false", "--conf", "spark.speculation=true"),
                *("--conf", "spark.executorEnv.PYTHONPATH="),
                *("--py-files", str(packed(tmp_path / "kafkalog.zip"))),
                str(ROOT / "jobs" / "compact_topics.py"),
                *("--log-dir", str(log_dir / "found"), "--topic", "t", "--apply", "--json"),
                *("--now", str(NOW_MS), "--strategy", strategy, "--no-undo", *settings),
            ],
            env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until = time.monotonic() + 300
        outputs = "t-*/kafkalog-*"
        # Tasks are at work as soon as one has begun to write.
        while not list((log_dir / "found").glob(outputs)) and job.poll() is None:
            assert time.monotonic() < until, "no task began"
            time.sleep(0.02)
        cluster.workers[0].kill()
        out, err = job.communicate(timeout=600)
        assert cluster.executors() >= 2
    assert job.returncode == 0, out[-2000:] + err[-3000:]
    statuses = [partition["status"] for partition in json.loads(out)["partitions"]]
    assert statuses == ["compacted"] * 3
    assert contents(log_dir / "found") == contents(log_dir / "wanted")


def test_the_environment_is_packed_and_sent_along_as_the_guide_says(
    log_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines, with the places of this machine."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    guide = (ROOT / "docs" / "guides" / "compact.md").read_text(encoding="utf-8")
    (recipe,) = (b for b in re.findall(r"```text\n(.*?)```", guide, re.S) if "venv-pack" in b)
    write_log(log_dir, "t", LogSpec(records=50_000, keys=5_000, segment_bytes=1 << 20))
    with standalone_cluster(tmp_path, workers=1) as cluster:
        for there, here in (
            ("python3.11", sys.executable),
            ("install . ", f"install {ROOT} "),
            ("spark://MASTER:7077", cluster.url),
            ("spark-submit", f"{SPARK_SUBMIT} --executor-memory 512m"),
            ("/mnt/shared/kafka-data", str(log_dir)),
            # settings that nobody else says count for a topic that is named
            ("--topic '*'", "--topic t"),
            ("--apply", "--apply --json --config cleanup.policy=compact"),
            ("spark_conf/", f"{ROOT}/spark_conf/"),
            ("jobs/", f"{ROOT}/jobs/"),
        ):
            assert there in recipe
            recipe = recipe.replace(there, here)
        done = subprocess.run(
            ["bash", "-ec", recipe],
            cwd=tmp_path,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=1800,
        )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    (partition,) = json.loads(done.stdout[done.stdout.index("{\n") :])["partitions"]
    assert (partition["status"], partition["recordsRetained"] < 50_000) == ("compacted", True)
