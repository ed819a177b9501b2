"""The option table: what is taken, what is refused and in which words."""

from __future__ import annotations

import pytest

from kafkalog.cli.arguments import UsageError, parse_arguments, parse_verb_arguments
from kafkalog.cli.options import OPTIONS, VERBS, options_of
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


def test_words_are_taken_in_any_case() -> None:
    args = parse_arguments(["sql", "--mode", "permissive", "--format", "JSON", "/data"])
    assert (args.mode, args.format) == ("PERMISSIVE", "json")


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


NOT_OF_THE_VERB = [
    (verb, option.name, option.takers)
    for verb in VERBS
    if verb.module is not None
    for option in OPTIONS
    if option.name not in {own.name for own in options_of(verb.name)}
]


def test_an_option_of_another_verb_is_refused_with_the_verbs_it_is_for() -> None:
    assert len(NOT_OF_THE_VERB) > 400
    for verb, flag, takers in NOT_OF_THE_VERB:
        logs = ["--log-dir", "/data"] if verb.has_log_dirs and not verb.takes else []
        for text in ([flag], [f"{flag}=x"]):
            with pytest.raises(UsageError) as caught:
                parse_arguments(
                    [verb.name, *logs, *text, *(["--log-dir=x"] * (verb.name == "why"))]
                )
            assert str(caught.value).startswith(f"{verb.name} takes no {flag}, which is for ")
            assert set(takers) <= set(str(caught.value).partition(" for ")[2].split(", "))


def test_an_option_of_kafkas_tool_that_cannot_be_taken_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="dump takes no --key-decoder-class: a Java class"):
        parse_arguments(["dump", "x.log", "--key-decoder-class", "org.example.Decoder"])


def test_a_job_refuses_what_its_verb_refuses() -> None:
    with pytest.raises(UsageError, match="compact takes no --what-if, which is for audit"):
        parse_verb_arguments("compact", ["--log-dir", "/data", "--what-if", "retention.ms=1"])


def test_each_verb_has_an_option_once_and_says_what_it_does_there() -> None:
    names = {verb.name for verb in VERBS}
    taken = [(option.name, verb) for option in OPTIONS for verb in option.takers]
    assert len(set(taken)) == len(taken)
    for option in OPTIONS:
        assert option.takers, option.name
        assert set(option.takers) <= names
        assert set(option.does_there) <= set(option.takers)
        assert not option.words or option.takes in ("RULE", "|".join(option.words))


@pytest.mark.parametrize(
    ("verb", "words", "others"),
    [
        ("compact", "only these topics; needed with --apply", "of each file"),
        ("audit", "only these topics; repeatable", "--apply"),
        ("cluster", "by the metadata alone", "(default: the clock)"),
        ("dump", "so many bytes of each file", "the dirtiest partitions"),
        ("sql", "for views zookeeper_", "settings of that era"),
    ],
)
def test_help_says_what_an_option_does_in_that_verb(
    capsys: pytest.CaptureFixture[str], verb: str, words: str, others: str
) -> None:
    with pytest.raises(SystemExit):
        parse_arguments([verb, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert words in text
    assert others not in text


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--max-bytes", "1GiB"], "max_bytes", 1 << 30),
        (["--max-bytes", "1048576"], "max_bytes", 1 << 20),
        (["--max-bytes-per-second", "50MB"], "max_bytes_per_second", 50_000_000),
        (["--max-batch-bytes", "128MiB"], "max_batch_bytes", 128 << 20),
        (["--memory", "1GiB"], "memory", 1 << 30),
        (["--memory", "512m"], "memory", 512 << 20),
        (["--dedupe-buffer-size", "128MiB"], "dedupe_buffer_size", 128 << 20),
        (["--max-minutes", "2h"], "max_minutes", 120.0),
        (["--max-minutes", "0.5"], "max_minutes", 0.5),
    ],
)
def test_sizes_and_durations_are_taken_as_people_write_them(
    words: list[str], name: str, value: float
) -> None:
    assert getattr(parse_arguments([*COMPACT, *words]), name) == value


@pytest.mark.parametrize("text", ["0", "1.5", "many", "1XiB", "-1", "9999999999999999999"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no size"):
        parse_arguments([*COMPACT, f"--max-bytes={text}"])
