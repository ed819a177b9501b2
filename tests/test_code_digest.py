"""Workers run the code of their driver: a task with another digest writes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kafkalog
from kafkalog import code_digest as module
from kafkalog.cli.main import report_error
from kafkalog.code_digest import check_same_code, code_digest
from kafkalog.errors import CodeDiffersError
from kafkalog.resources.process_pool import in_processes

PACKAGE = Path(kafkalog.__file__).parent


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with a copy of the package."""
    hidden = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PACKAGE, tmp_path / "kafkalog", ignore=hidden)
    return tmp_path


def digest_of(folder: Path) -> str:
    command = "from kafkalog.code_digest import code_digest; print(code_digest())"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize(
    "changed", ["kernels/hash_keys.py", "planning/compaction_plan.py", "swap/swap_template.sh"]
)
def test_a_copy_has_the_same_digest_until_a_file_of_it_changes(other: Path, changed: str) -> None:
    assert digest_of(other) == code_digest()
    file = other / "kafkalog" / changed
    file.write_bytes(file.read_bytes() + b"\n# other\n")
    assert digest_of(other) != code_digest()
    file.write_bytes((PACKAGE / changed).read_bytes())
    (other / "kafkalog" / "new.py").touch()
    assert digest_of(other) != code_digest()


def test_a_zipped_package_has_the_same_digest(other: Path, tmp_path: Path) -> None:
    """As `--py-files` sends it."""
    archive = shutil.make_archive(str(tmp_path / "sent"), "zip", other, "kafkalog")
    command = "from kafkalog.code_digest import code_digest; print(code_digest())"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd="/", capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": archive},
    )  # fmt: skip
    assert done.stdout.strip() == code_digest()


@pytest.mark.parametrize("archived", [False, True])
def test_what_stat_tells_is_enough_for_one_machine(
    other: Path, tmp_path: Path, *, archived: bool
) -> None:
    place = str(other)
    if archived:
        place = shutil.make_archive(str(tmp_path / "sent"), "zip", other, "kafkalog")
    command = "from kafkalog.code_digest import code_on_disk; print(code_on_disk())"

    def seen() -> str:
        return subprocess.run(
            [sys.executable, "-c", command], cwd="/", capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": place},
        ).stdout.strip()  # fmt: skip

    before = seen()
    assert seen() == before
    # Another folder is other files; what is sent in an archive is known by its bytes.
    assert (before == code_digest()) is archived
    if not archived:
        file = other / "kafkalog" / "kernels" / "hash_keys.py"
        file.write_bytes(file.read_bytes()[:-1] + b"#")
        assert seen() != before


def _touch(path: Path) -> str:
    path.touch()
    return "done"


def test_a_worker_process_with_other_code_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = os.getpid()
    real = module._seen.__wrapped__
    monkeypatch.setattr(module, "_seen", lambda pid: "0.1.0 (x)" if pid == driver else real(pid))
    tasks = [tmp_path / name for name in ("a", "b")]
    with pytest.raises(CodeDiffersError, match=r"made by kafkalog 0\.1\.0 \(x\), this task runs"):
        list(in_processes(tasks, _touch, 2, str))
    assert not any(task.exists() for task in tasks)


def test_what_is_said_names_both_and_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    check_same_code(code_digest())
    with pytest.raises(CodeDiffersError) as raised:
        check_same_code("9.9.9 (0123456789abcdef)")
    assert report_error(raised.value) == 3
    err = capsys.readouterr().err
    for part in ("9.9.9 (0123456789abcdef)", code_digest(), str(PACKAGE), "same kafkalog"):
        assert part in err
