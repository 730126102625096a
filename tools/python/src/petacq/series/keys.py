"""Required keys of BIDS-PET about what ``petlm`` does not measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from petacq.errors import PetacqError

_TEXTS = (
    "Manufacturer",
    "ManufacturersModelName",
    "TracerName",
    "TracerRadionuclide",
    "InjectedMassUnits",
    "InjectedRadioactivityUnits",
    "SpecificRadioactivityUnits",
    "ModeOfAdministration",
)
_NUMBERS = ("InjectedRadioactivity", "InjectionStart")
_NUMBERS_OR_UNKNOWN = ("InjectedMass", "SpecificRadioactivity")
_REQUIRED = (*_TEXTS, *_NUMBERS, *_NUMBERS_OR_UNKNOWN)
_UNKNOWN = "n/a"


def fill_unknown(about: dict[str, Any]) -> None:
    """Required keys that it lacks are "n/a" or, where BIDS takes numbers only, left out; "UnknownKeys" names them."""
    about["UnknownKeys"] = [key for key in _REQUIRED if key not in about]
    about |= {key: _UNKNOWN for key in about["UnknownKeys"] if key not in _NUMBERS}
    if "TimeZero" not in about:
        about["UnknownKeys"].append("TimeZero")


def state(about: dict[str, Any], stated: Mapping[str, Any]) -> None:
    """Takes over what a user says of the keys that are unknown. Raises PetacqError for other keys, and for values that BIDS does
    not take."""
    for key, value in stated.items():
        if key not in _REQUIRED or key not in about["UnknownKeys"]:
            unknown = ", ".join(name for name in about["UnknownKeys"] if name in _REQUIRED) or "none"
            raise PetacqError(f"{key} cannot be stated: expected keys that petlm does not know: {unknown}")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if key in _TEXTS:
            good, expected = isinstance(value, str), "a text"
        elif key in _NUMBERS:
            good, expected = number, "a number"
        else:
            good, expected = number or value == _UNKNOWN, 'a number or "n/a"'
        if not good:
            raise PetacqError(f"{key}: expected {expected}, found {value!r}")
        about[key] = value
        about["UnknownKeys"].remove(key)
