"""What happens where a package's functions cannot be called by address: Python calls them, and
every verb says and does the same.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from data.copy_samples import copy_sample
from kafkalog.cli.main import main
from kafkalog.format import checksum
from kafkalog.kernels.jit import INTERPRETED
from kafkalog.native import (
    batch_headers,
    checksums,
    codec_batches,
    codec_functions,
    directory_entries,
    functions,
)
from kafkalog.native.functions import address_of
from tests.conftest import SAMPLES_NOW_MS

NOW = ("--now", str(SAMPLES_NOW_MS))
NAMES = ("ZSTD_decompressDCtx", "ZSTD_compress2", "LZ4_decompress_safe", "LZ4F_compressFrame",
         "crc32c_extend", "crc_fast_crc32_iscsi", "pread", "getdents64")  # fmt: skip
# One number in, one number out: called in place of any of them it changes nothing in memory.
SOMETHING_ELSE = address_of(None, "labs")


def no_such_symbol(*_: object) -> int:
    raise AttributeError("undefined symbol")


def something_else(*_: object) -> int:
    return SOMETHING_ELSE


def no_such_module(name: str) -> object:
    raise ImportError(f"no module named {name}")


def look_again(patch: pytest.MonkeyPatch) -> list[str]:
    """Find all functions anew, as at import; what was warned of."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        found = codec_batches.find_functions()
        extend = functions.tried_out("crc32c_extend", checksums._find, checksums._works)
        whole = checksums.find_whole()
        pread = functions.tried_out("pread", batch_headers._find, batch_headers._works)
        listing = directory_entries.find_functions()
    patch.setattr(codec_batches, "_functions", found)
    patch.setattr(checksums, "_extend", extend)
    patch.setattr(checksums, "_whole", whole)
    patch.setattr(batch_headers, "_pread", pread)
    patch.setattr(directory_entries, "_functions", listing)
    assert not any((*found, extend, whole, pread, *listing))
    return [str(warning.message) for warning in warned]


def hide(patch: pytest.MonkeyPatch, address: Callable[..., int]) -> None:
    for module in (codec_functions, checksums, batch_headers, directory_entries):
        patch.setattr(module, "address_of", address)
    patch.setattr(codec_functions, "_zstd_address", address)


@pytest.mark.parametrize("found", [no_such_symbol, something_else])
def test_a_function_that_is_missing_or_wrong_is_not_called_and_said(
    monkeypatch: pytest.MonkeyPatch, found: Callable[..., int]
) -> None:
    hide(monkeypatch, found)
    said = look_again(monkeypatch)
    reason = "does not give" if found is something_else else "undefined symbol"
    assert len(said) == len(NAMES)
    for name, text in zip(NAMES, said, strict=True):
        assert text.startswith(name)
        assert reason in text


def test_a_package_without_its_module_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec_functions, "import_module", no_such_module)
    with pytest.warns(RuntimeWarning, match="no module named") as warned:
        assert not any(codec_batches.find_functions())
    assert len(warned) == 4


def test_without_obstore_google_computes_checksums_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checksums, "find_spec", lambda _: None)
    with pytest.warns(RuntimeWarning, match=r"no module obstore.*google-crc32c does its work"):
        assert checksums.find_whole() == 0


def test_one_wrong_checksum_of_any_length_is_enough_not_to_call_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = []

    def wrong_of_one(data: NDArray[np.uint8]) -> int:
        lengths.append(data.size)
        return checksum.crc32c(data) ^ (data.size == 65537)

    monkeypatch.setattr(checksums, "crc32c", wrong_of_one)
    with pytest.warns(RuntimeWarning, match="does not give what it should"):
        assert checksums.find_whole() == 0
    assert {0, 1, 15, 16, 17, 63, 64, 127, 128, 255, 256, 1023, 4096, 65537} <= set(lengths)


def test_looking_for_it_does_not_run_obstore() -> None:
    """A process that has it in it is not forked any more."""
    code = (
        "import sys\n"
        "from kafkalog.native import checksums\n"
        "assert checksums._whole\n"
        "assert 'obstore' not in sys.modules\n"
        "import obstore\n"
        "assert obstore.store.MemoryStore().put('a', b'b')\n"
        "assert checksums.find_whole() == checksums._whole\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("number", [9_999, 20_000])
def test_a_library_of_another_major_version_is_not_called(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(codec_functions.lz4, "library_version_number", lambda: number)
    with pytest.warns(RuntimeWarning, match=f"lz4 of version number {number}") as warned:
        found = codec_batches.find_functions()
    assert len(warned) == 2
    assert not found.lz4_decompress
    assert not found.lz4_compress
    assert found.zstd_decompress
    assert found.zstd_compress


# -- every verb ----------------------------------------------------------------------------------


def verbs(logs: Path) -> Iterator[list[str]]:
    """All that need no Spark session, on copies of a broker's log dirs below `logs`."""
    broker, cleaning = str(logs / "broker"), str(logs / "cleaning")
    runs = ("--run-dir", str(logs / "runs"))
    segment = sorted((logs / "broker" / "codec-zstd-0").glob("*.log"))[0]
    yield ["segments", "--log-dir", broker, "--json"]
    yield ["verify", "--log-dir", broker, "--json", *runs]
    yield ["audit", "--log-dir", broker, "--json", *NOW, *runs]
    yield ["cluster", "--log-dir", broker, "--json", *NOW]
    yield ["dump", "--files", str(segment), "--json"]
    yield ["recover", "--log-dir", broker, "--json", *NOW, *runs]
    yield ["retain", "--log-dir", broker, "--json", *NOW, *runs]
    yield ["why", "compacted-0", "--log-dir", broker, "--json", *NOW]
    yield ["salvage", "--log-dir", broker, "--json", "--output", str(logs / "salvaged")]
    apply = ["--log-dir", cleaning, "--apply", "--topic", "*", "--force", "config-differs"]
    yield ["compact", *apply, "--json", *NOW, *runs, "--workers", "1"]
    yield ["verify", "--log-dir", cleaning, "--json", *runs]
    yield ["runs", "--json", *runs]


def said(text: str) -> str:
    """Output without how long things took and what a run is called."""
    text = re.sub(r'("\w*[sS]econds?\w*"): [0-9.]+', r"\1: _", text)
    text = re.sub(r'"started": "[^"]*"', '"started": _', text)
    return re.sub(r"\b[0-9a-f]{12,}\b|\b\d{8}T\d{6}\S*", "_", text)


def everything(
    parent: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[list[tuple[str, int, list[str]]], dict[str, str]]:
    """(verb, exit code, output) of each, and the digests of the files they leave."""
    logs = parent / "logs"
    copy_sample("broker", logs / "broker")
    copy_sample("cleaning/before", logs / "cleaning")
    answers = []
    for words in verbs(logs):
        code = main(words)
        out, err = capsys.readouterr()
        assert code in (0, 1), err
        answers.append((words[0], code, said(out).splitlines()))
    files = [path for name in ("broker", "cleaning") for path in (logs / name).rglob("*.log")]
    digests = {
        str(path.relative_to(logs)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    (parent / "logs").rename(parent / f"logs-{len(list(parent.iterdir()))}")
    return answers, digests


@pytest.mark.skipif(INTERPRETED, reason="whole commands in plain Python take minutes")
def test_every_verb_says_and_does_the_same_without_any_of_them(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = everything(log_dir, capsys)
    hide(monkeypatch, no_such_symbol)
    look_again(monkeypatch)
    found = everything(log_dir, capsys)
    assert found[1] == expected[1]
    for (verb, *answer), (_, *as_ever) in zip(found[0], expected[0], strict=True):
        assert answer == as_ever, verb


@pytest.mark.skipif(INTERPRETED, reason="whole commands in plain Python take minutes")
def test_a_command_begins_where_packages_lack_their_functions(log_dir: Path) -> None:
    """A process of its own, with CRC-32C in Python alone: the import is what failed once."""
    copy_sample("broker", log_dir / "broker")
    code = (
        "import sys, zstandard\n"
        "sys.modules['zstandard._cffi'] = None\n"
        "from kafkalog.native import functions\n"
        "def address_of(*_): raise AttributeError('undefined symbol')\n"
        "functions.address_of = address_of\n"
        "from kafkalog.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    (log, *_) = sorted((log_dir / "broker" / "orders-0").glob("*.log"))
    words = ["dump", "--files", str(log), "--print-data-log", "--json"]
    answers = []
    for command in (["-m", "kafkalog"], ["-c", code]):
        environment = {"CRC32C_PURE_PYTHON": "1"} if command[0] == "-c" else {}
        done = subprocess.run(
            [sys.executable, *command, *words],
            capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answers.append(done.stdout)
    assert answers[0] == answers[1] != ""
    # What lists directories is not even looked for by a verb of files.
    # Nor is crc-fast, where google-crc32c has no C library.
    names = set(NAMES) - {"crc_fast_crc32_iscsi", "getdents64"}
    assert all(name in done.stderr for name in names), done.stderr


def test_headers_come_with_the_window_where_pread_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch_headers, "_pread", functions.Pread(0))
    headers, positions = np.zeros(100, np.uint8), np.zeros(1, np.int64)
    assert batch_headers.read_headers(0, 50, 1000, headers, positions) == (0, 50)
