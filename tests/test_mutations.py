"""Rules whose tests are tested: break the rule by a line, and its test must fail. `make test-all`
takes a third of them, others whenever a file has changed; `make soak` takes the rest.

The package and its tests are copied once. The tests of all rules pass there; then, one after the
other, a rule is broken and its test run in a process of its own (`support/forked_tests.py`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.forked_tests import ForkedTests

ROOT = Path(__file__).parents[1]
MUTATIONS: list[dict[str, str]] = tomllib.loads((ROOT / "tests/mutations.toml").read_text())[
    "mutation"
]
TEST_FAILED = 1  # pytest's exit code; errors of collection or usage have others
ONE_IN = 3  # so many are in `make test-all`; `make soak` has the rest


def is_sampled(mutation: dict[str, str]) -> bool:
    """Whether a mutation is in `make test-all`: others are whenever its file changes."""
    source = (ROOT / mutation["file"]).read_bytes() + mutation["rule"].encode()
    return hashlib.sha256(source).digest()[0] % ONE_IN == 0


SAMPLE = [mutation for mutation in MUTATIONS if is_sampled(mutation)]


@dataclass(frozen=True)
class Copy:
    """A copy of the project in which the tests of all rules pass."""

    project: Path
    tests: ForkedTests


@pytest.fixture(scope="module")
def copy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Copy]:
    project = tmp_path_factory.mktemp("mutated")
    ignored = shutil.ignore_patterns("__pycache__", "java")
    for name in ("kafkalog", "tests"):
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", project)
    tests = ForkedTests(project)
    try:
        calls = [getattr(item, "callspec", None) for item in request.session.items]
        asked = {c.params["mutation"]["test"] for c in calls if c and "mutation" in c.params}
        code, output = tests.run(asked)
        assert code == 0, output[-3000:]
        yield Copy(project, tests)
    finally:
        tests.close()


def test_each_rule_is_listed_once() -> None:
    assert len({mutation["rule"] for mutation in MUTATIONS}) == len(MUTATIONS) >= 90


def broken(source: str, mutation: dict[str, str]) -> str:
    """The source with the rule broken; its lines, one or more, are there once."""
    lines = source.split("\n")
    wanted = mutation["line"].split("\n")
    stripped = [line.strip() for line in lines]
    (first,) = (n for n in range(len(lines)) if stripped[n : n + len(wanted)] == wanted)
    indentation = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    becomes = [indentation + line for line in mutation["becomes"].split("\n")]
    return "\n".join(lines[:first] + becomes + lines[first + len(wanted) :])


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[m["rule"] for m in MUTATIONS])
def test_a_rule_names_lines_that_are_there_once(mutation: dict[str, str]) -> None:
    source = (ROOT / mutation["file"]).read_text()
    assert broken(source, mutation) != source


@pytest.mark.parametrize(
    "mutation",
    [
        pytest.param(
            m, id=m["rule"], marks=pytest.mark.thorough if m in SAMPLE else pytest.mark.soak
        )
        for m in MUTATIONS
    ],
)
def test_a_broken_rule_is_noticed(copy: Copy, mutation: dict[str, str]) -> None:
    file = copy.project / mutation["file"]
    source = file.read_text()
    write_anew(file, broken(source, mutation))
    try:
        code, output = copy.tests.run([mutation["test"]])
    finally:
        write_anew(file, source)
    assert code == TEST_FAILED, output[-3000:]


def write_anew(file: Path, source: str) -> None:
    """Write a module so that no byte code of before passes for it: that goes by size and second."""
    second = int(file.stat().st_mtime) + 1
    file.write_text(source)
    os.utime(file, (second, second))
