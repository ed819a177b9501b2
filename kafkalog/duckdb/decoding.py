"""The tasks of a scan decoded by some threads at once, their batches in the order of the log.

Kernels, codecs and checksums run without the GIL. Threads take the tasks in order. Whoever is ahead
of the reader waits while so many bytes lie ready, all together; the thread whose task the reader is
at has a share of its own, so that it always goes on when the reader waits for it. When the reader
is gone the threads stop at their next batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Condition, Thread
from typing import Generic, TypeVar

import pyarrow as pa

Task = TypeVar("Task")

# Decoded and not yet taken, of all threads together; the task that is read may have an eighth more.
READY_BYTES = 64 * 1024 * 1024


def decode_in_order(
    tasks: Sequence[Task],
    decode: Callable[[Task], Iterator[pa.RecordBatch]],
    threads: int,
    ready_bytes: int = READY_BYTES,
    done: Callable[[Task], None] = lambda _: None,
) -> Iterator[pa.RecordBatch]:
    """The batches of all tasks, in the order of the tasks; an error of a task comes behind the
    batches before it. At most `threads` tasks are decoded at once, one without any thread. `done`
    is told of each task when its last batch was taken.
    """
    if min(threads, len(tasks)) < 2:
        for task in tasks:
            yield from decode(task)
            done(task)
        return
    work = _Work(tasks, decode, ready_bytes)
    workers = [
        Thread(target=work.run, name=f"kafkalog-decoding-{number}", daemon=True)
        for number in range(min(threads, len(tasks)))
    ]
    for worker in workers:
        worker.start()
    try:
        yield from work.batches(done)
    finally:
        work.stop()
        for worker in workers:
            worker.join()


class _Output:
    """What is there of one task."""

    def __init__(self) -> None:
        self.batches: deque[pa.RecordBatch] = deque()
        self.bytes = 0
        self.error: BaseException | None = None
        self.is_finished = False


class _Work(Generic[Task]):
    """Tasks, and what is ready of them; one lock for all of it, taken once a batch."""

    def __init__(
        self,
        tasks: Sequence[Task],
        decode: Callable[[Task], Iterator[pa.RecordBatch]],
        ready_bytes: int,
    ) -> None:
        self._tasks = tasks
        self._decode = decode
        self._ready_bytes = ready_bytes
        self._changed = Condition()
        self._outputs: dict[int, _Output] = {}
        self._begun = 0  # tasks that a thread has taken
        self._read = 0  # the task whose batches are handed out
        self._bytes = 0  # ready and not handed out
        self._is_stopped = False

    def run(self) -> None:
        """A thread: the next task, until there is none."""
        while (number := self._begin()) is not None:
            try:
                for batch in self._decode(self._tasks[number]):
                    if not self._put(number, batch):
                        return
            except BaseException as error:  # raised where the batches are taken
                self._finish(number, error)
                return
            self._finish(number, None)

    def batches(self, done: Callable[[Task], None]) -> Iterator[pa.RecordBatch]:
        """All of them in order."""
        for number, task in enumerate(self._tasks):
            while (batch := self._take(number)) is not None:
                yield batch
            done(task)

    def stop(self) -> None:
        """Nobody wants more."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _begin(self) -> int | None:
        with self._changed:
            # A task ahead of others is begun only where there is room for what it gives.
            while self._is_full(self._begun) and not self._is_stopped:
                self._changed.wait()
            if self._is_stopped or self._begun == len(self._tasks):
                return None
            number = self._begun
            self._begun += 1
            self._outputs[number] = _Output()
            return number

    def _is_full(self, number: int) -> bool:
        """Whether this task may not add to what is ready, nor begin."""
        # Two bounds. All tasks ahead of the reader share one; the task that is read has one of its
        # own: what the others hold ready never keeps it from going on.
        if number != self._read:
            return self._bytes >= self._ready_bytes
        output = self._outputs.get(number)
        if output is None or not output.batches:
            return False
        return output.bytes >= self._ready_bytes // 8

    def _put(self, number: int, batch: pa.RecordBatch) -> bool:
        """False where it is not wanted any more."""
        with self._changed:
            while self._is_full(number) and not self._is_stopped:
                self._changed.wait()
            if self._is_stopped:
                return False
            output = self._outputs[number]
            output.batches.append(batch)
            output.bytes += batch.nbytes
            self._bytes += batch.nbytes
            self._changed.notify_all()
            return True

    def _finish(self, number: int, error: BaseException | None) -> None:
        with self._changed:
            output = self._outputs[number]
            output.error, output.is_finished = error, True
            if error is not None:
                self._begun = len(self._tasks)  # what comes later is never read
            self._changed.notify_all()

    def _take(self, number: int) -> pa.RecordBatch | None:
        """The next batch of the task that is read; None behind its last one."""
        with self._changed:
            while not (output := self._outputs.get(number)) or not (
                output.batches or output.is_finished
            ):
                self._changed.wait()
            if output.batches:
                batch = output.batches.popleft()
                output.bytes -= batch.nbytes
                self._bytes -= batch.nbytes
                self._changed.notify_all()
                return batch
            if output.error is not None:
                raise output.error
            del self._outputs[number]
            self._read += 1
            self._changed.notify_all()
            return None
