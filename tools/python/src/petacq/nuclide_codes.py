"""Codes of nuclides in DICOM (PS3.16, CID 4020)."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    scheme: str
    value: str
    meaning: str


NUCLIDE_CODES: dict[str, Code] = {
    "C-11": Code("SCT", "40565003", "^11^Carbon"),
    "N-13": Code("SCT", "21576001", "^13^Nitrogen"),
    "O-14": Code("SCT", "424875009", "^14^Oxygen"),
    "O-15": Code("SCT", "129504001", "^15^Oxygen"),
    "F-18": Code("SCT", "77004003", "^18^Fluorine"),
    "Na-22": Code("SCT", "71633006", "^22^Sodium"),
    "K-38": Code("SCT", "423764008", "^38^Potassium"),
    "Sc-43": Code("DCM", "126605", "^43^Scandium"),
    "Sc-44": Code("DCM", "126600", "^44^Scandium"),
    "Ti-45": Code("SCT", "75696008", "^45^Titanium"),
    "Mn-51": Code("DCM", "126601", "^51^Manganese"),
    "Fe-52": Code("SCT", "69089000", "^52^Iron"),
    "Mn-52": Code("SCT", "37225000", "^52^Manganese"),
    "Mn-52m": Code("DCM", "126607", "^52m^Manganese"),
    "Cu-60": Code("SCT", "425364008", "^60^Copper"),
    "Cu-61": Code("SCT", "71425003", "^61^Copper"),
    "Cu-62": Code("SCT", "422934004", "^62^Copper"),
    "Zn-62": Code("SCT", "65054007", "^62^Zinc"),
    "Cu-64": Code("SCT", "3932008", "^64^Copper"),
    "Ga-66": Code("SCT", "79477007", "^66^Gallium"),
    "Ga-68": Code("SCT", "35337001", "^68^Gallium"),
    "Ge-68": Code("SCT", "53315004", "^68^Germanium"),
    "As-70": Code("DCM", "126602", "^70^Arsenic"),
    "As-72": Code("SCT", "2705002", "^72^Arsenic"),
    "Se-73": Code("SCT", "87437000", "^73^Selenium"),
    "Br-75": Code("SCT", "17910003", "^75^Bromine"),
    "Br-76": Code("SCT", "79523006", "^76^Bromine"),
    "Br-77": Code("SCT", "86521004", "^77^Bromine"),
    "Rb-82": Code("SCT", "79197006", "^82^Rubidium"),
    "Y-86": Code("SCT", "10738001", "^86^Yttrium"),
    "Zr-89": Code("SCT", "63360001", "^89^Zirconium"),
    "Nb-90": Code("DCM", "126603", "^90^Niobium"),
    "Y-90": Code("SCT", "14691008", "^90^Yttrium"),
    "Tc-94m": Code("SCT", "424079002", "^94m^Technetium"),
    "I-124": Code("SCT", "40937006", "^124^Iodine"),
    "Tb-152": Code("DCM", "126606", "^152^Terbium"),
}
