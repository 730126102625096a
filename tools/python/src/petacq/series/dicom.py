"""Writes the images of ``petlm frames`` or ``petlm image`` as a DICOM series, one file for each slice (``petacq-dicom``)."""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import re
import shutil
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

from petacq.errors import PetacqError
from petacq.nuclide_codes import NUCLIDE_CODES
from petacq.optional import pydicom_module
from petacq.series import command
from petacq.series.frames import FrameSeries, read_series

_PET_IMAGE = "1.2.840.10008.5.1.4.1.1.128"
_MOST_STORED = 65535
#: Names in "corrections" of a frame, and the terms of Corrected Image (0028,0051).
_CORRECTED = {
    "decay": "DECY",
    "attenuation": "ATTN",
    "scatter": "SCAT",
    "dead time": "DTIM",
    "randoms": "RAN",
    "calibration": "DCAL",
    "normalisation": "NORM",
}
#: Radionuclides as the sidecar names them: F18.
_CODES = {name.replace("-", ""): code for name, code in NUCLIDE_CODES.items()}


def write_dicom(
    frames: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    patient_id: str = "",
    patient_name: str = "",
    study_uid: str | None = None,
    description: str = "",
    species: str = "",
    weight_kg: float | None = None,
) -> list[Path]:
    """Writes the frames in the directory ``frames``, as ``petlm frames`` made it, or the image in one of ``petlm image``, to
    ``output``, which must not exist yet: ``frame-001-slice-001.dcm`` and so on. Frames without data are left out; pixels without
    a value in the others are padding. The same frames give the same UIDs. ``study_uid``: of a study to which the series belongs. ``species``: of an
    animal, as "Mus musculus"; ``weight_kg``: of it, for uptake values.

    Returns the files. Raises ImportError without pydicom, PetacqError for what is no series of frames and for a text that
    DICOM does not take, OSError.
    """
    pydicom = pydicom_module()
    folder = Path(frames)
    read = read_series(folder)
    if "TimeZeroUTC" not in read.about:
        raise PetacqError(f"{folder}: DICOM needs the time of day of the run, which is not known")
    if study_uid is not None and (len(study_uid) > 64 or not re.fullmatch(pydicom.uid.RE_VALID_UID, study_uid)):
        raise PetacqError(f"expected a UID of digits and dots as the study, found {study_uid!r}")
    series = _Series(pydicom, read, study_uid)
    if not series.numbers:
        raise PetacqError(f"{folder}: no frame has data")
    about = pydicom.Dataset()
    program = str(read.about.get("SoftwareVersions", "petlm")).rsplit(" ", 1)[0]
    for name, text in (
        ("PatientID", patient_id),
        ("PatientName", patient_name),
        ("PatientSpeciesDescription", species),
        ("SeriesDescription", description or f"{program} {Path(read.about.get('Input', '')).name}"[:64]),
    ):
        if len(text) > 64 or not text.isprintable() or "\\" in text:
            raise PetacqError(f"{name}: expected up to 64 characters without backslash, found {text!r}")
        setattr(about, name, text)
    if not species:
        del about.PatientSpeciesDescription
    else:
        # An animal has more to say, which may be empty.
        for name in ("PatientSexNeutered", "PatientBreedDescription", "ResponsiblePerson", "ResponsibleOrganization"):
            setattr(about, name, "")
        about.PatientBreedCodeSequence = about.BreedRegistrationSequence = []
    if weight_kg is not None:
        about.PatientWeight = _decimal(pydicom, weight_kg)
    target = Path(output)
    partial = target.with_name(target.name + ".partial")
    if target.exists():
        raise FileExistsError(f"{target} exists")
    partial.mkdir(parents=True)
    names = []
    try:
        for place, frame in enumerate(series.numbers):
            for z in range(read.values.shape[1]):
                image = series.image(place, frame, z)
                image.update(about)
                names.append(f"frame-{frame + 1:03}-slice-{z + 1:03}.dcm")
                _save(image, partial / names[-1])
        partial.rename(target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return [target / name for name in names]


def _decimal(pydicom: Any, value: float) -> Any:
    """In the 16 characters that DICOM has for a number."""
    return pydicom.valuerep.DSfloat(float(value), auto_format=True)


def _save(image: Any, path: Path) -> None:
    try:
        image.save_as(path, enforce_file_format=True)
    except TypeError:  # pydicom 2
        image.is_little_endian, image.is_implicit_VR = True, False
        image.save_as(path, write_like_original=False)


class _Series:
    """What all images of a series have."""

    def __init__(self, pydicom: Any, volumes: FrameSeries, study_uid: str | None) -> None:
        self.pydicom, self.about, self.volumes = pydicom, volumes.about, volumes
        about = self.about
        self.frames: list[dict[str, Any]] = about["Frames"]
        self.numbers = [i for i, frame in enumerate(self.frames) if frame["data"]]
        self.start = datetime.strptime(about["TimeZeroUTC"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
        self.digest = hashlib.sha256(volumes.sidecar + volumes.values.tobytes()).hexdigest()
        self.study_uid = study_uid or self.uid("study")
        self.gated = "Gates" in about
        self.half_life_s = about.get("RadionuclideHalfLife")
        # kBq/ml, which DICOM has in Bq/ml; other units have no name there.
        self.factor, self.unit = {"kBq/mL": (1000.0, "BQML"), "decays per voxel": (1.0, "CNTS")}.get(
            about["Units"], (1.0, "NONE")
        )

    def decimal(self, value: float) -> Any:
        return _decimal(self.pydicom, value)

    def uid(self, name: str) -> str:
        """The same for the same series and name."""
        return str(self.pydicom.uid.generate_uid(entropy_srcs=[self.digest, name]))

    def corrected(self) -> list[str]:
        made = [{name for name, c in self.frames[i]["corrections"].items() if c["made"]} for i in self.numbers]
        return [term for name, term in _CORRECTED.items() if all(name in of_frame for of_frame in made)]

    def text_of(self, correction: str) -> str:
        found = self.frames[self.numbers[0]]["corrections"].get(correction, {})
        return str(found.get("text", ""))[:64] if found.get("made") else "NONE"

    def factor_of(self, frame: int) -> float | None:
        """By which the decay of a frame was corrected."""
        return float(self.about["DecayCorrectionFactor"][frame]) if self.about["ImageDecayCorrected"] else None

    def reference_ms(self, frame: int) -> float:
        """When a frame had its mean activity, since the start of the run."""
        factor = self.factor_of(frame)
        if factor is not None and self.half_life_s:
            return 1000 * math.log2(factor) * float(self.half_life_s)
        return 1000 * float(self.about["FrameTimesStart"][frame] + self.about["FrameDuration"][frame] / 2)

    def image(self, place: int, frame: int, z: int) -> Any:
        """Slice ``z`` of a frame, the ``place``-th with data."""
        dataset, uid = self.pydicom.Dataset(), self.uid(f"image {frame} {z}")
        meta = self.pydicom.dataset.FileMetaDataset()
        meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID = _PET_IMAGE, uid
        meta.TransferSyntaxUID = self.pydicom.uid.ExplicitVRLittleEndian
        dataset.file_meta = meta
        dataset.SpecificCharacterSet = "ISO_IR 192"
        dataset.SOPClassUID, dataset.SOPInstanceUID, dataset.Modality = _PET_IMAGE, uid, "PT"
        self.add_study(dataset)
        self.add_time(dataset, frame)
        self.add_series(dataset)
        self.add_isotope(dataset)
        self.add_place(dataset, z)
        slices = self.volumes.values.shape[1]
        dataset.ImageIndex = dataset.InstanceNumber = place * slices + z + 1
        self.add_pixels(dataset, frame, z)
        return dataset

    def add_study(self, d: Any) -> None:
        d.StudyInstanceUID, d.SeriesInstanceUID = self.study_uid, self.uid("series")
        d.FrameOfReferenceUID, d.PositionReferenceIndicator = self.uid("frame of reference"), ""
        d.AccessionNumber = d.ReferringPhysicianName = d.PatientBirthDate = d.PatientSex = ""
        d.StudyID, d.SeriesNumber, d.Laterality, d.TimezoneOffsetFromUTC = "1", 1, "", "+0000"
        known = {"n/a", None}
        d.Manufacturer = "" if self.about.get("Manufacturer") in known else str(self.about["Manufacturer"])
        d.ManufacturerModelName = str(self.about.get("ManufacturersModelName", ""))[:64]
        d.SoftwareVersions = str(self.about.get("SoftwareVersions", ""))[:64]

    def add_time(self, d: Any, frame: int) -> None:
        # The series begins when the run does: decay is corrected to that time.
        begin = self.start + timedelta(seconds=float(self.about["FrameTimesStart"][frame]))
        for name, time in (("Study", self.start), ("Series", self.start), ("Acquisition", begin), ("Content", begin)):
            setattr(d, name + "Date", time.strftime("%Y%m%d"))
            setattr(d, name + "Time", time.strftime("%H%M%S.%f"))
        d.FrameReferenceTime = round(self.reference_ms(frame), 3)
        d.ActualFrameDuration = round(1000 * float(self.frames[frame]["recorded_s"]))
        factor = self.factor_of(frame)
        if factor is not None:
            d.DecayFactor = self.decimal(factor)
        if self.gated:
            gates = self.about["Gates"]
            period_ms = 1000 * float(gates["period_s"])
            d.TriggerTime = round(period_ms * frame / len(self.frames), 3)
            d.FrameTime = round(period_ms / len(self.frames), 3)
            d.IntervalsAcquired = gates["cycles"]
            d.IntervalsRejected = gates["cycles_rejected"]

    def add_series(self, d: Any) -> None:
        count = len(self.numbers)
        kind = "GATED" if self.gated else "DYNAMIC" if count > 1 else "STATIC"
        d.ImageType = ["ORIGINAL", "PRIMARY"]
        d.SeriesType, d.Units, d.CountsSource = [kind, "IMAGE"], self.unit, "EMISSION"
        d.NumberOfSlices = self.volumes.values.shape[1]
        if kind == "DYNAMIC":
            d.NumberOfTimeSlices = count
        if self.gated:
            d.NumberOfRRIntervals, d.NumberOfTimeSlots = 1, count
            # With "Y" go the limits of an interval, which the sidecar does not have.
            d.BeatRejectionFlag = "" if self.about["Gates"]["cycles_rejected"] else "N"
        d.CorrectedImage = self.corrected() or ""
        d.DecayCorrection = "START" if self.about["ImageDecayCorrected"] is True else "NONE"
        d.RandomsCorrectionMethod = "SING" if "from the singles" in self.random_text() else self.short_randoms()
        d.AttenuationCorrectionMethod = self.text_of("attenuation")
        d.ScatterCorrectionMethod = self.text_of("scatter")
        values = zip(self.about["ReconMethodParameterLabels"], self.about["ReconMethodParameterValues"])
        d.ReconstructionMethod = (
            f"{self.about['ReconMethodName']} " + ", ".join(f"{value} {label}" for label, value in values)
        )[:64]
        d.CollimatorType = "NONE"

    def random_text(self) -> str:
        return str(self.frames[self.numbers[0]]["corrections"]["randoms"]["text"])

    def short_randoms(self) -> str:
        return "DLYD" if self.frames[self.numbers[0]]["corrections"]["randoms"]["made"] else "NONE"

    def add_isotope(self, d: Any) -> None:
        drug, isotope = self.pydicom.Dataset(), self.pydicom.Dataset()
        nuclide = str(self.about.get("TracerRadionuclide", ""))
        code = _CODES.get(nuclide)
        if code is not None:
            isotope.CodingSchemeDesignator, isotope.CodeValue, isotope.CodeMeaning = code
        drug.RadionuclideCodeSequence = self.pydicom.Sequence([isotope] if code is not None else [])
        if self.about.get("TracerName", "n/a") != "n/a":
            drug.Radiopharmaceutical = str(self.about["TracerName"])[:64]
        if self.half_life_s:
            drug.RadionuclideHalfLife = self.decimal(self.half_life_s)
            drug.RadionuclidePositronFraction = self.decimal(self.about["RadionuclidePositronFraction"])
        unit = {"Bq": 1.0, "kBq": 1e3, "MBq": 1e6, "GBq": 1e9}.get(str(self.about.get("InjectedRadioactivityUnits")))
        if unit is not None and "InjectedRadioactivity" in self.about:
            drug.RadionuclideTotalDose = self.decimal(unit * float(self.about["InjectedRadioactivity"]))
        if "InjectionStart" in self.about:
            time = self.start + timedelta(seconds=float(self.about["InjectionStart"]))
            drug.RadiopharmaceuticalStartTime = time.strftime("%H%M%S.%f")
            drug.RadiopharmaceuticalStartDateTime = time.strftime("%Y%m%d%H%M%S.%f+0000")
        d.RadiopharmaceuticalInformationSequence = self.pydicom.Sequence([drug])
        # Whether a patient or an animal, and how it lies, is not known.
        d.PatientOrientationCodeSequence = self.pydicom.Sequence([])
        d.PatientGantryRelationshipCodeSequence = self.pydicom.Sequence([])

    def add_place(self, d: Any, z: int) -> None:
        # x and y of NIfTI point to the right and to the front, those of DICOM to the left and to the back.
        x_mm, y_mm, z_mm = self.volumes.voxel_mm
        first = self.volumes.first_mm
        d.ImageOrientationPatient = [-1, 0, 0, 0, -1, 0]
        d.ImagePositionPatient = [round(v, 6) for v in (-first[0], -first[1], first[2] + z * z_mm)]
        d.SliceLocation = round(first[2] + z * z_mm, 6)
        d.PixelSpacing, d.SliceThickness = [round(y_mm, 6), round(x_mm, 6)], round(z_mm, 6)

    def add_pixels(self, d: Any, frame: int, z: int) -> None:
        values = self.volumes.values[frame, z].astype(np.float64) * self.factor
        unknown = np.isnan(values)
        values[unknown] = 0
        largest = float(values.max())
        # A decimal string has at most 16 characters: what is stored goes with the slope as written.
        slope = float(f"{largest / _MOST_STORED:.9e}") if largest > 0 else 1.0
        d.SamplesPerPixel, d.PhotometricInterpretation = 1, "MONOCHROME2"
        d.Rows, d.Columns = values.shape
        d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 16, 16, 15, 0
        d.RescaleIntercept, d.RescaleSlope = 0, f"{slope:.9e}"
        padded = bool(unknown.any())
        if padded:
            d.PixelPaddingValue = 0
        stored = np.clip(np.rint(values / slope), 1 if padded else 0, _MOST_STORED).astype("<u2")
        stored[unknown] = 0
        d.PixelData = stored.tobytes()


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: that of ``command.run``."""
    parser = argparse.ArgumentParser(
        prog="petacq-dicom", description="Writes the images of petlm frames or petlm image as a DICOM series of PET images."
    )
    parser.add_argument("frames", type=Path, help="directory of petlm frames or petlm image")
    parser.add_argument("output", type=Path, help="directory to write; must not exist")
    parser.add_argument("--patient-id", default="", help="Patient ID (0010,0020)")
    parser.add_argument("--patient-name", default="", help="Patient's Name (0010,0010)")
    parser.add_argument("--study-uid", help="Study Instance UID of a study to which the series belongs")
    parser.add_argument("--description", default="", help="Series Description (0008,103E)")
    parser.add_argument("--species", default="", help="Species (0010,2201) of an animal, such as 'Mus musculus'")
    parser.add_argument("--weight-kg", type=float, help="Weight (0010,1030), for uptake values")

    def write(given: argparse.Namespace) -> str:
        files = write_dicom(
            given.frames,
            given.output,
            patient_id=given.patient_id,
            patient_name=given.patient_name,
            study_uid=given.study_uid,
            description=given.description,
            species=given.species,
            weight_kg=given.weight_kg,
        )
        return f"{given.output}: {len(files)} images"

    return command.run(parser, arguments, write)


if __name__ == "__main__":
    raise SystemExit(main())
