"""SipHash-2-4 with 128 bits of output, and SipHash-1-3 with 64, as its paper and code have them."""

from __future__ import annotations

MASK = 2**64 - 1


def _rotate(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & MASK


class _State:
    """Four words."""

    def __init__(self, key: bytes) -> None:
        k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
        self.v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D]
        self.v += [k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(self, count: int) -> None:
        v = self.v
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = _rotate(v[1], 13) ^ v[0]
            v[0] = _rotate(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = _rotate(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = _rotate(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = _rotate(v[1], 17) ^ v[2]
            v[2] = _rotate(v[2], 32)

    def take(self, data: bytes, count: int) -> None:
        padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
        for at in range(0, len(padded), 8):
            word = int.from_bytes(padded[at : at + 8], "little")
            self.v[3] ^= word
            self.rounds(count)
            self.v[0] ^= word

    def word(self) -> int:
        return self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]


def siphash_2_4_128(key: bytes, data: bytes) -> bytes:
    state = _State(key)
    state.v[1] ^= 0xEE
    state.take(data, 2)
    state.v[2] ^= 0xEE
    state.rounds(4)
    first = state.word()
    state.v[1] ^= 0xDD
    state.rounds(4)
    return first.to_bytes(8, "little") + state.word().to_bytes(8, "little")


def siphash_1_3(key: bytes, data: bytes) -> int:
    state = _State(key)
    state.take(data, 1)
    state.v[2] ^= 0xFF
    state.rounds(3)
    return state.word()
