"""How strongly the materials of crystals attenuate photons of 511 keV."""

from __future__ import annotations

from petacq.errors import ScannerError
from petacq.scanner.arrangement import Layer

#: Linear, at 511 keV: the table of petacqd.
ATTENUATION_PER_CM = {
    "BGO": 0.95,
    "BaF2": 0.45,
    "GAGG": 0.58,
    "GSO": 0.70,
    "LSO": 0.87,
    "LYSO": 0.83,
    "LaBr3": 0.47,
    "LuAP": 0.95,
    "NaI": 0.34,
}


def attenuation_per_mm(layer: Layer) -> float:
    """What the description states, or else that of the material. Raises ScannerError for an unknown material."""
    if layer.attenuation_per_cm is not None:
        return layer.attenuation_per_cm / 10
    if layer.material not in ATTENUATION_PER_CM:
        raise ScannerError(f"material: expected one of {', '.join(ATTENUATION_PER_CM)}, found {layer.material!r}")
    return ATTENUATION_PER_CM[layer.material] / 10
