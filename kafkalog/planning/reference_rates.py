"""The constants of `cost_model` on the reference machine: two cores of the virtual machine of
docs/benchmarks.md while others used it (load 5), where a GiB takes 4.4 s of CPU.

As `python -m tests.benchmarks.bench_cost_model` fits them, but for Spark's own and `wait_byte`,
which are single figures of docs/benchmarks.md.
"""

from __future__ import annotations

from kafkalog.planning.cost_model import Rates

REFERENCE = Rates(
    start=0.95,
    partition=8e-3,
    segment=0.0,
    source_byte=0.3e-9,
    record=117e-9,
    near_byte=1.15e-9,
    kept_byte=2.45e-9,
    entry=0.0,
    compared_record=850e-9,
    codecs=(0.0, 40e-9, 5e-9, 2.5e-9, 10e-9),
    wait_byte=1.1e-9,
    task=0.05,
    shuffled_byte=7e-9,
    first_job=3.0,
    audit_start=1.4,
    audited_partition=1.5e-3,
    audited_segment=0.36e-3,
    audited_batch=0.9e-6,
)
