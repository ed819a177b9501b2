"""What each release of Spark has, as marks on the tests that show it, and what runs said of it.

A feature's test runs on every release: where the feature is there it has to pass, elsewhere it has
to be refused with an error that names it. `make matrix` keeps what each run said in
`matrix/RELEASE.json`, and the documents' table is made of those files: of what was run, and not of
the marks.
"""

from __future__ import annotations

import functools
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException

from kafkalog.errors import InvalidConfigError
from kafkalog.spark.releases import RELEASE

RELEASES = ("3.5", "4.0", "4.1", "4.2", "4.3")
# Feature → the releases that have it.
FEATURES: dict[str, tuple[str, ...]] = {}
# What the last whole run on each release said.
RECORDED = Path(__file__).with_name("matrix")
# Where a run says it, set by `make matrix` alone.
_RESULTS = "KAFKALOG_MATRIX"
THERE, FAILED = "yes", "failed"


def feature(
    name: str, *, since: str = "3.5", until: str = "4.3", refused: str = ""
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A test of a feature that the releases `since` to `until` have. On others the error has to say
    `refused`."""
    there = RELEASES[RELEASES.index(since) : RELEASES.index(until) + 1]
    FEATURES[name] = there

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> None:
            _record(name, FAILED)
            if RELEASE in there:
                test(*args, **kwargs)
                _record(name, THERE)
                return
            with pytest.raises((InvalidConfigError, PySparkException), match=refused) as raised:
                test(*args, **kwargs)
            _record(name, f"refused: {_sentence(raised.value)}")

        return pytest.mark.matrix(run)

    return mark


def _record(name: str, answer: str) -> None:
    folder = os.environ.get(_RESULTS)
    if folder is None:
        return
    path = Path(folder, f"{RELEASE}.json")
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"features": {}}
    answers = {**found["features"], name: answer}
    document = {
        "spark": pyspark.__version__,
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "features": {each: answers[each] for each in FEATURES if each in answers},
    }
    text = json.dumps(document, ensure_ascii=False, indent=2)
    path.write_text(text + "\n", encoding="utf-8")


def _sentence(error: Exception) -> str:
    """What a user reads last: our own words where Spark carries them, else its first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ours = [line for line in lines if InvalidConfigError.__name__ in line]
    return (ours or lines)[0].rpartition(f"{InvalidConfigError.__name__}: ")[2]


def recorded(release: str) -> dict[str, Any]:
    """What the last whole run on a release said: spark, python, pyarrow, and by feature "yes",
    "failed" or "refused: …"."""
    text = RECORDED.joinpath(f"{release}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
