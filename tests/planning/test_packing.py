"""Many small things as few tasks."""

from __future__ import annotations

from kafkalog.planning.packing import pack_evenly


def _packed(sizes: list[int], task_bytes: int, min_tasks: int) -> list[tuple[int, ...]]:
    numbers = list(range(len(sizes)))
    packs = pack_evenly(numbers, sizes.__getitem__, task_bytes=task_bytes, min_tasks=min_tasks)
    assert sorted(number for pack in packs for number in pack) == numbers
    assert all(packs)
    return packs


def test_packs_hold_about_the_same_bytes_the_largest_first() -> None:
    sizes = [1 << 30, *([100 << 20] * 20), *([1 << 20] * 300)]
    packs = _packed(sizes, 512 << 20, 4)
    bytes_of = [sum(sizes[number] for number in pack) for pack in packs]
    assert bytes_of == sorted(bytes_of, reverse=True)
    assert bytes_of[0] == 1 << 30
    assert max(bytes_of[1:]) < 1.5 * min(bytes_of[1:])
    assert packs[0][0] == 0


def test_thousands_of_small_ones_share_few_tasks() -> None:
    packs = _packed([1 << 20] * 5000, 512 << 20, 16)
    assert len(packs) == 16
    assert {len(pack) for pack in packs} == {312, 313}


def test_large_ones_have_a_task_each_and_empty_ones_are_shared_out() -> None:
    assert [len(pack) for pack in _packed([1 << 40] * 7, 512 << 20, 16)] == [1] * 7
    assert [len(pack) for pack in _packed([0] * 9, 512 << 20, 3)] == [3, 3, 3]
    assert _packed([], 512 << 20, 3) == []
