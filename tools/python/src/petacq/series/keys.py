"""Required keys of BIDS-PET about what ``petlm`` does not measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from petacq.errors import PetacqError

_TEXT, _NUMBER, _NUMBER_OR_UNKNOWN = "a text", "a number", 'a number or "n/a"'
#: What BIDS takes as their values.
_REQUIRED = {
    "Manufacturer": _TEXT,
    "ManufacturersModelName": _TEXT,
    "TracerName": _TEXT,
    "TracerRadionuclide": _TEXT,
    "InjectedMass": _NUMBER_OR_UNKNOWN,
    "InjectedMassUnits": _TEXT,
    "InjectedRadioactivity": _NUMBER,
    "InjectedRadioactivityUnits": _TEXT,
    "SpecificRadioactivity": _NUMBER_OR_UNKNOWN,
    "SpecificRadioactivityUnits": _TEXT,
    "ModeOfAdministration": _TEXT,
    "InjectionStart": _NUMBER,
}
_UNKNOWN = "n/a"


def fill_unknown(about: dict[str, Any]) -> None:
    """Required keys that it lacks are "n/a" or, where BIDS takes numbers only, left out; "UnknownKeys" names them."""
    about["UnknownKeys"] = [key for key in _REQUIRED if key not in about]
    about |= {key: _UNKNOWN for key in about["UnknownKeys"] if _REQUIRED[key] != _NUMBER}
    if "TimeZero" not in about:
        about["UnknownKeys"].append("TimeZero")


def state(about: dict[str, Any], stated: Mapping[str, Any]) -> None:
    """Takes over what a user says of the keys that are unknown. Raises PetacqError for other keys, and for values that BIDS does
    not take."""
    for key, value in stated.items():
        if key not in _REQUIRED or key not in about["UnknownKeys"]:
            unknown = ", ".join(name for name in about["UnknownKeys"] if name in _REQUIRED) or "none"
            raise PetacqError(f"{key} cannot be stated: expected keys that petlm does not know: {unknown}")
        expected = _REQUIRED[key]
        good = isinstance(value, str) if expected == _TEXT else isinstance(value, (int, float)) and not isinstance(value, bool)
        if not good and not (expected == _NUMBER_OR_UNKNOWN and value == _UNKNOWN):
            raise PetacqError(f"{key}: expected {expected}, found {value!r}")
        about[key] = value
        about["UnknownKeys"].remove(key)
