"""Runs of deletions that die in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkalog.remote import buckets


class Killed(BaseException):
    """As a signal would end it: nobody takes it for a failure of one object."""


@contextmanager
def killed_after(objects: int) -> Iterator[None]:
    """What is inside dies when it has removed so many objects of a store."""
    remove, gone = buckets.BucketStore.remove, 0

    def remove_some(self: buckets.BucketStore, path: str) -> None:
        nonlocal gone
        if gone == objects:
            raise Killed
        gone += 1
        remove(self, path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets.BucketStore, "remove", remove_some)
        with pytest.raises(Killed):
            yield
