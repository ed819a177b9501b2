"""Kernels of a user who has no place to keep them compiled."""

from __future__ import annotations

import pytest
from numba.core.dispatcher import Dispatcher

from kafkalog.kernels import jit
from kafkalog.kernels.jit import I64, INTERPRETED, kernel


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_a_kernel_that_cannot_be_kept_works_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("cannot cache function 'double': no locator available")

    monkeypatch.setattr(Dispatcher, "enable_caching", refuse)
    jit._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR"):

        @kernel((I64,))
        def double(number: int) -> int:
            return 2 * number

    assert double(21) == 42


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_with_an_unknown_numba_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dispatcher, "enable_caching", lambda _: None)
    jit._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"numba .* not known here"):

        @kernel((I64,))
        def treble(number: int) -> int:
            return 3 * number

    assert treble(14) == 42
