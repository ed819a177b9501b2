"""A patch: made where the right copy is, applied where the wrong one is; whatever is cut, changed
or forged in it is refused, and nothing is written outside of its place.
"""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.errors import CorruptRecordError
from kafkalog.healing.patch import opened_patch
from tests.comparing.comparing import digest, told


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "hash.key").write_bytes(bytes(32))


@pytest.fixture
def wrong(log_dir: Path) -> Path:
    return copy_sample("replicas/node2", log_dir / "node2")


@pytest.fixture
def right(log_dir: Path) -> Path:
    return copy_sample("replicas/node1", log_dir / "node1")


@pytest.fixture
def patch(right: Path, wrong: Path, tmp_path: Path) -> Path:
    path, key = tmp_path / "node2.patch", tmp_path / "hash.key"
    of_wrong = digest(wrong, tmp_path / "2.digest", key)
    words = ["compare", str(right), of_wrong, "--hash-key", str(key), "--heal"]
    assert main([*words, "--patch", str(path)]) == 1
    return path


def test_a_host_that_has_only_its_own_disk_is_healed(
    right: Path, wrong: Path, patch: Path, log_dir: Path
) -> None:
    whole = copy_sample("replicas/node1", log_dir / "kept")
    shutil.rmtree(right)
    words = ["compare", str(wrong), "--heal", "--patch", str(patch), "--topic", "*"]
    assert main(words) == 1
    assert main([*words, "--apply"]) == 0
    assert told(whole, wrong) == []


def test_a_patch_without_what_it_needs_is_refused(
    right: Path, wrong: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "new.patch")
    both = ["compare", str(right), str(wrong)]
    assert main([*both, "--patch", path]) == 2  # without --heal
    assert main([*both, "--heal", "--patch", path, "--apply", "--topic", "*"]) == 2
    assert main([*both, "--heal", "--patch", path]) == 2  # no digest
    assert "no digest that is wrong" in capsys.readouterr().err
    assert not Path(path).exists()


def unpacked(path: Path) -> int:
    with opened_patch(str(path)) as log_dirs:
        return len(log_dirs)


def test_a_patch_that_is_cut_or_changed_is_refused(patch: Path, tmp_path: Path) -> None:
    assert unpacked(patch) == 1
    data, changed = patch.read_bytes(), tmp_path / "changed"
    # Behind the last file are zeros, which tell nothing.
    end = len(data.rstrip(b"\0"))
    for at in range(0, end, 257):
        changed.write_bytes(data[:at])
        with pytest.raises(CorruptRecordError) as raised:
            unpacked(changed)
        assert raised.value.path == str(changed)
    with tarfile.open(patch) as tar:
        contents = {m.name: (m.offset_data, m.size) for m in tar.getmembers()}
    for name, (start, size) in contents.items():
        forged = bytearray(data)
        forged[start + size // 2] ^= 1
        changed.write_bytes(forged)
        with pytest.raises(CorruptRecordError):
            unpacked(changed)
        assert size, name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../outside", tarfile.REGTYPE),
        ("/tmp/outside", tarfile.REGTYPE),
        ("0/tomb-0/../../../outside.log", tarfile.REGTYPE),
        ("0/tomb-0/00000000000000000000.log", tarfile.SYMTYPE),
        ("0/tomb-0/00000000000000000000.log", tarfile.LNKTYPE),
        ("0/tomb-0/anything", tarfile.REGTYPE),
    ],
)
def test_a_forged_patch_writes_nothing_outside(tmp_path: Path, name: str, kind: bytes) -> None:
    manifest = b'{"version": 1, "files": [["%s", 3, "x"]]}' % name.encode()
    path = tmp_path / "forged"
    with tarfile.open(path, "w:") as tar:
        first = tarfile.TarInfo("manifest.json")
        first.size = len(manifest)
        tar.addfile(first, io.BytesIO(manifest))
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, "/etc/passwd"
        member.size = 3 if kind == tarfile.REGTYPE else 0
        tar.addfile(member, io.BytesIO(b"abc"))
    with pytest.raises(CorruptRecordError, match="no file of a patch"):
        unpacked(path)
    assert not list(tmp_path.parent.rglob("outside*"))
