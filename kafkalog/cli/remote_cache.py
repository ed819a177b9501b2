"""`--remote-cache-bytes` reaches processes by their environment: workers, and Spark's executors."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager, nullcontext


def told_remote_cache(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Within, what the option says holds for this process and those that it starts."""
    most_bytes = getattr(args, "remote_cache_bytes", None)
    if most_bytes is None:
        return nullcontext()
    # Late: few verbs are given it, and all of them start.
    from kafkalog.remote.cache import cache_bytes_in_environment

    return cache_bytes_in_environment(most_bytes)


def executor_settings(args: argparse.Namespace) -> dict[str, str]:
    """The same for the Python processes that run a session's tasks."""
    most_bytes = getattr(args, "remote_cache_bytes", None)
    if most_bytes is None:
        return {}
    from kafkalog.remote.cache import CACHE_VARIABLE

    return {f"spark.executorEnv.{CACHE_VARIABLE}": str(most_bytes)}
