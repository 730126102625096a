"""petacq.Image: the voxels of petlm's NIfTI files, and what a notebook shows of them."""

import base64
import gzip
import importlib.util
import json
import re
import struct
import unittest
import unittest.mock
import zlib

import numpy as np
import support

import petacq
from petacq.image.page import png_of_greys


def nifti(values, voxel_mm=(1.0, 2.0, 4.0), first_mm=(-3.0, -4.0, -8.0), **changes):
    """A file as petlm writes it, from the definition of NIfTI-1. ``changes``: other bytes, as (offset, format, numbers)."""
    head = bytearray(352)
    shape = values.shape[::-1]
    struct.pack_into("<i", head, 0, 348)
    struct.pack_into("<8h", head, 40, len(shape), *shape, *[1] * (7 - len(shape)))
    struct.pack_into("<hh", head, 70, 16, 32)
    struct.pack_into("<f", head, 108, 352)
    head[148:158] = b"made < now"
    for axis in range(3):
        row = [0.0] * 4
        row[axis], row[3] = voxel_mm[axis], first_mm[axis]
        struct.pack_into("<4f", head, 280 + 16 * axis, *row)
    head[344:348] = b"n+1\0"
    for offset, form, *numbers in changes.values():
        struct.pack_into(form, head, offset, *numbers)
    return bytes(head) + np.ascontiguousarray(values, "<f4").tobytes()


def put(name, data, about=None):
    folder = support.scratch() / name
    folder.mkdir(exist_ok=True)
    (folder / "image.nii").write_bytes(data)
    if about is not None:
        (folder / "image.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


def pixels(png):
    """[row][column][colour] of an unfiltered picture with 8 bits for each of three colours."""
    chunks, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        chunks[png[at + 4 : at + 8]] = png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size)[0] == zlib.crc32(png[at + 4 : at + 8 + size])
        at += 12 + size
    columns, rows, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0] and b"IEND" in chunks
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), "u1").reshape(rows, 1 + 3 * columns)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, 3)


VALUES = np.zeros((5, 6, 7), np.float32)
VALUES[3, 1, 5] = 8
VALUES[3, 1, 4] = VALUES[2, 1, 5] = 4
UNIT = {"unit": "kBq/ml"}


class Voxels(unittest.TestCase):
    def test_values_and_places(self):
        image = petacq.open_image(put("plain", nifti(VALUES), UNIT))
        np.testing.assert_array_equal(image.values, VALUES)
        self.assertEqual((image.voxel_mm, image.first_mm, image.unit), ((1, 2, 4), (-3, -4, -8), "kBq/ml"))
        self.assertEqual((image.description, image.frame_count), ("made < now", 1))
        x, y, z = image.axes_mm()
        self.assertEqual((x[5], y[1], z[3], len(x), len(y), len(z)), (2, -2, 4, 7, 6, 5))
        self.assertEqual(image.voxel((2.4, -2.9, 5.9)), (3, 1, 5))
        self.assertEqual(image.values[image.voxel((2, -2, 4))], 8)
        for outside in ((-3.6, 0, 0), (0, 7.1, 0), (0, 0, 10.1)):
            with self.assertRaisesRegex(IndexError, "outside of the image"):
                image.voxel(outside)
        self.assertIn("7 x 6 x 5 voxels, kBq/ml", repr(image))

    def test_the_brightest_place_is_not_a_voxel_of_noise(self):
        values = VALUES.copy()
        values[0, 5, 0] = 9
        image = petacq.open_image(put("noise", nifti(values)))
        self.assertEqual(image.brightest_mm(), (2, -2, 4))
        flat = petacq.open_image(put("flat", nifti(VALUES[3:4, 1:2])))
        self.assertEqual(flat.brightest_mm(), (2, -4, -8))

    def test_a_series(self):
        values = np.stack([np.full_like(VALUES, np.nan), VALUES, 2 * VALUES])
        folder = put("series", nifti(values), {"Units": "kBq/mL"})
        (folder / "image.nii").rename(folder / "frames.nii")
        (folder / "image.json").rename(folder / "frames.json")
        series = petacq.open_image(folder)
        self.assertEqual((series.frame_count, series.unit), (3, "kBq/ml"))
        np.testing.assert_array_equal(series.frame(2).values, 2 * VALUES)
        self.assertEqual(series.frame(2).frame(0).frame_count, 1)
        self.assertEqual(series.cuts()[0].values.max(), 8)  # the first with data
        with self.assertRaises(IndexError):
            series.frame(3)
        with self.assertRaises(IndexError):
            series.frame(0).frame(1)
        self.assertIn("frame 2 of 3", series._repr_html_())

    def test_a_compressed_file(self):
        path = put("compressed", nifti(VALUES)) / "image.nii.gz"
        path.write_bytes(gzip.compress(nifti(VALUES)))
        np.testing.assert_array_equal(petacq.open_image(path).values, VALUES)
        path.write_bytes(path.read_bytes()[:60])
        with self.assertRaisesRegex(petacq.PetacqError, "image.nii.gz: .* cannot be decompressed"):
            petacq.open_image(path)

    def test_what_petlm_did_not_write_is_refused(self):
        for name, data, reason in (
            ("text", b"nothing", "expected a NIfTI-1 file of petlm"),
            ("short", nifti(VALUES)[:-4], "expected 1192 bytes, found 1188"),
            ("integers", nifti(VALUES, type=(70, "<h", 4)), "nibabel reads others"),
            ("turned", nifti(VALUES, row=(284, "<f", 0.5)), "nibabel reads others"),
            ("mirrored", nifti(VALUES, row=(280, "<f", -1)), "nibabel reads others"),
            ("five", nifti(VALUES, dim=(40, "<h", 5)), "nibabel reads others"),
            ("none", nifti(VALUES, dim=(42, "<h", 0)), "nibabel reads others"),
            ("big-endian", nifti(VALUES, size=(0, ">i", 348)), "expected a NIfTI-1 file of petlm"),
        ):
            with self.subTest(name), self.assertRaisesRegex(petacq.PetacqError, f"image.nii: .*{reason}"):
                petacq.open_image(put(name, data))
        with self.assertRaisesRegex(petacq.PetacqError, "image.json: not JSON"):
            folder = put("no-json", nifti(VALUES))
            (folder / "image.json").write_text("{")
            petacq.open_image(folder)
        folder = support.scratch() / "empty"
        folder.mkdir()
        (folder / "uncertainty.nii").write_bytes(nifti(VALUES))
        with self.assertRaisesRegex(petacq.PetacqError, "one of image.nii and frames.nii; volumes in it: uncertainty.nii"):
            petacq.open_image(folder)
        self.assertEqual(petacq.open_image(folder / "uncertainty.nii").about, {})


class Shown(unittest.TestCase):
    def test_cuts(self):
        image = petacq.open_image(put("cuts", nifti(VALUES)))
        across_z, across_y, across_x = image.cuts((2, -2, 4))
        np.testing.assert_array_equal(across_z.values, VALUES[3])
        np.testing.assert_array_equal(across_y.values, VALUES[:, 1])
        np.testing.assert_array_equal(across_x.values, VALUES[:, :, 5])
        self.assertEqual((across_z.right, across_z.up, across_z.at_mm, across_z.extent_mm), ("x", "y", 4, (-3.5, 3.5, -5, 7)))
        self.assertEqual((across_y.right, across_y.up, across_y.at_mm, across_y.extent_mm), ("x", "z", -2, (-3.5, 3.5, -10, 10)))
        self.assertEqual((across_x.right, across_x.up, across_x.at_mm, across_x.extent_mm), ("y", "z", 2, (-5, 7, -10, 10)))

    def test_a_notebook_shows_three_cuts_and_the_scale(self):
        values = VALUES.copy()
        values[3, 5, 6] = np.nan
        text = petacq.open_image(put("shown", nifti(values), UNIT))._repr_html_()
        pictures = [pixels(base64.b64decode(data)) for data in re.findall(r"base64,([^']+)'", text)]
        self.assertEqual([picture.shape[:2] for picture in pictures], [(6, 7), (5, 7), (5, 6)])
        # Up is the last row of the values and the first of the picture.
        self.assertEqual(pictures[0][6 - 1 - 1, 5].tolist(), [0, 0, 0])
        self.assertEqual(pictures[0][6 - 1 - 1, 4].tolist(), [128, 128, 128])
        self.assertEqual(pictures[0][5, 0].tolist(), [255, 255, 255])
        self.assertEqual(pictures[0][0, 6].tolist(), [200, 220, 255])
        self.assertEqual(pictures[1][5 - 1 - 3, 5].tolist(), [0, 0, 0])
        self.assertEqual(pictures[2][5 - 1 - 3, 1].tolist(), [0, 0, 0])
        for part in ("kBq/ml", "<span>8</span><span>4</span><span>0</span>", "z = 4.0 mm", "made &lt; now", "white is 0, black is 8"):
            self.assertIn(part, text)
        # 20 mm, the longest axis, is 300 pixels.
        self.assertEqual(re.findall(r"width='(\d+)' height='(\d+)'", text), [("105", "180"), ("105", "300"), ("180", "300")])
        self.assertEqual(text.count("<div"), text.count("</div>"))

    def test_the_end_of_the_scale(self):
        image = petacq.open_image(put("scale", nifti(VALUES)))
        self.assertIn("<span>2</span><span>1</span><span>0</span>", image.to_html(black=2))
        self.assertIn("<span>12,345</span><span>6,172</span><span>0</span>", image.to_html(black=12345))
        with self.assertRaisesRegex(ValueError, "above 0"):
            image.to_html(black=0)
        nothing = petacq.open_image(put("nothing", nifti(np.zeros_like(VALUES))))
        self.assertIn("<span>0</span>", nothing.to_html())
        self.assertEqual(pixels(png_of_greys(np.zeros((2, 3), np.float32), 0.0)).min(), 255)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "matplotlib is not installed")
    def test_a_figure(self):
        image = petacq.open_image(put("figure", nifti(VALUES), UNIT))
        *axes, bar = image.figure((2, -2, 4)).axes
        for ax, cut in zip(axes, image.cuts((2, -2, 4)), strict=True):
            np.testing.assert_array_equal(ax.images[0].get_array(), cut.values)
            self.assertEqual((tuple(ax.images[0].get_extent()), ax.images[0].origin), (cut.extent_mm, "lower"))
            self.assertEqual((ax.get_xlabel(), ax.get_ylabel()), (f"{cut.right} (mm)", f"{cut.up} (mm)"))
            self.assertEqual(ax.images[0].get_clim(), (0, 8))
        self.assertEqual(bar.get_ylabel(), "kBq/ml")
        self.assertTrue(image._repr_png_().startswith(b"\x89PNG"))

    def test_without_matplotlib_there_is_html(self):
        image = petacq.open_image(put("without", nifti(VALUES)))
        with unittest.mock.patch.dict("sys.modules", {"matplotlib": None, "matplotlib.figure": None}):
            self.assertIsNone(image._repr_png_())
            with self.assertRaisesRegex(ImportError, r"pip install petacq\[notebook\]"):
                image.figure()
            self.assertIn("<img", image._repr_html_())


if __name__ == "__main__":
    unittest.main()
