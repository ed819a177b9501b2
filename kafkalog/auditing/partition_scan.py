"""The headers of one partition, read once, or taken from an earlier audit as far as they are the
same.

Whatever cannot be read becomes a problem, and the numbers are those of what could be.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace

from kafkalog.auditing.audited_partition import BYTE_KINDS
from kafkalog.auditing.directory_bytes import DirectoryBytes, measure_directory
from kafkalog.auditing.known_files import KnownFiles, look_at_files
from kafkalog.auditing.known_scan import (
    CarriedSegment,
    KnownLog,
    KnownSegment,
    aborted_digest,
    packed_scan,
    recall_scan,
    recall_segments,
    scan_key,
)
from kafkalog.auditing.partition_contents import scan_for
from kafkalog.auditing.request import AuditTask
from kafkalog.auditing.sound_facts import SoundFacts
from kafkalog.auditing.sound_scan import sound_facts
from kafkalog.contents.header_contents import HeaderContents, HeaderContentsScan
from kafkalog.contents.scan_contents import ScanContents
from kafkalog.contents.segment_statistics import SegmentStatistics, StatisticsBuilder
from kafkalog.errors import KafkaLogError
from kafkalog.log.disk_traces import index_witnesses
from kafkalog.log.header_facts import PartitionFacts
from kafkalog.log.header_sums import HeaderSums, header_sums
from kafkalog.log.index_condition import OffsetIndexEnd
from kafkalog.log.inventory import PartitionInventory, SegmentInfo
from kafkalog.log.known_directory import directory_digest
from kafkalog.log.listing import entries_in
from kafkalog.log.segment_facts import scan_partition_facts, scan_segment_facts
from kafkalog.log.segment_headers import HeaderScan, iterate_headers


@dataclass(frozen=True, slots=True)
class ScannedPartition:
    """`headers` None where there is nothing to tell of contents; `is_carried`: nothing was read;
    `packed`: what to keep for the next audit, empty if nothing may be, or is already; `sound`: the
    same of a log that nothing is wrong with.
    `carried_segments`: of how many no header was read. `indexes_end_in_log`: no index of the
    last segment knows more of the log.
    """

    facts: PartitionFacts
    statistics: tuple[SegmentStatistics, ...]
    headers: HeaderContents | None
    sizes: DirectoryBytes
    files: KnownFiles
    is_carried: bool = False
    packed: bytes = b""
    sound: SoundFacts | None = None
    carried_segments: int = 0
    indexes_end_in_log: bool = False


@dataclass(slots=True)
class _Walk:
    """What a walk over the headers of a partition has gathered, by base offset. `first`: the scan
    of the first segment, if it had all of it; `ends`: of the offset indexes, where `sees_indexes`.
    """

    headers: HeaderContentsScan | None
    known: dict[int, KnownSegment]
    first_base: int | None = None
    first: HeaderScan | None = None
    counts: dict[int, StatisticsBuilder] = field(default_factory=dict)
    scans: dict[int, list[ScanContents]] = field(default_factory=dict)
    sees_indexes: bool = False
    ends: dict[int, OffsetIndexEnd] = field(default_factory=dict)

    def see(self, segment: SegmentInfo, scan: HeaderScan, sums: HeaderSums | None) -> None:
        """Gather what one scan says, whose sums these are."""
        if segment.base_offset == self.first_base:
            self.first = None if segment.base_offset in self.counts else scan
        self.counts.setdefault(segment.base_offset, StatisticsBuilder()).add(scan, sums)
        if self.headers is not None:
            found = self.scans.setdefault(segment.base_offset, [])
            found.append(self.headers.scanned(scan.rows, sums))
        if self.sees_indexes:
            self._see_index(segment, scan)

    def _see_index(self, segment: SegmentInfo, scan: HeaderScan) -> None:
        end = self.ends.get(segment.base_offset)
        if end is None:
            try:
                end = OffsetIndexEnd(segment.beside(".index"), segment.base_offset)
            except (KafkaLogError, OSError):
                return  # nothing is kept of it
            self.ends[segment.base_offset] = end
        end.see(scan.rows["position"])

    def recall(self) -> None:
        """Take what was not read from where it is known."""
        for base_offset, known in self.known.items():
            if base_offset not in self.counts:
                self.counts[base_offset] = known.counts
                self.scans[base_offset] = list(known.scans)


def scan_partition(
    partition: PartitionInventory, task: AuditTask, problems: list[str]
) -> ScannedPartition:
    """The scan of a partition; what cannot be read is added to `problems`."""
    expiration_ms = task.expiration_ms
    kept = recall_scan(task.known, partition, now_ms=task.now_ms, expiration_ms=expiration_ms)
    if kept is not None:
        return _carried(partition, *kept)
    before = len(problems)
    first_base = partition.segments[0].base_offset if partition.segments else None
    sizes = directory_sizes(partition, problems)
    headers = scan_for(partition, problems)
    known = {
        base_offset: segment
        for base_offset, segment in recall_segments(task.known).items()
        if any(segment.is_same(info, headers) for info in partition.segments)
    }
    is_kept = task.keeps_scan and bool(partition.digest)
    walk = _Walk(headers, known, first_base, sees_indexes=is_kept)
    try:
        facts = scan_partition_facts(
            partition,
            now_ms=task.now_ms,
            expiration_ms=expiration_ms,
            see=walk.see,
            known={base_offset: segment.facts for base_offset, segment in known.items()},
        )
    except (KafkaLogError, OSError) as error:
        problems.append(f"cannot be read: {error}")
        # Damage in one segment ends the pass over the log: then each is read by itself, and nothing
        # of an earlier audit is believed.
        walk = _Walk(headers, {}, first_base)
        facts = _each_alone(partition, walk, str(error))
    carried = len(facts.segments) - len(walk.counts)
    walk.recall()
    scanned = _put_together(partition, facts, walk, sizes)
    scanned = replace(
        scanned, carried_segments=carried, indexes_end_in_log=_indexes_end_in_log(partition)
    )
    if not task.keeps_scan or len(problems) != before:
        return scanned
    key = scan_key(partition, expiration_ms)
    segments = _known_segments(partition, scanned, walk)
    if len(segments) < len(facts.segments):
        key = ""  # the whole may not stand for itself, either
    log = _known_log(task.now_ms, scanned)
    sound = sound_facts(partition, log, segments, expiration_ms, walk.ends) if key else None
    if not _is_as_listed(partition):  # asked behind the last look at a file
        key, sound = "", None
    return replace(scanned, packed=packed_scan(key, log, segments), sound=sound)


def _is_as_listed(partition: PartitionInventory) -> bool:
    """Whether the directory is still what its digest says: what came in and goes again while it was
    read (what a cleaner writes, and gives up) must not be kept for it.
    """
    try:
        return directory_digest(entries_in(partition.path)) == partition.digest
    except OSError:
        return False


def _carried(
    partition: PartitionInventory, log: KnownLog, known: tuple[CarriedSegment, ...]
) -> ScannedPartition:
    """What an earlier audit has read, all of it."""
    infos = {segment.base_offset: segment for segment in partition.segments}
    statistics = tuple(
        each.counts.build(infos[each.facts.base_offset], each.facts, each.files) for each in known
    )
    return ScannedPartition(
        facts=log.facts.with_segments(tuple(each.facts for each in known)),
        statistics=statistics,
        headers=log.headers,
        sizes=DirectoryBytes(dict(log.bytes_by_kind), log.leftovers),
        files=log.files,
        is_carried=True,
        carried_segments=len(known),
        indexes_end_in_log=log.indexes_end_in_log,
    )


def _put_together(
    partition: PartitionInventory, facts: PartitionFacts, walk: _Walk, sizes: DirectoryBytes
) -> ScannedPartition:
    """The statistics of the segments that could be read, and what their headers said together."""
    known = {each.base_offset: each for each in facts.segments}
    statistics = []
    for segment in partition.segments:
        base_offset = segment.base_offset
        if base_offset not in known or base_offset not in walk.counts:
            continue
        statistics.append(
            walk.counts[base_offset].build(segment, known[base_offset], sizes.beside(base_offset))
        )
        if walk.headers is not None:
            for scan in walk.scans[base_offset]:
                walk.headers.add(scan, is_active=segment.is_active)
    headers = None if walk.headers is None else walk.headers.finish()
    files = look_at_files(partition, walk.first)
    return ScannedPartition(facts, tuple(statistics), headers, sizes, files)


def _known_segments(
    partition: PartitionInventory, scanned: ScannedPartition, walk: _Walk
) -> list[KnownSegment]:
    """Those that may be kept."""
    segments = []
    facts = {each.base_offset: each for each in scanned.facts.segments}
    for info in partition.segments:
        own = facts[info.base_offset]
        segment = KnownSegment(
            identity=info.identity,
            aborted="" if walk.headers is None else aborted_digest(walk.headers, own),
            files=scanned.sizes.beside(info.base_offset),
            facts=own,
            counts=walk.counts[info.base_offset],
            scans=tuple(walk.scans.get(info.base_offset, ())),
        )
        if segment.is_whole:
            segments.append(segment)
    return segments


def _known_log(now_ms: int, scanned: ScannedPartition) -> KnownLog:
    return KnownLog(
        now_ms=now_ms,
        facts=replace(scanned.facts, segments=()),
        headers=scanned.headers,
        bytes_by_kind=scanned.sizes.by_kind,
        leftovers=scanned.sizes.leftovers,
        files=scanned.files,
        indexes_end_in_log=scanned.indexes_end_in_log,
    )


def _indexes_end_in_log(partition: PartitionInventory) -> bool:
    """Looked at once, here: where it is so the search for what is lost opens no index again."""
    active = partition.active_segment
    ends = () if active is None else index_witnesses(partition.path, active.base_offset)
    return all(witness.end_offset <= partition.log_end_offset for witness in ends)


def directory_sizes(partition: PartitionInventory, problems: list[str]) -> DirectoryBytes:
    """The bytes of a partition's directory; a problem where it cannot be listed any more."""
    try:
        return measure_directory(partition.path, partition.kind)
    except OSError as error:
        problems.append(f"cannot be listed: {error}")
        none = dict.fromkeys(BYTE_KINDS, 0)
        return DirectoryBytes({**none, "log": partition.size_in_bytes})


def _each_alone(partition: PartitionInventory, walk: _Walk, problem: str) -> PartitionFacts:
    """The facts of those segments that can be read."""
    found = []
    for segment in partition.segments:
        with contextlib.suppress(KafkaLogError, OSError):
            facts = scan_segment_facts(segment)
            for scan in iterate_headers(segment.path):
                walk.see(segment, scan, header_sums(scan.rows))
            found.append(facts)
    return PartitionFacts(tuple(found), problems=(problem,))
