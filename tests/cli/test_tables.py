"""Tables fit the terminal; in a pipe and as CSV they have everything; times are ISO text."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
import shutil
import time
from pathlib import Path

import pexpect
import pytest

from kafkalog.cli.main import main
from kafkalog.cli.options import VERBS, Verb, options_of
from tests.support.log_builder import START_MS, LogBuilder

ROOT = Path(__file__).resolve().parents[2]
TABLES = [v for v in VERBS if v.module and any(o.name == "--wide" for o in options_of(v.name))]
WITH_EXAMPLE = [verb for verb in TABLES if verb.example not in ("", "RUN")]


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def logs(log_dir: Path) -> Path:
    LogBuilder(log_dir, "orders-0").batch(("k", "v"), ("l", "w")).segment().batch(
        ("k", "x")
    ).write()
    return log_dir


@pytest.mark.parametrize("verb", WITH_EXAMPLE, ids=lambda verb: verb.name)
def test_every_table_fits_80_columns(
    verb: Verb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # the examples of verify and bucket find nothing
    example = "data/samples/zookeeper/broker-2" if verb.name == "verify" else verb.example
    if verb.name == "bucket":
        shutil.copytree("data/samples/tiered/remote", tmp_path / "remote")
        min((tmp_path / "remote").rglob("*.log")).unlink()
        example = example.replace("data/samples/tiered/remote", "/tmp/remote")
    (tmp_path / "hash.key").write_bytes(bytes(32))
    words = shlex.split(example.replace("/tmp/", f"{tmp_path}/"))
    assert main([verb.name, *words]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1
    assert [line for line in lines if len(line) > 80 and "kafkalog " not in line] == []


def test_what_does_not_fit_is_named_and_is_there_when_asked_for(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["segments", str(logs)]) == 0
    narrow, said = capsys.readouterr()
    assert narrow.split("\n")[0].split()[:4] == ["topic", "partition", "baseOffset", "nextOffset"]
    assert "left out: " in said
    assert "path" in said
    assert main(["segments", str(logs), "--wide"]) == 0
    wide, said = capsys.readouterr()
    assert "path" in wide.split("\n")[0]
    assert said == ""
    assert main(["segments", str(logs), "--columns", "path,TOPIC"]) == 0
    assert capsys.readouterr().out.split("\n")[0].split() == ["path", "topic"]
    assert main(["segments", str(logs), "--columns", "topc"]) == 2
    assert "did you mean topic?" in capsys.readouterr().err


def test_a_long_text_goes_on_below_itself_and_nothing_of_it_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "compact",
        "data/samples/cleaning/before",
        "--now",
        "2026-12-01",
        "--topic",
        "accounts",
    ]
    assert main(words) in (0, 1)
    wide = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    assert main(words) in (0, 1)
    narrow = capsys.readouterr().out
    column = narrow.split("\n")[0].index("reason")
    text = "".join(line[column:].strip() for line in narrow.splitlines()[1:])
    reason = "".join(wide.splitlines()[1].partition("nothing")[2].split())
    assert reason in text.replace(" ", "")


def test_csv_has_plain_values_and_json_is_json(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["segments", str(logs), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["segments", str(logs), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == document
    assert main(["segments", str(logs), "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == len(document["segments"]) == 2
    for row, expected in zip(rows, document["segments"], strict=True):
        for name, text in row.items():
            value = expected[name]
            plain = str(value).lower() if isinstance(value, bool) else value
            assert text == ("" if plain is None else str(plain))
    assert main(["segments", str(logs), "--format", "csv", "--json"]) == 2


def test_csv_has_a_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["info", "data/samples/broker", "--now", "2026-12-01", "--format", "csv"]
    assert main(words) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert {row["topic"]: row["codecs"] for row in rows}["codec-mixed"] == '["none","zstd"]'


def test_times_are_iso_in_the_zone_of_the_machine_or_utc(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["segments", str(logs), "--columns", "smallestTimestampMs"]
    assert START_MS == 1_700_000_000_000
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert main(words) == 0
        assert capsys.readouterr().out.split()[1] == "2023-11-15T03:43:20+05:30"
        assert main([*words, "--utc"]) == 0
        assert capsys.readouterr().out.split()[1] == "2023-11-14T22:13:20Z"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("no_color", [None, "1"])
def test_colours_are_for_terminals_that_want_them(no_color: str | None, logs: Path) -> None:
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": no_color or ""}
    (logs / "lost+found").mkdir()
    command = str(ROOT / ".venv" / "bin" / "kafkalog")
    if not Path(command).exists():
        command = "kafkalog"
    out, code = pexpect.run(
        f"{command} info {logs}", env=environment, withexitstatus=True, timeout=600
    )
    assert code == 1
    assert (b"\x1b[31merror" in out) is (no_color is None)


def test_a_pipe_has_no_colours_and_all_columns(
    logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert main(["segments", str(logs)]) == 0
    out, err = capsys.readouterr()
    assert "\x1b" not in out
    assert "path" in out.split("\n")[0]
    assert err == ""


def test_the_payload_of_a_dump_has_a_new_name_and_the_old_one(
    logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dump", "--print-data-log", str(next((logs / "orders-0").glob("*0.log")))]
    for kind, shown in (("hex", "6b"), ("base64", "aw==")):
        found = []
        for option in ("--payload", "--format"):
            assert main([*words, option, kind]) == 0
            found.append(capsys.readouterr().out)
        assert found[0] == found[1]
        assert f"key: {shown}" in found[0]
    assert main([*words, "--payload", "hex", "--format", "hex"]) == 2
