"""Whether a broker may rely on what is on storage: checks that change nothing and raise nothing.

`finding_kinds` is the table of what can be found and what a broker makes of it, `finding` one of
these. `segment` reads one segment with its indexes (`batch_checks`, `producer_track`,
`index_checks`) into a `SegmentReport`: findings, and the facts that neighbours are compared by.
`log_checks`, `producer_checks` and `directory_checks` judge a partition from its reports, so that
an unchanged segment need not be read again. `run` ties it together, `run_records` keeps what a run
saw, `document` is their JSON.
"""
