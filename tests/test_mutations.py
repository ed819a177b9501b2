"""Rules of compaction whose tests are tested: break the rule by one line, and its test must fail.

The package and its tests are copied once. The tests of all rules pass there; then, one after the
other, a rule is broken and its test run in a process of its own. Kernels run as plain Python, which
is what saves compiling them for every mutation.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MUTATIONS: list[dict[str, str]] = tomllib.loads((ROOT / "tests/mutations.toml").read_text())[
    "mutation"
]
TEST_FAILED = 1  # pytest's exit code; errors of collection or usage have others


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project in which the tests of all rules pass."""
    project = tmp_path_factory.mktemp("mutated")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "java")
    for name in ("kafkalog", "tests"):
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", project)
    done = run_tests(project, {mutation["test"] for mutation in MUTATIONS})
    assert done.returncode == 0, done.stdout[-3000:]
    return project


def test_ten_rules_and_more_are_listed() -> None:
    assert len({mutation["rule"] for mutation in MUTATIONS}) == len(MUTATIONS) >= 10


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m["rule"] for m in MUTATIONS])
def test_a_broken_rule_is_noticed(copy: Path, mutation: dict[str, str]) -> None:
    file = copy / mutation["file"]
    source = file.read_text()
    lines = source.split("\n")
    (number,) = (n for n, line in enumerate(lines) if line.strip() == mutation["line"])
    lines[number] = lines[number].replace(mutation["line"], mutation["becomes"])
    write_anew(file, "\n".join(lines))
    try:
        done = run_tests(copy, [mutation["test"]])
    finally:
        write_anew(file, source)
    assert done.returncode == TEST_FAILED, done.stdout[-3000:]


def write_anew(file: Path, source: str) -> None:
    """Write a module so that no byte code of before passes for it: that goes by size and second."""
    second = int(file.stat().st_mtime) + 1
    file.write_text(source)
    os.utime(file, (second, second))


def run_tests(project: Path, tests: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """These tests in the copy, which comes before the installed package on the path."""
    argv = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short"]
    # without plugins that take a second to load; plain Python warns of sums that wrap, which
    # compiled kernels do in silence
    argv += [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-p",
        "no:hypothesispytest",
        "-p",
        "no:cov",
    ]
    argv += ["-W", "ignore::RuntimeWarning"]
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": str(project),
    }
    return subprocess.run(
        [*argv, *sorted(tests)],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
