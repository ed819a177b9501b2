"""Every verb explains itself: what it does, whether it changes anything, whether it may run beside
a broker, its options, and an example that works on the samples."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

from data.copy_samples import copy_sample
from kafkalog.cli.arguments import UsageError, parse_arguments
from kafkalog.cli.completion import topic_partitions, topics
from kafkalog.cli.main import main
from kafkalog.cli.option_groups import GROUPS
from kafkalog.cli.options import OPTIONS, VERBS, Verb, options_of
from tests.support.log_builder import LogBuilder

ROOT = Path(__file__).resolve().parents[2]
CALLED = [verb for verb in VERBS if verb.module is not None]
by_verb = pytest.mark.parametrize("verb", CALLED, ids=lambda verb: verb.name)


def help_of(verb: Verb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parse_arguments([verb.name, "--help"])
    return capsys.readouterr().out


@by_verb
def test_help_says_what_a_verb_does_and_changes_in_80_columns(
    verb: Verb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = help_of(verb, capsys, monkeypatch)
    lines = text.splitlines()
    assert lines[0].startswith(f"usage: kafkalog {verb.name}")
    assert "[options]" in lines[0]
    assert lines[2].lower().startswith(verb.does[:40].lower())
    paragraph = " ".join(text.partition("options:")[0].split())
    assert "hanges" in paragraph or "Writes" in paragraph or "Removes" in paragraph
    assert "eside a broker" in paragraph
    example = text.partition("example:")[2].splitlines()
    assert [line for line in lines if len(line) > 80 and line not in example] == []


@by_verb
def test_help_has_the_options_of_the_verb_and_no_others(
    verb: Verb, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = help_of(verb, capsys, monkeypatch).partition("example:")[0]
    shown = {line.split()[0] for line in text.splitlines() if line.startswith("  --")}
    assert shown == {option.name for option in options_of(verb.name)}
    others = {option.name for option in OPTIONS} - shown
    # an option of another verb may be named as that verb's, as `undo` and `--apply` are not
    assert not {word.strip(".,;:()'") for word in text.split()} & (others - {"--apply"})
    if not any(option.name == "--apply" for option in options_of(verb.name)):
        assert "--apply" not in text


def test_every_option_stands_in_one_group() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert len(set(names)) == len(names)
    assert {option.name for option in OPTIONS} - set(names)  # the verbs' own


EXAMPLES = [verb for verb in CALLED if verb.example and verb.example != "RUN"]


@pytest.mark.parametrize("verb", EXAMPLES, ids=lambda verb: verb.name)
def test_the_example_of_a_verb_runs(
    verb: Verb,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "hash.key").write_bytes(bytes(32))
    words = shlex.split(verb.example.replace("/tmp/", f"{tmp_path}/"))
    assert main([verb.name, *words]) in (0, 1), capfd.readouterr().err
    out, err = capfd.readouterr()
    assert out + err
    assert "Traceback" not in err


def test_log_dirs_stand_behind_the_verb_or_the_option() -> None:
    for words in (["/a", "/b"], ["--log-dir", "/a", "--log-dir", "/b"], ["/a", "--log-dir", "/b"]):
        assert parse_arguments(["verify", *words]).log_dir == ["/a", "/b"]
    args = parse_arguments(["why", "orders-3", "--now", "2026-12-01", "/a", "--log-dir", "/b"])
    assert (args.paths, args.log_dir) == (["orders-3"], ["/a", "/b"])
    args = parse_arguments(["sql", "--sql", "SELECT 1", "/a", "--log-dir", "/b"])
    assert args.paths == args.log_dir == ["/a", "/b"]
    with pytest.raises(UsageError, match="why needs a log dir"):
        parse_arguments(["why", "orders-3"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["comapct", "/a"], "did you mean compact?"),
        (["compact", "/a", "--tpoic", "x"], "did you mean --topic"),
        (["compact", "/a", "--strategy", "within-tasks"], "did you mean within-task"),
    ],
)
def test_a_wrong_name_is_answered_with_the_near_one(words: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_arguments(words)


def test_a_wrong_topic_is_answered_with_the_near_one(
    log_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LogBuilder(log_dir, "orders-0").batch(("k", "v")).write()
    assert main(["segments", str(log_dir), "--topic", "order"]) == 2
    assert "did you mean orders?" in capsys.readouterr().err


@by_verb
def test_a_usage_error_shows_the_usage_of_its_verb(
    verb: Verb, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb.name, "--nonsense"]) == 2
    assert f"usage: kafkalog {verb.name}" in capsys.readouterr().err


def test_no_verb_in_a_log_dir_names_info(
    log_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    LogBuilder(log_dir, "orders-0").batch(("k", "v")).write()
    monkeypatch.chdir(log_dir)
    assert main([]) == 2
    assert "kafkalog info ." in capsys.readouterr().err
    monkeypatch.chdir(log_dir / "orders-0")
    assert main([]) == 2
    assert "a VERB is needed" in capsys.readouterr().err


def test_topics_are_completed_from_the_log_dirs_of_the_line(log_dir: Path) -> None:
    for name in ("orders-0", "orders-1", "other-0"):
        LogBuilder(log_dir, name).batch(("k", "v")).write()
    args = parse_arguments(["segments", str(log_dir)])
    assert topics("or", args) == ["orders"]
    assert topic_partitions("o", args) == ["orders-0", "orders-1", "other-0"]
    for nothing in (["/nowhere"], [str(log_dir / "orders-0" / "x")]):
        assert topics("", parse_arguments(["segments", *nothing])) == []


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("kafkalog au", {"audit "}),
        ("kafkalog segments LOGS --topic-", {"--topic-partition "}),
        ("kafkalog segments LOGS --topic or", {"orders "}),
        ("kafkalog compact LOGS --strategy w", {"within-task "}),
        ("kafkalog segments /nowhere --topic or", set()),
    ],
)
def test_the_shell_is_offered_what_fits(line: str, offered: set[str], log_dir: Path) -> None:
    command = shutil.which("kafkalog", path=str(ROOT / ".venv" / "bin")) or shutil.which("kafkalog")
    assert command is not None
    LogBuilder(log_dir, "orders-0").batch(("k", "v")).write()
    line = line.replace("LOGS", str(log_dir))
    read, write = os.pipe()
    environment = {
        **os.environ, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line,
        "COMP_POINT": str(len(line)), "_ARGCOMPLETE_SHELL": "bash",
    }  # fmt: skip
    if (child := os.fork()) == 0:
        os.dup2(write, 8)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 9)
        os.execve(command, [command], environment)
    os.close(write)
    with os.fdopen(read) as answered:
        found = {word for word in answered.read().split("\n") if word}
    assert os.waitpid(child, 0)[1] == 0
    assert found == offered


def test_a_verb_of_a_job_has_its_help_and_its_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parse_arguments(["export", "--help"])
    text = capsys.readouterr().out
    assert text.startswith("usage: export_to_delta.py DIR… [options]\n\nAppend or merge")
    assert "spark-submit --properties-file spark_conf/packages.conf jobs/export_to_delta.py" in text
    with pytest.raises(UsageError, match="export needs Spark: spark-submit"):
        parse_arguments(["export", "/a"])


def test_runs_are_those_of_a_log_dir_where_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy_sample("cleaning/before", tmp_path / "a")
    run_dir = ["--run-dir", str(tmp_path / "runs")]
    asked = ["--topic", "accounts", "--now", "2026-12-01", "--force", "config-differs", "--apply"]
    settings = ["--config", "min.compaction.lag.ms=0"]
    assert main(["compact", str(tmp_path / "a"), *asked, *settings, *run_dir]) == 0
    capsys.readouterr()
    for log_dir, found in (("a", 1), ("b", 0)):
        assert main(["runs", "--json", "--log-dir", str(tmp_path / log_dir), *run_dir]) == 0
        assert len(json.loads(capsys.readouterr().out)["runs"]) == found


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["undo"], "usage: kafkalog undo RUN [options]"),
        (["runs", "--tpoic"], "usage: kafkalog runs [RUN…] [options]"),
        (["sql", ".", "--memory", "1KiB"], "memory of 1.0 KiB is too little: 256.0 MiB is the"),
    ],
)
def test_usage_says_what_is_taken(
    words: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert reason in capsys.readouterr().err
