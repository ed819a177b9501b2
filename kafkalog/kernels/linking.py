"""One object of LLVM made a shared library, which the system itself can load.

llvmlite could load objects as well. Its library takes 0.05 s and 90 MB a process, and 2 ms a kernel
more than this. No linker comes with it, and none need be on the machine.

An object of a kernel is simple, and what is not is refused: code and constants that know each other
by distance alone, and calls of functions outside. So all of it lies in one segment that is read and
run; each function outside has a jump there, and its address in a second segment that the system
fills. x86-64 only: elsewhere an object stays one.

Source: System V ABI, its supplement for x86-64 (ELF).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Of an object: (type, info, flags) of sections that matter, and relocations.
_OBJECT, _SHARED, _X86_64 = 1, 3, 62
_PROGBITS, _SYMBOLS, _RELOCATIONS = 1, 2, 4
_WRITTEN, _LOADED = 0x1, 0x2
_PC32, _PLT32, _GLOB_DAT = 2, 4, 6

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_DYNAMIC = struct.Struct("<qQ")
_PAGE = 4096


class UnlinkableError(Exception):
    """An object has something that no kernel has."""


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int
    value: int


def shared_library(data: bytes, exported: str) -> bytes:
    """An object as a shared library with one function to be found; UnlinkableError."""
    sections = _sections(data)
    symbols = _symbols(data, sections)
    outside = sorted({each.name for each in symbols if each.section == 0 and each.name})
    image = bytearray(_PAGE)  # the tables in front: headers, symbols, names
    places: dict[int, int] = {}
    for number, section in enumerate(sections):
        if not section.flags & _LOADED or section.name.startswith(".eh_frame"):
            continue
        if section.kind != _PROGBITS or section.flags & _WRITTEN:
            raise UnlinkableError(f"section {section.name}")
        image += bytes(-len(image) % max(section.alignment, 16))
        places[number] = len(image)
        image += data[section.offset : section.offset + section.size]
    image += bytes(-len(image) % 16)
    jumps = {name: len(image) + 8 * number for number, name in enumerate(outside)}
    slots_at = (len(image) + 8 * len(outside) + _PAGE - 1) // _PAGE * _PAGE
    for number, name in enumerate(outside):
        # jmp *distance(%rip), of which the processor counts from behind the six bytes.
        distance = slots_at + 8 * number - (jumps[name] + 6)
        image += struct.pack("<HiH", 0x25FF, distance, 0x9066)
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            _relocate(image, data, section, symbols, places, jumps)
    (found,) = (each for each in symbols if each.name == exported)
    return _file(image, slots_at, outside, (exported, places[found.section] + found.value))


def _sections(data: bytes) -> list[_Section]:
    header = _HEADER.unpack_from(data)
    if header[0][:6] != b"\x7fELF\x02\x01" or header[1:3] != (_OBJECT, _X86_64):
        raise UnlinkableError("not an object for x86-64")
    raw = [_SECTION.unpack_from(data, header[6] + n * header[11]) for n in range(header[12])]
    names_at = raw[header[13]][4]
    return [
        _Section(_text(data, names_at + s[0]), s[1], s[2], s[4], s[5], s[6], s[7], s[8])
        for s in raw
    ]


def _symbols(data: bytes, sections: list[_Section]) -> list[_Symbol]:
    (table,) = (section for section in sections if section.kind == _SYMBOLS)
    names_at = sections[table.link].offset
    rows = _SYMBOL.iter_unpack(data[table.offset : table.offset + table.size])
    return [_Symbol(_text(data, names_at + row[0]), row[3], row[4]) for row in rows]


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _relocate(
    image: bytearray, data: bytes, section: _Section, symbols: list[_Symbol],
    places: dict[int, int], jumps: dict[str, int],
) -> None:  # fmt: skip
    """Write the distances that the object leaves open."""
    rows = data[section.offset : section.offset + section.size]
    for offset, info, addend in _RELOCATION.iter_unpack(rows):
        symbol = symbols[info >> 32]
        if info & 0xFFFFFFFF not in (_PC32, _PLT32):
            raise UnlinkableError(f"relocation {info & 0xFFFFFFFF}")
        if symbol.section == 0:
            if info & 0xFFFFFFFF != _PLT32:
                raise UnlinkableError(f"the address of {symbol.name}")
            target = jumps[symbol.name]
        else:
            target = places[symbol.section] + symbol.value
        place = places[section.info] + offset
        struct.pack_into("<i", image, place, target + addend - place)


def _file(image: bytearray, slots_at: int, outside: list[str], exported: tuple[str, int]) -> bytes:
    """The whole file: what is at an address is at the same place in the file."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (exported[0], *outside))
    name_at = [1]
    for name in (exported[0], *outside):
        name_at.append(name_at[-1] + len(name) + 1)
    # A function (2) or nothing known (0), global (1); any section but none is as good.
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0) + _SYMBOL.pack(name_at[0], 0x12, 0, 1, exported[1], 0)
    symbols += b"".join(_SYMBOL.pack(at, 0x10, 0, 0, 0, 0) for at in name_at[1 : 1 + len(outside)])
    # One chain with all symbols, the function first.
    chains = [0, *((n + 1) % (len(outside) + 2) for n in range(1, len(outside) + 2))]
    hashes = struct.pack(f"<{3 + len(chains)}I", 1, len(chains), 1, *chains)
    relocations = b"".join(
        _RELOCATION.pack(slots_at + 8 * n, (n + 2) << 32 | _GLOB_DAT, 0)
        for n in range(len(outside))
    )
    tables_at = _HEADER.size + 4 * _SEGMENT.size
    places, tables = [], b""
    for table in (symbols, relocations, hashes, names):
        places.append(tables_at + len(tables))
        tables += table + bytes(-len(table) % 8)
    if tables_at + len(tables) > _PAGE:
        raise UnlinkableError("too many functions outside")
    dynamic = b"".join(
        _DYNAMIC.pack(*entry)
        for entry in (
            (4, places[2]), (5, places[3]), (10, len(names)), (6, places[0]), (11, _SYMBOL.size),
            (7, places[1]), (8, len(relocations)), (9, _RELOCATION.size), (24, 0), (0, 0),
        )
    )  # fmt: skip
    slots = bytes(8 * len(outside))
    code = len(image)
    written = len(slots) + len(dynamic)
    head = _HEADER.pack(
        b"\x7fELF\x02\x01\x01".ljust(16, b"\0"), _SHARED, _X86_64, 1, 0, _HEADER.size, 0, 0,
        _HEADER.size, _SEGMENT.size, 4, 0, 0, 0,
    )  # fmt: skip
    dynamic_at = slots_at + len(slots)
    segments = (
        (1, 5, 0, code, _PAGE),
        (1, 6, slots_at, written, _PAGE),
        (2, 6, dynamic_at, len(dynamic), 8),
        (0x6474E551, 6, 0, 0, 16),  # a stack that is not run
    )
    head += b"".join(
        _SEGMENT.pack(k, f, at, at, at, size, size, al) for k, f, at, size, al in segments
    )
    image[: tables_at + len(tables)] = head + tables
    return bytes(image + bytes(slots_at - len(image)) + slots + dynamic)
