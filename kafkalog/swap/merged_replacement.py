"""One record of two replacements of the same run in one partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kafkalog.swap.file_facts import FileFacts
from kafkalog.swap.replacement import Replacement, SwappedFiles


def merged(earlier: Replacement | None, later: Replacement) -> Replacement:
    """One record of two replacements of the same run, the second perhaps of files that the first
    one made: those need not be kept.
    """
    if earlier is None:
        return later
    swapped = list(earlier.swapped)
    # Files that the first replacement made and the second one took away exist no more: they are
    # neither to be put back nor to be looked for. What the first one kept stands for both.
    for swap in later.swapped:
        touched = [e for e in swapped if _common(e.made, swap.kept)]
        made = [file for e in touched for file in e.made]
        between = _common(made, swap.kept)
        swapped = [e for e in swapped if e not in touched]
        swapped.append(
            SwappedFiles(
                kept=(*(f for e in touched for f in e.kept), *_without(swap.kept, between)),
                made=(*_without(made, between), *swap.made),
                between=(*(f for e in touched for f in e.between), *between, *swap.between),
            )
        )
    kept, made = list(earlier.kept), [*earlier.made, *later.made]
    # The same of single files: one that this run had made itself is not a file from before the run.
    for file in later.kept:
        # Three cases of a file that the second one replaced: the first had swapped it in, the first
        # had made it by itself, or it is from before the run and is kept now.
        owner = next((e for e in swapped if _common(e.made, [file])), None)
        if owner is not None:
            new = [f for f in later.made if f.name == file.name]
            made = _without(made, new)
            swapped[swapped.index(owner)] = SwappedFiles(
                owner.kept, (*_without(owner.made, [file]), *new), (*owner.between, file)
            )
        elif _common(earlier.made, [file]):
            made = _without(made, [file])
        # Of a name the first kept file is the one from before the run.
        elif file.name not in {f.name for f in kept}:
            kept.append(file)
    return replace(
        later,
        # From before the run, which is what undo goes back to.
        dir_mtime_ns=earlier.dir_mtime_ns,
        swapped=tuple(swapped),
        kept=tuple(kept),
        made=tuple(made),
        first_offset=later.first_offset if later.first_offset is not None else earlier.first_offset,
        cut=earlier.cut or later.cut,
    )


def _identity(file: FileFacts) -> tuple[str, int, int, int]:
    # The name counts, too: it is where a file goes back to.
    return file.name, file.inode, file.size, file.mtime_ns


def _common(files: Sequence[FileFacts], others: Sequence[FileFacts]) -> list[FileFacts]:
    known = {_identity(file) for file in others}
    return [file for file in files if _identity(file) in known]


def _without(files: Sequence[FileFacts], others: Sequence[FileFacts]) -> list[FileFacts]:
    known = {_identity(file) for file in others}
    return [file for file in files if _identity(file) not in known]
