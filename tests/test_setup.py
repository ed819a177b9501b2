"""`make setup` on machines that lack something: one sentence that says what to install."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOOLS = (
    "awk",
    "bash",
    "cat",
    "cut",
    "dirname",
    "find",
    "head",
    "sed",
    "sha256sum",
    "sort",
    "xargs",
)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A checkout with a `.venv` that accepts everything, on a machine with few programs, where we
    are not root."""
    root = tmp_path / "checkout"
    (root / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "setup.sh", root / ".ci" / "setup.sh")
    rooms = ("kafkalog/kernels", "kafkalog/native")
    for name in ("requirements.lock", "pyproject.toml", *(f"{room}/__init__.py" for room in rooms)):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    program(root / ".venv" / "bin" / "python", "exit 0")
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (root / "bin").mkdir(exist_ok=True)
        (root / "bin" / tool).symlink_to(found)
    program(root / "bin" / "id", "echo 1000")
    return root


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def set_up(machine: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [machine / ".ci" / "setup.sh"],
        env={"PATH": str(machine / "bin"), "PWD": str(machine), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.splitlines()[-1]


def test_missing_java_is_named_with_its_package(machine: Path) -> None:
    done = set_up(machine)
    assert done.returncode == 1
    assert last_line(done).startswith("setup: Java 17 is missing: install it")
    assert "openjdk-17-jre-headless" in last_line(done)


def test_java_that_is_too_old_is_named(machine: Path) -> None:
    program(machine / "bin" / "java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
    done = set_up(machine)
    assert done.returncode == 1
    assert "Java 17 or newer is needed, but the first one found is 11" in last_line(done)


def test_java_home_without_java_is_named(machine: Path) -> None:
    done = set_up(machine, JAVA_HOME="/nowhere")
    assert done.returncode == 1
    assert "JAVA_HOME=/nowhere holds no Java" in last_line(done)


def test_missing_python_is_named(machine: Path) -> None:
    (machine / ".venv" / "bin" / "python").unlink()
    done = set_up(machine)
    assert done.returncode == 1
    assert "Python 3.11 or newer is missing" in last_line(done)


def test_missing_venv_module_is_named_with_its_package(machine: Path) -> None:
    (machine / ".venv" / "bin" / "python").unlink()
    program(machine / "bin" / "python3.11", 'case "$2" in *venv*) exit 1;; esac')
    done = set_up(machine)
    assert done.returncode == 1
    assert "Python's venv module is missing" in last_line(done)
    assert "python3-venv" in last_line(done)


def test_second_call_does_nothing_again(machine: Path) -> None:
    program(machine / "bin" / "java", "echo 'openjdk version \"17.0.15\"' >&2")
    assert set_up(machine).returncode == 0
    done = set_up(machine)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
