"""HighwayHash-64 as slow, plain code, for the readers that the library is compared with."""

from __future__ import annotations

from functools import lru_cache

MASK = (1 << 64) - 1
INIT_0 = (0xDBE6D5D5FE4CCE2F, 0xA4093822299F31D0, 0x13198A2E03707344, 0x243F6A8885A308D3)
INIT_1 = (0x3BD39E10CB0EF593, 0xC0ACF169B5F18A8C, 0xBE5466CF34E90C6C, 0x452821E638D01377)


def _rotate_halves(word: int, bits: int) -> int:
    """Both 32-bit halves of a word, rotated left by 1 to 31 bits."""
    halves = [(word >> shift) & 0xFFFFFFFF for shift in (0, 32)]
    low, high = ((half << bits | half >> (32 - bits)) & 0xFFFFFFFF for half in halves)
    return high << 32 | low


def _zipper(high: int, low: int) -> tuple[int, int]:
    """Two words shuffled by HighwayHash's zipper merge: what is added to the low and to the high word."""
    data = low.to_bytes(8, "little") + high.to_bytes(8, "little")
    shuffled = bytes(data[index] for index in (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7))
    return int.from_bytes(shuffled[:8], "little"), int.from_bytes(shuffled[8:], "little")


class HighwayHash:
    """HighwayHash-64, from the paper's pseudo code (arXiv 1612.06257)."""

    def __init__(self, key: bytes) -> None:
        words = [int.from_bytes(key[index : index + 8], "little") for index in range(0, 32, 8)]
        self.mul0: list[int] = list(INIT_0)
        self.mul1: list[int] = list(INIT_1)
        self.v0 = [init ^ word for init, word in zip(INIT_0, words, strict=True)]
        self.v1 = [init ^ (word >> 32 | (word & 0xFFFFFFFF) << 32) for init, word in zip(INIT_1, words, strict=True)]

    def _update(self, lanes: list[int]) -> None:
        for lane in range(4):
            self.v1[lane] = (self.v1[lane] + self.mul0[lane] + lanes[lane]) & MASK
            self.mul0[lane] ^= (self.v1[lane] & 0xFFFFFFFF) * (self.v0[lane] >> 32)
            self.v0[lane] = (self.v0[lane] + self.mul1[lane]) & MASK
            self.mul1[lane] ^= (self.v0[lane] & 0xFFFFFFFF) * (self.v1[lane] >> 32)
        for target, source in ((self.v0, self.v1), (self.v1, self.v0)):
            for lane in (0, 2):
                low, high = _zipper(source[lane + 1], source[lane])
                target[lane] = (target[lane] + low) & MASK
                target[lane + 1] = (target[lane + 1] + high) & MASK

    def _remainder(self, data: bytes) -> None:
        size = len(data)
        self.v0 = [(word + (size << 32) + size) & MASK for word in self.v0]
        self.v1 = [_rotate_halves(word, size) for word in self.v1]
        packet = bytearray(32)
        whole = size & ~3
        packet[:whole] = data[:whole]
        if size & 16:
            packet[28:32] = data[size - 4 : size]
        elif size & 3:
            rest = data[whole:]
            packet[16:19] = bytes((rest[0], rest[len(rest) >> 1], rest[-1]))
        self._update([int.from_bytes(packet[index : index + 8], "little") for index in range(0, 32, 8)])

    def hash(self, data: bytes) -> int:
        """The hash of a message. An object hashes one message."""
        whole = len(data) & ~31
        for start in range(0, whole, 32):
            self._update([int.from_bytes(data[at : at + 8], "little") for at in range(start, start + 32, 8)])
        if len(data) & 31:
            self._remainder(data[whole:])
        for _ in range(4):
            permuted = [self.v0[lane] for lane in (2, 3, 0, 1)]
            self._update([word >> 32 | (word & 0xFFFFFFFF) << 32 for word in permuted])
        return (self.v0[0] + self.v1[0] + self.mul0[0] + self.mul1[0]) & MASK


@lru_cache(maxsize=100_000)
def checksum(data: bytes, key: bytes = bytes(32)) -> bytes:
    """The hash of `data` as it is stored: eight bytes, big-endian. The key is 32 bytes."""
    return HighwayHash(key).hash(data).to_bytes(8, "big")
