"""Compression for the plain Python codec: LZ4 blocks by hand, zstd through what is installed.

Decompression is bounded by the size a checked header states: more or less than that is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from headrace.codec.layout import CodecError

_LENGTH_FULL = 15
_MATCH_LEAST = 4
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_REPEATED = 1


def compress(content: bytes, codec: str) -> bytes:
    """The content as the codec stores it."""
    if codec == "none":
        return content
    if codec == "lz4":
        return _lz4_literals(content)
    return _zstd("compress")(content, 0)


def decompress(stored: memoryview, codec: str, size: int) -> bytes:
    """Exactly ``size`` bytes of content. Raises CodecError."""
    content = bytes(stored)
    if codec == "lz4":
        content = _lz4_block(content, size)
    elif codec == "zstd":
        # Libraries differ about bytes after the frame, which no size accounts for.
        if _zstd_frame_bytes(content) != len(content):
            raise CodecError("BATCH_COMPRESSION", "the bytes are not one zstd frame")
        content = _zstd("decompress")(content, size)
    if len(content) != size:
        raise CodecError("BATCH_COMPRESSION", f"{len(content)} bytes instead of {size}")
    return content


def _lz4_literals(content: bytes) -> bytes:
    """A block of one run of literals: valid everywhere, and never smaller than the content."""
    size = len(content)
    if size < _LENGTH_FULL:
        return bytes([size << 4]) + content
    more, last = divmod(size - _LENGTH_FULL, 255)
    return bytes([_LENGTH_FULL << 4]) + b"\xff" * more + bytes([last]) + content


def _lz4_length(block: bytes, at: int, length: int) -> tuple[int, int]:
    if length < _LENGTH_FULL:
        return length, at
    while True:
        more = block[at]
        at += 1
        length += more
        if more != 255:
            return length, at


def _lz4_block(block: bytes, size: int) -> bytes:
    content = bytearray()
    at = 0
    try:
        while True:
            token = block[at]
            literals, at = _lz4_length(block, at + 1, token >> 4)
            if literals > len(block) - at or len(content) + literals > size:
                break
            content += block[at : at + literals]
            at += literals
            if at == len(block):
                return bytes(content)
            distance = block[at] | block[at + 1] << 8
            length, at = _lz4_length(block, at + 2, token & 15)
            length += _MATCH_LEAST
            start = len(content) - distance
            if distance == 0 or start < 0 or len(content) + length > size:
                break
            # A match may reach into what it is just writing: then its bytes repeat.
            pattern = bytes(content[start : start + length])
            content += (pattern * (length // len(pattern) + 1))[:length]
    except IndexError:
        pass
    raise CodecError("BATCH_COMPRESSION", "the lz4 block is malformed")


def _zstd_frame_bytes(stored: bytes) -> int:
    """Where the frame at the front ends (RFC 8878), by its blocks; 0 if it does not."""
    if len(stored) < 5 or stored[:4] != _ZSTD_MAGIC:
        return 0
    descriptor = stored[4]
    single_segment = descriptor >> 5 & 1
    content_size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    at = 5 + (1 - single_segment) + dictionary_bytes + content_size_bytes
    last = 0
    while not last:
        header = int.from_bytes(stored[at : at + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        at += 3 + (1 if kind == _ZSTD_REPEATED else size)
        if at > len(stored):
            return 0
    return at + 4 * (descriptor >> 2 & 1)


def _zstd(verb: str) -> Callable[[bytes, int], bytes]:
    """``compress`` or ``decompress`` of whichever library is installed."""
    try:
        module = import_module("zstandard")
    except ImportError:
        return _zstd_arrow(verb)

    def compress(content: bytes, _size: int) -> bytes:
        compressed: bytes = module.ZstdCompressor(level=3).compress(content)
        return compressed

    def decompress(stored: bytes, size: int) -> bytes:
        # A few bytes may open into gigabytes: look no further than a byte beyond the size.
        try:
            with module.ZstdDecompressor().stream_reader(stored) as reader:
                content: bytes = reader.read(size + 1)
        except module.ZstdError as error:
            raise CodecError("BATCH_COMPRESSION", "the zstd frame is malformed") from error
        return content

    return compress if verb == "compress" else decompress


def _zstd_arrow(verb: str) -> Callable[[bytes, int], bytes]:
    try:
        arrow = import_module("pyarrow")
    except ImportError as error:
        raise CodecError(
            "BATCH_CODEC", "zstd needs the compiled codec, or the package zstandard or pyarrow"
        ) from error

    def compress(content: bytes, _size: int) -> bytes:
        compressed: bytes = arrow.compress(content, codec="zstd", asbytes=True)
        return compressed

    def decompress(stored: bytes, size: int) -> bytes:
        try:
            content: bytes = arrow.decompress(stored, size, codec="zstd", asbytes=True)
        except (OSError, ValueError) as error:
            raise CodecError("BATCH_COMPRESSION", "the zstd frame is malformed") from error
        return content

    return compress if verb == "compress" else decompress
