"""The constants of `cost_model` on the reference machine: 2 cores,
Intel(R) Xeon(R) Processor, load 8 to 14, the lowest of two, 2026-11-30, where a GiB took 3.5 s of
CPU.

Written by `python -m tests.benchmarks.bench_cost_model --write`, which fits them to whole runs, but
for Spark's own and `wait_byte`, which are single figures of docs/benchmarks.md, and for the seconds
of audits, which are from before; start and memory of a compaction as measured since, load 25.
"""

from __future__ import annotations

from kafkalog.planning.cost_model import Rates

REFERENCE = Rates(
    start=0.85,
    partition=0.00218,
    segment=0.000429,
    source_byte=4.65e-10,
    record=8.27e-08,
    near_byte=0.0,
    kept_byte=1.19e-09,
    entry=6.35e-08,
    compared_record=1.11e-06,
    codecs=(0.0, 3.32e-08, 4.96e-09, 3.14e-09, 1.09e-08),
    wait_byte=1.1e-09,
    task=0.05,
    shuffled_byte=7e-09,
    first_job=3.0,
    audit_start=1.4,
    audited_partition=0.0015,
    audited_segment=0.00036,
    audited_batch=9e-07,
    base_bytes=66000000.0,
    audit_base_bytes=261000000.0,
)
