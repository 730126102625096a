"""Compressed blocks of list-mode. Needs Python 3.14 or the package ``zstandard``."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


def decompress(stored: Bytes, records: int, record_bytes: int) -> Bytes | None:
    """The records; None if ``stored`` does not hold that many. The bytes were transposed before they were compressed."""
    data = _zstd()(stored.tobytes(), records * record_bytes)
    if data is None:
        return None
    return np.ascontiguousarray(np.frombuffer(data, np.uint8).reshape(record_bytes, records).T).reshape(-1)


@cache
def _zstd() -> Callable[[bytes, int], bytes | None]:
    """Decompresses a frame of the given size."""
    try:
        standard: Any = importlib.import_module("compression.zstd")

        def by_standard(frame: bytes, size: int) -> bytes | None:
            try:
                if standard.get_frame_info(frame).decompressed_size != size:
                    return None
                data: bytes = standard.decompress(frame)
                return data
            except standard.ZstdError:
                return None

        return by_standard
    except ImportError:
        pass
    try:
        package: Any = importlib.import_module("zstandard")
    except ImportError as error:
        raise ImportError(
            "petacq: the blocks of this file are compressed: install zstandard (pip install petacq[zstd])"
        ) from error

    def by_package(frame: bytes, size: int) -> bytes | None:
        try:
            if package.frame_content_size(frame) != size:
                return None
            data: bytes = package.ZstdDecompressor().decompress(frame)
            return data
        except package.ZstdError:
            return None

    return by_package
