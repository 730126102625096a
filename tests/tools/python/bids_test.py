"""Frames of petlm frames in a BIDS dataset: the validator of BIDS, where it is installed, finds no error in it."""

import csv
import gzip
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import support

import petacq
from petacq.series import bids

STATED = {
    "TracerName": "FDG",
    "Manufacturer": "ACME",
    "ModeOfAdministration": "bolus",
    "InjectedRadioactivity": 5.5,
    "InjectedRadioactivityUnits": "MBq",
    "InjectionStart": -60,
}


def frames(name, stated):
    folder = support.scratch() / name
    if not folder.exists():
        (support.scratch() / f"{name}.json").write_text(json.dumps(stated))
        support.call(
            *("petlm", "frames", support.small_run(), "--output", folder, "--schedule", "2x0.1s,0.15s"),
            *("--voxel-mm", 8, "--iterations", 1, "--subsets", 1, "--backend", "cpu", "--depth-mm", 0),
            *("--bids", support.scratch() / f"{name}.json"),
        )
    return folder


class Bids(unittest.TestCase):
    def test_a_dataset_is_valid(self):
        root = support.scratch() / "dataset"
        series = frames("stated", STATED)
        image, sidecar = petacq.write_bids(series, root, "01", tracer="FDG", reconstruction="acdyn", species="mus musculus")
        self.assertEqual(image, root / "sub-01/pet/sub-01_trc-FDG_rec-acdyn_pet.nii.gz")
        self.assertEqual(gzip.decompress(image.read_bytes()), (series / "frames.nii").read_bytes())
        self.assertEqual(sidecar.read_bytes(), (series / "frames.json").read_bytes())
        petacq.write_bids(series, root, "02", session="a", run=2)
        self.assertTrue((root / "sub-02/ses-a/pet/sub-02_ses-a_run-2_pet.json").is_file())
        description = json.loads((root / "dataset_description.json").read_text())
        self.assertEqual((description["Name"], description["DatasetType"]), ("dataset", "raw"))
        self.assertGreater(len((root / "README").read_text()), 150)
        with open(root / "participants.tsv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        self.assertEqual(rows, [{"participant_id": "sub-01", "species": "mus musculus"}, {"participant_id": "sub-02", "species": "n/a"}])
        self.assertEqual(list(root.rglob("*.partial")), [])
        validator = shutil.which("bids-validator-deno") or shutil.which("bids-validator-deno", path=Path(sys.executable).parent)
        if validator is None:
            return
        said = subprocess.run([validator, root, "--format", "json"], capture_output=True, text=True, timeout=support.PATIENCE_S)
        found = [i for i in json.loads(said.stdout)["issues"]["issues"] if i["severity"] == "error"]
        self.assertEqual(found, [])

    def test_what_the_dataset_has_stays(self):
        root = support.scratch() / "mine"
        root.mkdir()
        (root / "README").write_text("mine")
        (root / "participants.tsv").write_text("participant_id\tage\nsub-07\t3\n")
        series = frames("stated", STATED)
        petacq.write_bids(series, root, "08", species="rattus norvegicus")
        petacq.write_bids(series, root, "07", session="b")
        self.assertEqual((root / "README").read_text(), "mine")
        self.assertEqual(
            (root / "participants.tsv").read_text(),
            "participant_id\tage\tspecies\nsub-07\t3\tn/a\nsub-08\tn/a\trattus norvegicus\n",
        )
        with self.assertRaisesRegex(petacq.PetacqError, "rattus norvegicus"):
            petacq.write_bids(series, root, "08", session="c", species="mus musculus")
        with self.assertRaises(FileExistsError):
            petacq.write_bids(series, root, "07", session="b")

    def test_what_is_not_valid_is_refused(self):
        root = support.scratch() / "none"
        with self.assertRaisesRegex(petacq.PetacqError, "BIDS needs InjectedRadioactivity, InjectionStart: state them"):
            petacq.write_bids(frames("unstated", {}), root, "01")
        for wrong in ({"subject": "a_b"}, {"subject": ""}, {"subject": "1", "session": "../x"}, {"subject": "1", "run": -1}):
            with self.assertRaisesRegex(petacq.PetacqError, "expected a label"):
                petacq.write_bids(frames("stated", STATED), root, **wrong)
        self.assertFalse(root.exists())
        series = frames("stated", STATED)
        self.assertEqual(bids.main([str(series), str(root), "--subject", "1 "]), 65)
        self.assertEqual(bids.main([str(series / "none"), str(root), "--subject", "1"]), 74)
        self.assertEqual(bids.main([str(series), str(root)]), 64)


if __name__ == "__main__":
    unittest.main()
