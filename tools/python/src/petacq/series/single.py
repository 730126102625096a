"""``image.json`` of a single image as the sidecar of a series of one frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from petacq.coverage import Coverage
from petacq.errors import PetacqError
from petacq.series.keys import fill_unknown


def sidecar_of_image(image: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What ``petlm frames`` says in ``frames.json`` of a frame of all records. ``name``: of the file, for errors. Raises
    PetacqError for an image that does not tell it."""
    if image.get("program") != "petlm image":
        raise PetacqError(f"{name}: expected that of petlm image")
    if "iterations" not in image:
        raise PetacqError(f"{name}: of an earlier petlm image, which did not tell all that is needed: make the image again")
    coverage = Coverage.from_json(image["coverage"])
    if coverage.span is None:
        raise PetacqError(f"{name}: it is not known when the records of the image were taken")
    start, end = coverage.span
    corrections: Mapping[str, Any] = image["corrections"]
    attenuation, decayed = corrections["attenuation"], corrections["decay"]["made"] is True
    software = f"petlm image {image['version']}"
    about: dict[str, Any] = {
        "SoftwareVersions": software,
        "ReconMethodImplementationVersion": software,
        "Input": image["input"],
        "ScanStart": coverage.since_reference_s(start),
        "FrameTimesStart": [coverage.since_reference_s(start)],
        "FrameDuration": [(end - start) * coverage.tick_s],
        "AcquisitionMode": "list mode",
        "ReconMethodName": "MLEM" if image["subsets"] == 1 else "OSEM",
        "ReconMethodParameterLabels": ["iterations", "subsets"],
        "ReconMethodParameterUnits": ["none", "none"],
        "ReconMethodParameterValues": [image["iterations"], image["subsets"]],
        "ReconFilterType": "Gaussian" if image["smooth_mm"] > 0 else "none",
        "ReconFilterSize": image["smooth_mm"],
        "AttenuationCorrection": attenuation["text"] if attenuation["made"] else "none",
        "ImageDecayCorrected": decayed,
        "ImageDecayCorrectionTime": 0,
        "Units": "kBq/mL" if image["unit"] == "kBq/ml" else image["unit"],
        "ManufacturersModelName": image["scanner"],
        "ScaleFactor": [1],
        "Coverage": image["coverage"],
        "Notes": [],
    }
    if image["reference_utc"] is not None:
        about["TimeZeroUTC"] = image["reference_utc"]
        about["TimeZero"] = image["reference_utc"][11:19]
    if image["nuclide"] is not None:
        about["TracerRadionuclide"] = image["nuclide"].replace("-", "")
        about["RadionuclideHalfLife"] = image["half_life_s"]
        about["RadionuclidePositronFraction"] = image["branching_ratio"]
    if decayed:
        about["DecayCorrectionFactor"] = [coverage.decay_factor(image["half_life_s"])]
    frame = {"from_ticks": start, "to_ticks": end, "recorded_s": image["duration_s"], "data": True, "corrections": corrections}
    if "positions" in image:
        frame["positions"] = image["positions"]
    about["Frames"] = [frame]
    fill_unknown(about)
    return about
