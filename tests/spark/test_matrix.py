"""What the documents say of the releases of Spark is what `make matrix` found on them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tests.spark.test_releases  # noqa: F401 (its marks fill FEATURES)
from tests.spark.releases import FAILED, FEATURES, RELEASES, THERE, recorded

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "matrix.sh"


@pytest.mark.parametrize("release", RELEASES)
def test_recorded_run_has_each_feature_as_its_test_is_marked(release: str) -> None:
    """A feature that is new, gone or marked for other releases needs a run of `make matrix`."""
    answers = recorded(release)["features"]
    assert set(answers) == set(FEATURES)
    assert FAILED not in answers.values()
    there = {name for name, answer in answers.items() if answer == THERE}
    assert there == {name for name, releases in FEATURES.items() if release in releases}


def test_recorded_runs_are_of_the_patches_that_make_matrix_installs() -> None:
    installed = re.search(r"RELEASES=\((\d[^)]*)\)", SCRIPT.read_text(encoding="utf-8"))
    assert installed is not None
    assert installed[1].split() == [recorded(release)["spark"] for release in RELEASES]


def test_only_one_module_translates_schemas() -> None:
    """pyspark's own functions take other arguments, with other defaults, on each release."""
    users = {
        path.relative_to(ROOT / "kafkalog").as_posix()
        for path in (ROOT / "kafkalog").rglob("*.py")
        if "pyspark.sql.pandas.types" in path.read_text(encoding="utf-8")
    }
    assert users == {"spark/releases.py"}
