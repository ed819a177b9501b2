"""The documents: their pages, their examples, and the blocks in them that are taken from the code.

A block stands between `<!-- its name -->` and `<!-- end -->`. `python -m tests.support.documents`
writes all blocks, docs/broker-start.md and the picture of the tour anew; with `--quick` all but the
keys of JSON documents, for which verbs are run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.starts.page import PAGE, start_page
from tests.support.json_tables import json_tables
from tests.support.reference_tables import code_tables
from tests.support.schema_tables import schema_tables
from tests.support.tour import PICTURE, picture

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
DESIGN = ROOT / "DESIGN.md"
DOCS = ROOT / "docs"
BENCHMARKS = DOCS / "benchmarks.md"
# What is read as a document; broker-start.md is made as a whole.
PAGES = (README, DESIGN, *sorted(path for path in DOCS.rglob("*.md") if path != PAGE))
_BLOCK = re.compile(r"^<!-- (?!end)(.+?) -->\n", re.MULTILINE)
_END = "<!-- end -->"


@dataclass(frozen=True)
class Example:
    """A fenced block: its page, its language, its text, and the line of its first line."""

    page: Path
    language: str
    text: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def examples(language: str, *pages: Path) -> list[Example]:
    """The fenced blocks of this language, of all pages if none is given."""
    return [e for page in pages or PAGES for e in _fences(page) if e.language == language]


def _fences(page: Path) -> Iterator[Example]:
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        line = text[: match.start()].count("\n") + 2
        yield Example(page, match[1], match[2], line)


def block_names(text: str) -> list[str]:
    return _BLOCK.findall(text)


def with_blocks(text: str, blocks: Mapping[str, Sequence[str]]) -> str:
    """The text with each of these blocks as the code says it today."""
    for name in block_names(text):
        if name in blocks:
            start = text.index(mark := f"<!-- {name} -->\n") + len(mark)
            end = text.index(_END, start)
            text = text[:start] + "\n" + "\n".join(blocks[name]).strip() + "\n\n" + text[end:]
    return text


def write_documents(*, quick: bool) -> None:
    blocks = code_tables() | schema_tables() | ({} if quick else json_tables())
    for page in PAGES:
        page.write_text(with_blocks(page.read_text(encoding="utf-8"), blocks), "utf-8")
    PAGE.write_text(start_page(), "utf-8")
    PICTURE.write_text(picture(README.read_text(encoding="utf-8")), "utf-8")


if __name__ == "__main__":
    write_documents(quick="--quick" in sys.argv[1:])
