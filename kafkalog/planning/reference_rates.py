"""The constants of `cost_model` on the reference machine: 2 cores,
Intel(R) Xeon(R) Processor, load 1, 2026-11-30, where a GiB took 2.74 s of CPU.

Written by `python -m tests.benchmarks.bench_cost_model --write`, which fits them to whole runs, but
for Spark's own and `wait_byte`, which are single figures of docs/benchmarks.md.
"""

from __future__ import annotations

from kafkalog.planning.cost_model import Rates

REFERENCE = Rates(
    start=0.728,
    partition=0.00143,
    segment=0.000658,
    source_byte=5e-10,
    again_byte=4.7e-10,
    record=2.64e-08,
    near_byte=0.0,
    kept_byte=6.94e-10,
    entry=9.25e-08,
    compared_record=1.21e-06,
    codecs=(0.0, 2.97e-08, 4.55e-09, 3.65e-09, 1.39e-08),
    wait_byte=1.1e-09,
    task=0.05,
    shuffled_byte=7e-09,
    first_job=3.0,
    audit_start=1.04,
    audited_partition=0.00131,
    audited_segment=0.000382,
    audited_batch=1.2e-06,
    base_bytes=66400000.0,
    audit_base_bytes=129000000.0,
)
