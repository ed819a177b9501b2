"""Random logs against Kafka's own cleaner, and damaged ones through every door, for as long as you
like.

    python -m tests.fuzz.run_fuzz --minutes 30 --seed 1
    python -m tests.fuzz.run_fuzz --scenario 10000042      # one case, as printed
    python -m tests.fuzz.run_fuzz --what damage            # or cleaner, or all: half the time each
    python -m tests.fuzz.run_fuzz --what damage --mutations 100000     # so many of each format

Each `--seed` is its own endless row of scenarios; a later run goes on where the last one ended
(`.cache/fuzz/`), after trying again what failed then. Ends with the number of cases and rounds;
exit code 1 where any differed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.damage import run_damage, run_mutations, try_damage
from tests.oracle.kafka import Kafka
from tests.oracle.rounds import compact_with_kafkalog, play_and_keep_failed
from tests.oracle.scripts import seed_scenario
from tests.oracle.setup import PROJECT_ROOT, OracleUnavailableError

STATE_DIR = PROJECT_ROOT / ".cache" / "fuzz"
ROW_LENGTH = 10_000_000


@dataclass
class State:
    """Where a row of scenarios stands: the next one, and those that failed."""

    next_scenario: int
    failed: list[int] = field(default_factory=list)


@dataclass
class Tally:
    """What this run did."""

    cases: int = 0
    rounds: int = 0
    cleaned: int = 0
    kafka_failures: int = 0
    different: int = 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run_fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1, help="which row of scenarios")
    parser.add_argument("--scenario", type=int, help="only this one; nothing is remembered")
    parser.add_argument("--what", choices=("cleaner", "damage", "all"), default="cleaner")
    parser.add_argument("--mutations", type=int, default=0, help="of each format, counted")
    options = parser.parse_args(argv)
    if options.what == "damage" and options.scenario is not None:
        return 1 if try_damage(options.scenario) else 0
    if options.mutations:
        return 1 if run_mutations(options.seed * ROW_LENGTH, options.mutations) else 0
    minutes = options.minutes / 2 if options.what == "all" else options.minutes
    broken = 0
    if options.what != "cleaner":
        broken = run_damage(options.seed * ROW_LENGTH + int(time.time()) % ROW_LENGTH, minutes)
        if options.what == "damage":
            return 1 if broken else 0
    tally = Tally()
    try:
        with Kafka() as kafka:
            if options.scenario is not None:
                _try(options.scenario, kafka, tally)
            else:
                _run_row(options.seed, minutes, kafka, tally)
    except OracleUnavailableError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the next run goes on here\n")
    sys.stdout.write(
        f"{tally.cases} cases, {tally.rounds} rounds ({tally.cleaned} cleaned, "
        f"{tally.kafka_failures} refused by Kafka), {tally.different} different\n"
    )
    return 1 if tally.different or broken else 0


def _run_row(seed: int, minutes: float, kafka: Kafka, tally: Tally) -> None:
    path = STATE_DIR / f"row-{seed}.json"
    state = _read_state(path, seed)
    deadline = time.monotonic() + minutes * 60
    for scenario in list(state.failed):
        if _try(scenario, kafka, tally):
            state.failed.remove(scenario)
    while time.monotonic() < deadline:
        if not _try(state.next_scenario, kafka, tally):
            state.failed.append(state.next_scenario)
        state.next_scenario += 1
        _write_state(path, state)
    _write_state(path, state)


def _try(scenario: int, kafka: Kafka, tally: Tally) -> bool:
    outcome = play_and_keep_failed(seed_scenario(scenario), kafka, compact_with_kafkalog)
    tally.cases += 1
    tally.rounds += outcome.rounds
    tally.cleaned += outcome.cleaned
    tally.kafka_failures += outcome.kafka_failures
    if outcome.complaints:
        tally.different += 1
        sys.stdout.write(f"{outcome}\n")
        sys.stdout.flush()
    return not outcome.complaints


def _read_state(path: Path, seed: int) -> State:
    if path.exists():
        return State(**json.loads(path.read_text()))
    return State(seed * ROW_LENGTH)


def _write_state(path: Path, state: State) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(asdict(state)))
    new.replace(path)


if __name__ == "__main__":
    sys.exit(main())
