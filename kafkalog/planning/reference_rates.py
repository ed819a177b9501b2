"""The constants of `cost_model` on the reference machine: 2 cores,
Intel(R) Xeon(R) Processor, load 1, 2026-11-30, where a GiB took 1.99 s of CPU.

Written by `python -m tests.benchmarks.bench_cost_model --write`, which fits them to whole runs, but
for Spark's own and `wait_byte`, which are single figures of docs/benchmarks.md.
"""

from __future__ import annotations

from kafkalog.planning.cost_model import Rates

REFERENCE = Rates(
    start=0.514,
    partition=0.00334,
    segment=0.000423,
    source_byte=4.42e-10,
    again_byte=0.0,
    cold_byte=1.8e-10,
    record=5.56e-08,
    near_byte=0.0,
    kept_byte=1.71e-09,
    entry=4.71e-08,
    compared_record=5.36e-07,
    codecs=(0.0, 2.25e-08, 3.49e-09, 2.25e-09, 6.81e-09),
    wait_byte=1.1e-09,
    task=0.05,
    shuffled_byte=7e-09,
    first_job=3.0,
    audit_start=0.842,
    audited_partition=0.00115,
    audited_segment=0.000365,
    audited_batch=5.36e-07,
    base_bytes=77900000.0,
    audit_base_bytes=109000000.0,
)
