"""The option table: what is taken, what is refused and in which words."""

from __future__ import annotations

import pytest

from kafkalog.cli.arguments import UsageError, parse_arguments, parse_verb_arguments
from kafkalog.cli.options import OPTIONS, VERBS
from kafkalog.log.inventory import TopicPartition

COMPACT = ["compact", "--log-dir", "/data"]


def test_options_become_attributes() -> None:
    args = parse_arguments(
        [
            *COMPACT, "--log-dir", "/more", "--topic", "a*", "--topic", "b",
            "--topic-partition", "orders-3", "--config", "cleanup.policy=compact",
            "--now", "1700000000000", "--kafka-version", "4.4", "--high-watermark", "0",
            "--force", "null-keys", "--workers", "2", "--json", "--apply", "--no-undo",
        ]
    )  # fmt: skip
    assert args.verb == "compact"
    assert args.log_dir == ["/data", "/more"]
    assert args.topic == ["a*", "b"]
    assert args.topic_partition == [TopicPartition("orders", 3)]
    assert args.config == ["cleanup.policy=compact"]
    assert (args.now, args.kafka_version, args.high_watermark) == (1_700_000_000_000, "4.4", 0)
    assert (args.force, args.workers) == (["null-keys"], 2)
    assert (args.json, args.apply, args.no_undo) == (True, True, True)


def test_defaults_change_nothing_and_guess_nothing() -> None:
    args = parse_arguments(COMPACT)
    assert (args.topic, args.topic_partition, args.config, args.force) == ([], [], [], [])
    assert (args.now, args.high_watermark, args.workers) == (None, None, None)
    assert args.kafka_version is None  # the disk may tell it
    assert (args.json, args.apply, args.no_undo) == (False, False, False)


def test_a_job_takes_the_same_options_without_the_verb() -> None:
    args = parse_verb_arguments(
        "compact", ["--log-dir", "/data", "--json"], prog="compact_topics.py"
    )
    assert (args.verb, args.log_dir, args.json, args.apply) == ("compact", ["/data"], True, False)
    with pytest.raises(UsageError) as caught:
        parse_verb_arguments("compact", [], prog="compact_topics.py")
    assert "compact_topics.py" in caught.value.usage


@pytest.mark.parametrize(
    ("text", "now_ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("-1", -1),
        ("0", 0),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.007", 1_700_000_000_007),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_now_is_milliseconds_or_iso(text: str, now_ms: int) -> None:
    assert parse_arguments([*COMPACT, f"--now={text}"]).now == now_ms


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "a VERB is needed"),
        (["frobnicate"], "frobnicate"),
        (["compact"], "--log-dir"),
        ([*COMPACT, "--nonsense"], "--nonsense"),
        ([*COMPACT, "--log-di", "x"], "--log-di"),
        ([*COMPACT, "--now", "yesterday"], "ISO 8601"),
        ([*COMPACT, "--kafka-version", "3.9"], "4.1 to 4.4"),
        ([*COMPACT, "--high-watermark", "-1"], "--high-watermark"),
        ([*COMPACT, "--high-watermark", str(2**63)], "--high-watermark"),
        ([*COMPACT, "--workers", "0"], "--workers"),
        ([*COMPACT, "--force", "everything"], "null-keys"),
        ([*COMPACT, "--topic-partition", "orders"], "orders-3"),
        ([*COMPACT, "--apply"], "--topic '*'"),
        (["segments", "--log-dir", "x", "--apply"], "--apply"),
    ],
)
def test_bad_usage_is_refused_with_what_helps(words: list[str], reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_arguments(words)
    assert reason in str(caught.value)


def test_apply_needs_the_topic_by_name() -> None:
    assert parse_arguments([*COMPACT, "--apply", "--topic", "*"]).apply
    with pytest.raises(UsageError, match="--topic"):
        parse_arguments([*COMPACT, "--apply", "--topic-partition", "a-0"])


LATER_OPTIONS = [
    (verb.name, option)
    for verb in VERBS
    if verb.module is not None
    for option in OPTIONS
    if verb.name in option.verbs and verb.name not in option.done
]


def test_a_verb_is_a_module_or_a_job() -> None:
    assert all((verb.module is None) is (verb.job is not None) for verb in VERBS)


def test_a_verb_that_is_a_job_names_it() -> None:
    with pytest.raises(UsageError, match=r"spark-submit jobs/export_to_delta\.py"):
        parse_arguments(["export", "--log-dir", "/data", "--table", "/lake/orders"])
    words = ["--log-dir", "/data", "--table", "t", "--option", "isolationLevel=read_committed"]
    args = parse_verb_arguments("export", words)
    assert (args.mode, args.option) == ("append", [("isolationLevel", "read_committed")])
    for wrong in (["--mode", "overwrite"], ["--option", "isolationLevel"]):
        with pytest.raises(UsageError):
            parse_verb_arguments("export", words + wrong)


@pytest.mark.parametrize(
    ("verb", "option"), LATER_OPTIONS, ids=[f"{v}{o.flag}" for v, o in LATER_OPTIONS]
)
def test_an_option_of_later_is_refused_by_name(verb: str, option: object) -> None:
    flag, metavar = option.flag, option.metavar  # type: ignore[attr-defined]
    words = [verb, "--log-dir", "/data", flag, *(["x"] if metavar else [])]
    with pytest.raises(UsageError, match=f"{flag}: not available yet"):
        parse_arguments(words)


def test_every_option_is_done_only_for_verbs_that_take_it() -> None:
    for option in OPTIONS:
        assert set(option.done) <= set(option.verbs), option.flag
    taken = [(option.flag, verb) for option in OPTIONS for verb in option.verbs]
    assert len(set(taken)) == len(taken)
