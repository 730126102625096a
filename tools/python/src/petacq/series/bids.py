"""Puts the images of ``petlm frames`` or ``petlm image`` into a BIDS dataset (``petacq-bids``)."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from petacq.errors import PetacqError
from petacq.series import command
from petacq.series.frames import read_series

_VERSION = "1.10.0"
_README = """PET images in the Brain Imaging Data Structure (BIDS).

The images were made by petlm of petacqd from the list-mode of a PET scanner. The sidecar of each image (.json) says
when its frames were, what they were corrected for, and which records they were made from. Values are in the unit that it names.
Axes are those of the scanner, with the origin in its middle: they do not say how the subject lay.
"""


def write_bids(
    frames: str | os.PathLike[str],
    dataset: str | os.PathLike[str],
    subject: str,
    *,
    session: str | None = None,
    tracer: str | None = None,
    reconstruction: str | None = None,
    run: int | None = None,
    species: str | None = None,
    stated: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Writes the frames in the directory ``frames``, or the image in one of ``petlm image``, as
    ``sub-.../[ses-...]/pet/sub-..._pet.nii.gz`` with its sidecar to the directory ``dataset``. Makes that with
    ``dataset_description.json``, ``README`` and ``participants.tsv`` if it does not exist,
    and adds the subject, otherwise. Labels have letters and digits. ``species``: as "mus musculus"; BIDS takes subjects
    without one as humans. ``stated``: keys that BIDS requires and that petlm does not know, such as "TracerName".

    Returns the image and the sidecar. Raises PetacqError for what is no series of frames, if a key is unknown without
    which a dataset is not valid, for another label, and for another species than the dataset states; FileExistsError if there
    is such an image; OSError.
    """
    folder, root = Path(frames), Path(dataset)
    series = read_series(folder, stated)
    about = series.about
    if missing := [key for key in about["UnknownKeys"] if key not in about]:
        raise PetacqError(f"{folder}: BIDS needs {', '.join(missing)}: state them with petacq-bids --keys or petlm frames --bids")
    labels = {
        "sub": subject,
        "ses": session,
        "trc": tracer,
        "rec": reconstruction,
        "run": None if run is None else str(run),
    }
    for entity, label in labels.items():
        if label is not None and not re.fullmatch("[0-9a-zA-Z]+", label):
            raise PetacqError(f"{entity}-: expected a label of letters and digits, found {label!r}")
    stem = "_".join(f"{entity}-{label}" for entity, label in labels.items() if label is not None) + "_pet"
    directory = root / f"sub-{subject}" / (f"ses-{session}" if session else "") / "pet"
    image, sidecar = directory / f"{stem}.nii.gz", directory / f"{stem}.json"
    for path in (image, sidecar):
        if path.exists():
            raise FileExistsError(f"{path} exists")
    participants = root / "participants.tsv"
    table = _with_subject(participants, f"sub-{subject}", species)
    directory.mkdir(parents=True, exist_ok=True)
    description = {
        "Name": root.resolve().name,
        "BIDSVersion": _VERSION,
        "DatasetType": "raw",
        "GeneratedBy": [dict(zip(("Name", "Version"), str(about["SoftwareVersions"]).rsplit(" ", 1)))],
    }
    for path, text in (
        (root / "dataset_description.json", json.dumps(description, indent=2) + "\n"),
        (root / "README", _README),
    ):
        if not path.exists():
            _write(path, text.encode())
    _write(participants, table.encode())
    # The same frames give the same file.
    _write(image, gzip.compress(series.path.read_bytes(), mtime=0))
    _write(sidecar, series.sidecar)
    return [image, sidecar]


def _stated_in(path: Path) -> dict[str, Any]:
    try:
        stated = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise PetacqError(f"{path}: not JSON: {error}") from error
    if not isinstance(stated, dict):
        raise PetacqError(f"{path}: expected an object of keys of BIDS-PET")
    return stated


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _with_subject(path: Path, subject: str, species: str | None) -> str:
    """The table of participants, with a row of the subject."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else ["participant_id\tspecies"]
    columns = lines[0].split("\t")
    if columns[0] != "participant_id":
        raise PetacqError(f"{path}: expected participant_id as the first column")
    rows = [line.split("\t") for line in lines[1:] if line]
    row = next((row for row in rows if row[0] == subject), None)
    if row is None:
        row = [subject] + ["n/a"] * (len(columns) - 1)
        rows.append(row)
    if species is not None:
        if "species" not in columns:
            columns.append("species")
            for other in rows:
                other.append("n/a")
        at = columns.index("species")
        if row[at] not in ("n/a", species):
            raise PetacqError(f"{path}: {subject} is of the species {row[at]!r}, not {species!r}")
        row[at] = species
    return "".join("\t".join(cells) + "\n" for cells in [columns, *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: that of ``command.run``."""
    parser = argparse.ArgumentParser(
        prog="petacq-bids", description="Puts the images of petlm frames or petlm image into a BIDS dataset."
    )
    parser.add_argument("frames", type=Path, help="directory of petlm frames or petlm image")
    parser.add_argument("dataset", type=Path, help="directory of the dataset; made if it does not exist")
    parser.add_argument("--subject", required=True, help="label of the subject")
    parser.add_argument("--session", help="label of the session")
    parser.add_argument("--tracer", help="label of the tracer, such as FDG")
    parser.add_argument("--reconstruction", help="label of the reconstruction, such as acdyn")
    parser.add_argument("--run", type=int, help="number of the run")
    parser.add_argument("--species", help="such as 'mus musculus'; BIDS takes subjects without one as humans")
    parser.add_argument(
        "--keys", type=Path, help="JSON file with keys that BIDS requires and that petlm does not know, such as TracerName"
    )

    def write(given: argparse.Namespace) -> str:
        files = write_bids(
            given.frames,
            given.dataset,
            given.subject,
            session=given.session,
            tracer=given.tracer,
            reconstruction=given.reconstruction,
            run=given.run,
            species=given.species,
            stated=None if given.keys is None else _stated_in(given.keys),
        )
        return str(files[0])

    return command.run(parser, arguments, write)


if __name__ == "__main__":
    raise SystemExit(main())
