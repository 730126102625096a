"""Cuts as a figure of matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from petacq.image.cuts import Cut
from petacq.optional import matplotlib_module

if TYPE_CHECKING:
    import matplotlib.figure


def figure_of(cuts: Sequence[Cut], black: float, unit: str) -> matplotlib.figure.Figure:
    # Without pyplot, which would keep each figure.
    widths = [cut.extent_mm[1] - cut.extent_mm[0] for cut in cuts]
    made: matplotlib.figure.Figure = matplotlib_module().figure.Figure(figsize=(12, 4.2), layout="constrained")
    axes = made.subplots(1, len(cuts), width_ratios=widths)
    for ax, cut in zip(axes, cuts):
        drawn = ax.imshow(cut.values, "gray_r", vmin=0, vmax=black or 1, origin="lower", extent=cut.extent_mm)
        ax.set(title=f"{cut.across} = {cut.at_mm:.1f} mm", xlabel=f"{cut.right} (mm)", ylabel=f"{cut.up} (mm)")
    made.colorbar(drawn, ax=list(axes), label=unit or "value", shrink=0.8)
    return made


def png_of(figure: Any) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=80)
    return out.getvalue()
