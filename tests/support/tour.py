"""README's tour: its commands are run, its output is what they print, its picture shows both.

`python -m tests.support.tour` runs the commands and writes their output into README anew, then the
picture. Times, rates and run ids differ from run to run; `lasting` takes them out of a comparison.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "images" / "tour.svg"
# The folder of the tour's copy: as README names it, and the part that another folder takes.
FOLDER = "/tmp/tour"
# What Spark says of itself when it starts is no part of the tour.
_SPARK = re.compile(
    r"^(WARNING: Using incubator|Using Spark's|\d\d/\d\d/\d\d |Setting |To adjust )"
)
_RUN_ID = r"\b[0-9a-f]{12}\b"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A command, which goes on where a line ends in a backslash, and the lines that it prints.
_STEP = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_COLUMNS = 104
_LINE, _CHARACTER, _MARGIN = 17, 7.85, 16


@dataclass(frozen=True)
class Step:
    """A command of the tour, and the lines that it prints."""

    command: str
    output: tuple[str, ...]


def tour_steps(text: str) -> list[Step]:
    """The commands of the `console` blocks; a line that ends in a backslash goes on."""
    return [
        Step(re.sub(r"\\\n\s*", "", step[1]), tuple(step[2].splitlines()))
        for block in _BLOCK.findall(text)
        for step in _STEP.finditer(block)
    ]


def run_tour(steps: list[Step], folder: Path) -> list[Step]:
    """The steps with what they print now; `folder` is in place of README's own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "XDG_STATE_HOME": str(folder / "state")}
    done: list[Step] = []
    run_id = ""
    for step in steps:
        command = step.command.replace(FOLDER, str(folder))
        if run_id:
            command = re.sub(_RUN_ID, run_id, command)
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if ended.returncode != 0:
            raise RuntimeError(f"{command}: exit code {ended.returncode}\n{ended.stdout}")
        output = ended.stdout.replace(str(folder), FOLDER).replace(f"{ROOT}/", "")
        lines = [line.rstrip() for line in output.splitlines() if not _SPARK.match(line)]
        done.append(Step(step.command, tuple(lines)))
        if found := re.search(rf"\(run ({_RUN_ID})\)", output):
            run_id = run_id or found[1]
    return done


def lasting(lines: tuple[str, ...]) -> list[str]:
    """The lines without what differs from run to run."""
    text = "\n".join(lines)
    text = re.sub(_RUN_ID, "RUN", text)
    text = re.sub(r"\d+\.\d+ s\b", "SECONDS", text)
    text = re.sub(r"[\d.]+ [KM]iB a second", "RATE", text)
    text = re.sub(r"2\d{3}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    return text.splitlines()


def with_output(text: str, steps: list[Step]) -> str:
    """README with the output of these steps; the run that it names is theirs."""
    printed = iter(steps)

    def step_now(step: re.Match[str]) -> str:
        return "".join(f"{line}\n" for line in (f"$ {step[1]}", *next(printed).output))

    def block_now(block: re.Match[str]) -> str:
        return block[0].replace(block[1], _STEP.sub(step_now, block[1]))

    text = _BLOCK.sub(block_now, text)
    run_id = re.search(rf"\(run ({_RUN_ID})\)", text)
    assert run_id is not None
    return re.sub(rf"(kafkalog (?:undo|purge) ){_RUN_ID}", rf"\g<1>{run_id[1]}", text)


def picture(text: str) -> str:
    """A terminal with README's plan, run, check and undo, as SVG."""
    lines: list[tuple[str, str]] = []
    for step in tour_steps(text):
        if "kafkalog sql" in step.command or "segments" in step.command:
            continue
        lines += [("command", part) for part in _wrapped(f"$ {step.command}")]
        lines += [("output", _cut(line)) for line in step.output]
        lines.append(("output", ""))
    width = round(_COLUMNS * _CHARACTER) + 2 * _MARGIN
    height = len(lines) * _LINE + 2 * _MARGIN
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' aria-label="A plan, a compaction, a check and an undo in a terminal">',
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}"
        "text{white-space:pre}.command{fill:#8be9a8;font-weight:bold}.output{fill:#e6e6e6}</style>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1b1f27"/>',
    ]
    for number, (kind, line) in enumerate(lines):
        y = _MARGIN + (number + 1) * _LINE - 4
        if line:
            place = f'x="{_MARGIN}" y="{y}" xml:space="preserve"'
            rows.append(f'<text class="{kind}" {place}>{escape(line)}</text>')
    return "\n".join([*rows, "</svg>", ""])


def _wrapped(command: str) -> list[str]:
    words, lines = command.split(" "), [""]
    for word in words:
        if len(lines[-1]) + len(word) > _COLUMNS - 6:
            lines[-1] += " \\"
            lines.append("    ")
        lines[-1] += word if not lines[-1].strip() else f" {word}"
    return lines


def _cut(line: str) -> str:
    return line if len(line) <= _COLUMNS else line[: _COLUMNS - 1] + "…"


def main() -> None:
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        text = with_output(text, run_tour(tour_steps(text), Path(folder)))
    README.write_text(text, encoding="utf-8")
    PICTURE.write_text(picture(text), encoding="utf-8")


if __name__ == "__main__":
    main()
