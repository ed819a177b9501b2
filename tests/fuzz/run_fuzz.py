"""Random logs against the cleaners of four releases of Kafka, and damaged ones through every door,
for as long as you like.

    python -m tests.fuzz.run_fuzz --minutes 30 --seed 1
    python -m tests.fuzz.run_fuzz --scenario 10000042      # one case, as printed
    python -m tests.fuzz.run_fuzz --scenario 10000042 --kafka-version 4.1
    python -m tests.fuzz.run_fuzz --what damage            # or cleaner, or all: half the time each
    python -m tests.fuzz.run_fuzz --what damage --mutations 100000     # so many of each format
    python -m tests.fuzz.run_fuzz --what loss --mutations 10000        # is any record gone unseen?

Each `--seed` is its own endless row of scenarios; a later run goes on where the last one ended
(`.cache/fuzz/`), after trying again what failed then. Each scenario is one release's, in turn. Ends
with the number of cases and rounds of this run, then of the whole row; exit code 1 where any
differed.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.damage import run_damage, run_mutations, try_damage
from tests.fuzz.loss import LOSS_MUTATIONS, run_loss
from tests.oracle.jars import RELEASES, OracleUnavailableError
from tests.oracle.kafka import Kafka, Kafkas
from tests.oracle.rounds import Outcome, compact_with_kafkalog, play_and_keep_failed
from tests.oracle.scripts import seed_scenario
from tests.oracle.setup import PROJECT_ROOT

STATE_DIR = PROJECT_ROOT / ".cache" / "fuzz"
ROW_LENGTH = 10_000_000


@dataclass
class Tally:
    """What a run, or all runs of a row, did; `rounds` by release."""

    cases: int = 0
    cleaned: int = 0
    full_maps: int = 0
    deletions: int = 0
    kafka_failures: int = 0
    different: int = 0
    rounds: dict[str, int] = field(default_factory=dict)

    def add(self, line: str, outcome: Outcome) -> None:
        self.cases += 1
        self.cleaned += outcome.cleaned
        self.full_maps += outcome.full_maps
        self.deletions += outcome.deletions
        self.kafka_failures += outcome.kafka_failures
        self.different += bool(outcome.complaints)
        self.rounds[line] = self.rounds.get(line, 0) + outcome.rounds

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, {_counted(self.rounds)}; {self.cleaned} cleaned, "
            f"{self.full_maps} with a full map, {self.deletions} with segments deleted, "
            f"{self.kafka_failures} refused by Kafka; {self.different} different"
        )


@dataclass
class State:
    """Where a row of scenarios stands: the next one, those that failed, what it came to so far."""

    next_scenario: int
    failed: list[int] = field(default_factory=list)
    so_far: Tally = field(default_factory=Tally)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run_fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1, help="which row of scenarios")
    parser.add_argument("--scenario", type=int, help="only this one; nothing is remembered")
    parser.add_argument("--kafka-version", choices=RELEASES, help="of the one scenario")
    parser.add_argument("--what", choices=("cleaner", "damage", "loss", "all"), default="cleaner")
    parser.add_argument("--mutations", type=int, default=0, help="of each format; loss: in all")
    options = parser.parse_args(argv)
    if options.what == "damage" and options.scenario is not None:
        return 1 if try_damage(options.scenario) else 0
    if options.what == "loss":
        return 1 if run_loss(options.seed, options.mutations or LOSS_MUTATIONS) else 0
    if options.mutations:
        return 1 if run_mutations(options.seed * ROW_LENGTH, options.mutations) else 0
    minutes = options.minutes / 2 if options.what == "all" else options.minutes
    broken = 0
    if options.what != "cleaner":
        broken = run_damage(options.seed * ROW_LENGTH + int(time.time()) % ROW_LENGTH, minutes)
        if options.what == "damage":
            return 1 if broken else 0
    tally = Tally()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Kafkas() as kafkas:
            if options.scenario is not None:
                line = options.kafka_version or _line_of(options.scenario)
                _try(options.scenario, kafkas.of(line), tally)
            else:
                _run_row(options.seed, minutes, kafkas, tally)
    except OracleUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the next run goes on here\n")
    sys.stdout.write(f"{tally}\n")
    if options.scenario is None:
        state = _read_state(_state_file(options.seed), options.seed)
        sys.stdout.write(f"row {options.seed} so far: {state.so_far}\n")
    return 1 if tally.different or broken else 0


def _line_of(scenario: int) -> str:
    """Whose scenario it is: each release's in turn."""
    return list(RELEASES)[scenario % len(RELEASES)]


def _run_row(seed: int, minutes: float, kafkas: Kafkas, tally: Tally) -> None:
    path = _state_file(seed)
    state = _read_state(path, seed)
    deadline = time.monotonic() + minutes * 60
    for scenario in list(state.failed):
        if not _try(scenario, kafkas.of(_line_of(scenario)), tally).complaints:
            state.failed.remove(scenario)
            _write_state(path, state)
    while time.monotonic() < deadline:
        scenario = state.next_scenario
        line = _line_of(scenario)
        outcome = _try(scenario, kafkas.of(line), tally)
        state.so_far.add(line, outcome)
        state.failed += [scenario] if outcome.complaints else []
        state.next_scenario += 1
        _write_state(path, state)


def _try(scenario: int, kafka: Kafka, tally: Tally) -> Outcome:
    try:
        outcome = play_and_keep_failed(seed_scenario(scenario), kafka, compact_with_kafkalog)
    except Exception as error:  # anything: the row goes on, the scenario is kept as a failed one
        outcome = Outcome(scenario, complaints=["".join(traceback.format_exception(error))])
    tally.add(kafka.line, outcome)
    if outcome.complaints:
        sys.stdout.write(f"Kafka {RELEASES[kafka.line]}, {outcome}\n")
        sys.stdout.flush()
    return outcome


def _counted(rounds: Mapping[str, int]) -> str:
    parts = ", ".join(f"{count} of {RELEASES[line]}" for line, count in sorted(rounds.items()))
    return f"{sum(rounds.values())} rounds ({parts})"


def _state_file(seed: int) -> Path:
    return STATE_DIR / f"row-{seed}.json"


def _read_state(path: Path, seed: int) -> State:
    if path.exists():
        values = json.loads(path.read_text())
        return State(**{**values, "so_far": Tally(**values["so_far"])})
    return State(seed * ROW_LENGTH)


def _write_state(path: Path, state: State) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(state)))
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
