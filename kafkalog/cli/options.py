"""THE table of verbs, and what is looked up in it and in the table of their options: the parser,
the refusals and the documents' lists come from both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafkalog.cli.option_groups import in_groups
from kafkalog.cli.restore_options import RESTORE_OPTIONS
from kafkalog.cli.shared_options import SHARED_OPTIONS
from kafkalog.cli.verb_options import VERB_OPTIONS
from kafkalog.options import Option


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb; `module` has its `run(args)`, None where `job`, a script of jobs/, alone does it.

    takes: what stands behind the verb without an option, as `paths` of the parsed arguments; where
    the verb has log dirs (`--log-dir`), these stand there as well. names: what that is, for its
    help. changes, beside: whether it changes anything, whether it may run beside a broker, in a
    sentence each. words: what stands behind the verb in its usage line, where that is not one or
    more of `takes`. example: words behind the verb, which a test runs on the samples. refuses:
    flags of Kafka's tool for the same that cannot be taken, and why.
    """

    name: str
    does: str
    module: str | None = None
    takes: str | None = None
    job: str | None = None
    names: str = "log dirs, partition directories or globs of them"
    changes: str = "Changes nothing."
    beside: str = "May run beside a broker."
    example: str = ""
    refuses: Mapping[str, str] = field(default_factory=dict)
    words: str = ""

    @property
    def has_log_dirs(self) -> bool:
        """Whether log dirs are given to it, by --log-dir or without."""
        return any(option.name == "--log-dir" for option in options_of(self.name))

    @property
    def positional(self) -> str | None:
        """The name of what stands behind it in its help."""
        return self.takes or ("DIR" if self.has_log_dirs else None)

    @property
    def words_in_front(self) -> int:
        """How many words stand in front of the log dirs."""
        return 0 if self.takes in (None, "DIR") else 1

    @property
    def usage_words(self) -> str:
        """What stands behind the verb, for its usage line."""
        if self.words:
            return self.words
        more = " DIR…" if self.words_in_front and self.has_log_dirs else "…"
        return "" if self.positional is None else f"{self.positional}{more}"

    @property
    def groups(self) -> list[tuple[str, list[Option]]]:
        """Its options under the headings of its help."""
        return in_groups(options_of(self.name))


_JAVA_CLASS = "a Java class cannot be called from here"

_BY_APPLY = "Changes nothing without --apply; what --apply replaces is kept for `kafkalog undo`."
_NOT_WITH_APPLY = (
    "May run beside a broker; with --apply not: the broker of the log dirs must be stopped."
)
_FILE_BEFORE = "data/samples/cleaning/before"

VERBS = (
    Verb(
        "info", "what a log dir is, on one screen", "kafkalog.cli.info", takes="DIR",
        example="data/samples/broker",
    ),
    Verb(
        "lag", "how far groups are behind, by the disk: records, bytes, time", "kafkalog.cli.lag",
        names="log dirs: those of __consumer_offsets, and of the topics that groups read",
        example="data/samples/broker",
    ),
    Verb(
        "compact", "plan log compaction; with --apply carry it out", "kafkalog.cli.compact",
        changes=_BY_APPLY, beside=_NOT_WITH_APPLY,
        example=f"{_FILE_BEFORE} --topic accounts --now 2026-12-01",
    ),
    Verb(
        "segments", "list the segments below the log dirs", "kafkalog.cli.segments",
        example=f"{_FILE_BEFORE} --topic accounts",
    ),
    Verb(
        "retain", "plan retention; with --apply delete what it allows", "kafkalog.cli.retain",
        changes=_BY_APPLY, beside=_NOT_WITH_APPLY,
        example="data/samples/broker --topic orders",
    ),
    Verb(
        "audit", "what the policies in force make of the logs, and what blocks them",
        "kafkalog.cli.audit", example="data/samples/broker --now 2026-12-01",
    ),
    Verb(
        "cluster", "members, leaders, placement, drift", "kafkalog.cli.cluster",
        names="log dirs of the nodes: give those of all nodes that are there",
        example="data/samples/cluster/1/data data/samples/cluster/1/data-2",
    ),
    Verb(
        "compare", "what consumers get from each replica, and which one is right",
        "kafkalog.cli.compare",
        names="log dirs of the nodes, copies of them, or digests: two at least",
        changes="Changes nothing without --heal --apply; what that replaces is kept for "
        "`kafkalog undo`.",
        beside="May run beside a broker; with --heal --apply not: the brokers of the log dirs "
        "must be stopped.",
        example="data/samples/replicas/node1 data/samples/replicas/node2",
    ),
    Verb(
        "digest", "hashes of replicas, for compare where hosts share no disk",
        "kafkalog.cli.digest",
        names="log dirs of this host",
        changes="Writes a new file; the log dirs are not changed.",
        example="data/samples/replicas/node1 --output /tmp/node1.digest "
        "--hash-key /tmp/hash.key",
    ),
    Verb(
        "bucket", "what lies in remote storage against what the cluster says of it",
        "kafkalog.cli.bucket",
        names="log dirs of the nodes: of all that have __remote_log_metadata",
        changes="Changes nothing without --apply, which deletes objects, never log dirs; "
        "--rebuild-metadata writes to --output.",
        example="data/samples/tiered/data --remote-dir data/samples/tiered/remote --now 2026-11-29",
    ),
    Verb(
        "verify", "check checksums, order, indexes, and what a broker's start would say",
        "kafkalog.cli.verify", example="data/samples/broker --topic orders",
    ),
    Verb(
        "recover", "find indexes and snapshots that are not right; with --apply rebuild them",
        "kafkalog.cli.recover", changes=_BY_APPLY, beside=_NOT_WITH_APPLY,
        example="data/samples/broker --topic orders",
    ),
    Verb(
        "attach", "a cluster over disks whose quorum is lost, or over a bucket; with --apply write",
        "kafkalog.cli.attach",
        names="with --in-place: log dirs of all nodes that are there; with --into: the bucket, a "
        "directory or s3://…",
        changes=_BY_APPLY, beside=_NOT_WITH_APPLY,
        example="data/samples/cluster/1/data data/samples/cluster/1/data-2 "
        "data/samples/cluster/2/data data/samples/cluster/3/data --in-place "
        "--force metadata-left",
    ),
    Verb(
        "restore", "topics back from segments, offsets as they were; with --apply write them",
        "kafkalog.cli.restore",
        names="log dirs of the source: stopped, or a copy, also of one that was killed; with "
        "--remote-layout alone: remote storage",
        changes="Changes nothing without --apply; what that replaces in --into is kept for "
        "`kafkalog undo`. The source is not changed.",
        beside="May run beside a broker; with --apply not: those of --into must be stopped.",
        example="data/samples/broker --into data/samples/cleaning/before --topic orders",
    ),
    Verb(
        "sql", "SQL over all views", "kafkalog.query", takes="DIR",
        example="data/samples/broker --sql \"SELECT topic, count(*) FROM records GROUP BY topic\"",
    ),
    Verb(
        "dump", "batches, records and entries of files", "kafkalog.cli.dump", takes="FILE",
        names="files of a log dir, or directories of them",
        example="data/samples/broker/orders-0/00000000000000000000.log --print-data-log",
        refuses={"--value-decoder-class": _JAVA_CLASS, "--key-decoder-class": _JAVA_CLASS},
    ),
    Verb(
        "why", "which rule keeps a partition or a record, and when it goes", "kafkalog.cli.why",
        takes="T-P", names="a partition, as orders-3, and log dirs",
        example="orders-0 data/samples/broker --now 2026-12-01",
    ),
    Verb(
        "salvage", "valid copies of damaged segments without the bad ranges",
        "kafkalog.cli.salvage",
        changes="Writes copies to --output; the log dirs are not changed.",
        example="data/samples/broker --topic orders --output /tmp/salvaged",
    ),
    Verb(
        "runs", "runs and what each still holds", "kafkalog.cli.held_runs", takes="RUN",
        words="[RUN…]",
        names="runs, to see what each did (default: a list of all)",
    ),
    Verb(
        "undo", "put the files a run replaced back", "kafkalog.cli.undo", takes="RUN", words="RUN",
        names="a run, as kafkalog runs lists them",
        changes="Changes the log dirs of the run: what it replaced is back, as it was.",
        beside="Not beside a broker: the one of the log dirs must be stopped.", example="RUN",
    ),
    Verb(
        "purge", "give the space of a run's replaced files back", "kafkalog.cli.purge",
        takes="RUN", words="RUN", names="a run, as kafkalog runs lists them",
        changes="Removes the replaced files that a run keeps: it cannot be undone then.",
        beside="Not beside a broker: the one of the log dirs must be stopped.", example="RUN",
    ),
    Verb(
        "compile", "compile all kernels now, for an image or a cache that processes share",
        "kafkalog.cli.compile_kernels", changes="Changes no log dir: fills the cache of kernels.",
    ),
    Verb(
        "export", "append or merge records into a Delta table", job="export_to_delta.py",
        changes="Changes nothing of the log dirs; writes the table.",
        example="data/samples/broker --topic orders --table /tmp/lake/orders",
    ),
)  # fmt: skip

OPTIONS: tuple[Option, ...] = (*SHARED_OPTIONS, *RESTORE_OPTIONS, *VERB_OPTIONS)


def verb_named(name: str) -> Verb:
    return next(verb for verb in VERBS if verb.name == name)


def options_of(verb: str) -> list[Option]:
    """The options that a verb takes, in the table's order."""
    return [option for option in OPTIONS if verb in option.takers]


def refusal_of(verb: Verb, flag: str) -> str | None:
    """Why a verb does not take a flag that somebody may think it does; None if nobody would."""
    if flag in verb.refuses:
        return f"{verb.name} takes no {flag}: {verb.refuses[flag]}"
    takers = sorted({taker for option in OPTIONS if option.name == flag for taker in option.takers})
    return f"{verb.name} takes no {flag}, which is for {', '.join(takers)}" if takers else None
