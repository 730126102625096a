"""Cuts as HTML for a notebook, without other packages."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from petacq.image.cuts import Cut

_LARGEST_PX = 300


def html_of(cuts: Sequence[Cut], black: float, unit: str, caption: str, title: str) -> str:
    """White is 0, black is ``black``; voxels without data are blue."""
    longest_mm = max(max(cut.extent_mm[1] - cut.extent_mm[0], cut.extent_mm[3] - cut.extent_mm[2]) for cut in cuts)
    figures = "".join(_figure(cut, black, _LARGEST_PX / longest_mm) for cut in cuts)
    unit = html.escape(unit or "value of unknown unit")
    scale = (
        "<figure style='margin:0 1em 1em 0'><figcaption>" + unit + "</figcaption>"
        f"<div role='img' aria-label='Scale: white is 0, black is {_number(black)} {unit}' style='display:flex'>"
        f"<div style='width:14px;height:{_LARGEST_PX}px;border:1px solid #999;background:linear-gradient(to top,#fff,#000)'></div>"
        "<div style='display:flex;flex-direction:column;justify-content:space-between;margin-left:4px'>"
        f"<span>{_number(black)}</span><span>{_number(black / 2)}</span><span>0</span></div></div></figure>"
    )
    head = f"<strong>{html.escape(title)}</strong>"
    foot = f"<div>{html.escape(caption)}</div>" if caption else ""
    return f"<div>{head}<div style='display:flex;flex-wrap:wrap;align-items:flex-start'>{figures}{scale}</div>{foot}</div>"


def _figure(cut: Cut, black: float, px_per_mm: float) -> str:
    left, right, bottom, top = cut.extent_mm
    width, height = round((right - left) * px_per_mm), round((top - bottom) * px_per_mm)
    png = base64.b64encode(png_of_greys(cut.values[::-1], black)).decode()
    where = f"{cut.across} = {cut.at_mm:.1f} mm"
    across = f"{cut.right} {left:.1f} to {right:.1f} mm to the right, {cut.up} {bottom:.1f} to {top:.1f} mm up"
    return (
        f"<figure style='margin:0 1em 1em 0;width:{width + 2}px'><figcaption>{where}</figcaption>"
        f"<img alt='Cut at {where}: {across}' width='{width}' height='{height}' style='image-rendering:pixelated;border:1px solid #999'"
        f" src='data:image/png;base64,{png}'><figcaption>{across}</figcaption></figure>"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def png_of_greys(values: npt.NDArray[np.float32], black: float) -> bytes:
    """A picture of these rows, the first one at the top."""
    unknown = np.isnan(values)
    share = np.nan_to_num(values, nan=0.0).astype(np.float64) / (black if black > 0 else 1.0)
    grey = np.rint(255 * (1 - np.clip(share, 0, 1))).astype(np.uint8)
    colours = np.repeat(grey[:, :, None], 3, 2)
    colours[unknown] = (200, 220, 255)
    rows, columns = values.shape
    # A byte in front of each row says that it is not filtered.
    lines = np.zeros((rows, 1 + 3 * columns), np.uint8)
    lines[:, 1:] = colours.reshape(rows, -1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
