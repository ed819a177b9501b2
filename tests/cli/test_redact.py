"""`--redact`: no output of any verb holds what is in keys, values, headers, or what coordinators
keep of clients and groups.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkalog.cli.main import main
from kafkalog.cli.options import options_of
from tests.support.canaries import canaries_in, canary, write_canaries
from tests.support.log_builder import START_MS

DAY_MS = 86_400_000
NOW = ("--now", str(START_MS + 30 * DAY_MS))
COMPACT = ("--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=0")
DELETE = ("--config", "cleanup.policy=delete", "--config", "retention.ms=1000")
DECODERS = (
    *("offsets", "transaction-log", "share-group-state", "remote-log-metadata"),
    "cluster-metadata",
)
DUMPS = (
    (),
    ("--deep-iteration",),
    ("--deep-iteration", "--json"),
    ("--print-data-log",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--print-data-log", "--format", "hex"),
    ("--print-data-log", "--format", "base64"),
    ("--print-data-log", "--json"),
    ("--print-data-log", "--json", "--format", "text"),
    ("--hex",),
    *((f"--{name}-decoder",) for name in DECODERS),
)
AUDITS = (
    ("--contents",),
    ("--contents", "--estimate", "--what-if", "cleanup.policy=compact"),
    ("--contents", "--json"),
    ("--estimate", "--json", "--before", str(START_MS + DAY_MS), "--capacity", "1GiB"),
)
VERBS = (
    *(("audit", *words) for words in AUDITS),
    ("info",),
    ("info", "--json"),
    ("segments",),
    ("lag",),
    ("lag", "--json"),
    ("segments", "--json"),
    ("verify",),
    ("verify", "--json"),
    ("bucket", "--remote-dir", "data/samples/tiered/remote", "--deep", "--json"),
    ("recover",),
    ("recover", "--json"),
    ("compact", *COMPACT, "--json"),
    ("compact", *COMPACT),
    ("retain", *DELETE, "--json"),
    ("retain", *DELETE),
    ("cluster",),
    ("cluster", "--json"),
    *(
        ("why", where, *words, *settings)
        for settings in ((*COMPACT, "--json"), DELETE)
        for where, *words in (
            ("plain-0",),
            ("plain-0", "--offset", "3"),
            ("keyed-0", "--key", f"{canary('key')}1"),
            ("keyed-0", "--key", canary("not there")),
            ("damaged-0", "--offset", "0"),
            ("__consumer_offsets-0",),
        )
    ),
)
CHANGES = (
    ("compact", *COMPACT, "--apply"),
    ("compact", *COMPACT, "--apply", "--force", "null-keys", "--verify", "deep"),
    ("compact", *COMPACT, "--apply", "--force", "null-keys", "--on-corrupt-batch", "keep"),
    ("retain", *DELETE, "--apply"),
    ("recover", "--apply"),
)


@pytest.fixture(scope="module")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("canaries")
    write_canaries(path)
    return path


@pytest.fixture
def copy(canaries: Path, log_dir: Path) -> Path:
    shutil.copytree(canaries, log_dir / "data")
    return log_dir / "data"


def outputs(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, bytes]:
    """What a command writes on stdout and stderr."""
    capfd.readouterr()
    assert main(words) != 4
    out, err = capfd.readouterr()
    return {"stdout": out.encode("utf-8", "surrogateescape"), "stderr": err.encode()}


def files(directory: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path), path.read_bytes()


def told(found: dict[str, bytes]) -> dict[str, set[str]]:
    """Where canaries are."""
    return {name: names for name, data in found.items() if (names := canaries_in(data))}


@pytest.mark.parametrize("words", DUMPS, ids=" ".join)
def test_a_dump_holds_no_canary(
    canaries: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    dirs = [str(path) for path in sorted(canaries.iterdir()) if path.is_dir()]
    found = outputs(capfd, "dump", "--redact", *words, *dirs)
    assert b"plain-0" in found["stdout"] or b'"type"' in found["stdout"]
    assert told(found) == {}


def test_the_search_finds_what_is_not_redacted(
    canaries: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for words in (w for w in DUMPS if "--print-data-log" in w or "--hex" in w):
        assert told(outputs(capfd, "dump", *words, str(canaries / "plain-0"))), words
    audit = ("audit", "--log-dir", str(canaries), *NOW, "--contents", "--json", "--run-dir")
    found = outputs(capfd, *audit, str(canaries.parent / "runs"))
    assert told(found)
    for kind in (b"busy-committer", b"committed-beyond-end", b"committed-below-start"):
        assert kind in found["stdout"]


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words[:5]))
def test_a_verb_that_changes_nothing_holds_no_canary(
    canaries: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    taken = {option.name for option in options_of(words[0])}
    more = ["--log-dir", str(canaries), "--redact"]
    more += NOW if "--now" in taken and words[0] != "cluster" else ()
    more += ["--run-dir", str(tmp_path / "runs")] if "--run-dir" in taken else []
    more += ["--report", str(tmp_path / "page.html")] if "--report" in taken else []
    more += ["--workers", "1"] if "--workers" in taken else []
    found = outputs(capfd, *words, *more)
    assert told(found | dict(files(tmp_path))) == {}
    if "--report" in taken:
        # what an audit without --redact keeps is not taken over
        plain = [word for word in (*words, *more) if word != "--redact"]
        outputs(capfd, *plain)
        assert told(outputs(capfd, *words, *more) | dict(files(tmp_path / "page.html"))) == {}


@pytest.mark.parametrize("words", CHANGES, ids=lambda words: " ".join(words[:1] + words[-3:]))
@pytest.mark.parametrize("shape", [(), ("--json",)], ids=["table", "json"])
def test_a_verb_that_changes_a_log_and_what_it_keeps_hold_no_canary(
    copy: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    shape: tuple[str, ...],
) -> None:
    runs = tmp_path / "runs"
    rest = ["--log-dir", str(copy), "--topic", "*", "--redact", "--run-dir", str(runs), *shape]
    rest += NOW if words[0] != "recover" else ()
    found = outputs(capfd, *words, *rest)
    kept = dict(files(tmp_path))
    # second names of replaced files are the log itself
    kept |= {n: d for n, d in files(copy) if ".log" not in Path(n).name}
    for verb in ("runs", "undo", "purge"):
        for name, data in outputs(capfd, verb, "--run-dir", str(runs), *shape).items():
            found[f"{verb} {name}"] = data
    assert told(found | kept) == {}


def test_compact_and_salvage_into_a_directory_hold_no_canary_but_in_their_logs(
    copy: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("compact", *COMPACT, "--force", "null-keys", "--output", str(tmp_path / "out"))
    found = outputs(
        capfd, *words, *NOW, "--topic", "*", "--log-dir", str(copy), "--redact", "--run-dir",
        str(tmp_path / "runs"),
    )  # fmt: skip
    more = outputs(
        capfd, "salvage", "--log-dir", str(copy), "--redact", "--output", str(tmp_path / "saved")
    )
    found |= {f"salvage {name}": data for name, data in more.items()}
    kept = {n: d for n, d in files(tmp_path) if ".log" not in Path(n).name}
    assert kept
    assert told(found | kept) == {}
