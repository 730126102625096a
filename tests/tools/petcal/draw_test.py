"""petcal draw: the page in a headless Chromium, and the picture. Exit status 77: Chromium is not installed.

Usage: draw_test.py PETCAL SOURCE_DIRECTORY
"""

import collections
import colorsys
import json
import os
import subprocess
import sys
import tempfile
import unittest
import zlib

PETCAL, SOURCE = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import browser  # noqa: E402

EXAMPLES = os.path.join(SOURCE, "config", "examples")
SCANNERS = {"small": "small.scanner.json"} | {name: f"scanners/{name}.scanner.json"
                                              for name in ("phoswich", "box", "insert", "total-body")}


def draw(scanner, output, *options):
    return subprocess.run([PETCAL, "draw", "--scanner", os.path.join(EXAMPLES, SCANNERS.get(scanner, scanner)), "-o", output, *options],
                          capture_output=True, text=True, check=False)


def rows_of_png(path):
    """The pixels of a picture: their colours, row by row."""
    with open(path, "rb") as file:
        content = file.read()
    width, height = (int.from_bytes(content[at:at + 4], "big") for at in (16, 20))
    channels = {2: 3, 6: 4, 0: 1}[content[25]]
    data, at = b"", 8
    while at < len(content):
        length = int.from_bytes(content[at:at + 4], "big")
        if content[at + 4:at + 8] == b"IDAT":
            data += content[at + 8:at + 8 + length]
        at += length + 12
    rows, stride = zlib.decompress(data), width * channels
    before, pixels = bytes(stride), []
    for y in range(height):
        kind, row = rows[y * (stride + 1)], bytearray(rows[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        for x in range(stride):
            left, above = row[x - channels] if x >= channels else 0, before[x]
            corner = before[x - channels] if x >= channels else 0
            nearest = min((left, above, corner), key=lambda v: abs(left + above - corner - v))
            row[x] = (row[x] + (0, left, above, (left + above) // 2, nearest)[kind]) & 255
        before = bytes(row)
        pixels.append([before[x:x + 3] for x in range(0, stride, channels)])
    return pixels


def modules_under_labels(rows):
    """The modules whose colours shine through the labels of a picture, one for each label."""
    # A label is four fifths white, a face never: its least part is at most 0.35 of the largest number.
    labels = {(x, y) for y, row in enumerate(rows) for x, pixel in enumerate(row) if 204 <= min(pixel) < 230 and max(pixel) < 250}
    found = []
    while labels:
        at = [labels.pop()]
        colours = collections.Counter()
        while at:
            x, y = at.pop()
            colours[rows[y][x]] += 1
            for near in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
                if near in labels:
                    labels.remove(near)
                    at.append(near)
        if colours.total() < 200:  # the rims of faces
            continue
        hue = colorsys.rgb_to_hsv(*((part - 204) * 5 / 255 for part in colours.most_common(1)[0][0]))[0]
        distance = [abs((0.58 + 0.618034 * module - hue + 0.5) % 1 - 0.5) for module in range(28)]
        found.append(distance.index(min(distance)))
    return sorted(found)


class Draw(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser(CHROMIUM)
        cls.directory = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.directory.cleanup()

    def open(self, scanner, *options):
        path = os.path.join(self.directory.name, os.path.basename(scanner) + ".html")
        result = draw(scanner, path, "--force", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        page = self.browser.page()
        self.addCleanup(page.close)
        page.open("file://" + path)
        page.wait("drawn.length > 0")
        return page

    def pixels(self, page):
        """The share of the canvas that is drawn on."""
        return page.evaluate("""(() => {
            const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
            let drawn = 0;
            for (let i = 3; i < data.length; i += 4) drawn += data[i] > 0;
            return drawn / (canvas.width * canvas.height);
        })()""")

    def test_every_box_is_drawn(self):
        for scanner in SCANNERS:
            with self.subTest(scanner):
                page = self.open(scanner)
                self.assertGreater(self.pixels(page), 0.05)
                # Of a closed box three faces look at the viewer.
                self.assertEqual(page.evaluate("new Set(drawn.map(d => d.box)).size"), page.evaluate("boxes.length"))
                self.assertEqual(page.complaints, [])

    def test_crystals_have_the_numbers_and_places_of_the_scanner(self):
        for scanner in ("small", "phoswich"):
            page = self.open(scanner)
            page.click("#crystals")
            page.wait("drawn.some(d => d.box.crystal !== undefined)")
            numbers = page.evaluate("[...new Set(drawn.map(d => d.box.crystal))].sort((a, b) => a - b)")
            self.assertEqual(numbers, list(range(page.evaluate("scene.crystals"))))
        # Crystal 0 of the phoswich: column 0, row 0 of the 7 x 7 front layer of the module at +x.
        text = page.evaluate("describe(drawn.find(d => d.box.crystal === 0).box)")
        self.assertIn("crystal 0: module 0 (phoswich), layer 0 of LYSO, BDM 0, DU 0, board 0, column 0, row 0, front at 32.00, -4.80, ", text)

    def test_it_shows_the_bdm_and_du_that_messages_name(self):
        page = self.open("scanners/hexagon.scanner.json")
        text = page.evaluate("describe(boxes.find(box => box.module === 8))")
        self.assertEqual(text, "module 8 (block), layer 0 of LYSO, BDM 1, DU 2, board 1: 8 × 8 crystals")

    def test_numbers_lie_on_the_modules_that_they_name(self):
        # Of the phoswich, module 12 is seen only as a narrow strip below module 27.
        for scanner, modules, hidden in (("phoswich", 28, {12}), ("box", 16, set()), ("insert", 72, None)):
            with self.subTest(scanner):
                labels = self.open(scanner).evaluate("""numbers.map(({x, y, box}) => {
                    let top = null;
                    for (const {points, box} of drawn) {
                        const path = new Path2D(`M${points.map(p => p.join(",")).join("L")}Z`);
                        if (context.isPointInPath(path, x, y)) top = box;
                    }
                    return [box.module, top?.module];
                })""")
                for named, seen in labels:
                    self.assertEqual(named, seen)
                self.assertEqual(len({named for named, seen in labels}), len(labels))
                self.assertGreater(len(labels), modules / 2)
                if hidden is not None:
                    self.assertEqual(set(range(modules)) - {named for named, seen in labels}, hidden)

    def test_a_click_shows_the_crystals_of_a_box(self):
        page = self.open("total-body")
        self.assertTrue(page.evaluate("choose.crystals.disabled"))
        page.evaluate("""(() => {
            const {points} = drawn[drawn.length - 1], place = canvas.getBoundingClientRect();
            const [x, y] = [0, 1].map(i => points.reduce((sum, p) => sum + p[i] / 4, 0));
            const at = {clientX: place.left + x * place.width / canvas.width, clientY: place.top + y * place.height / canvas.height,
                        pointerId: 1, bubbles: true};
            canvas.setPointerCapture = () => {};
            canvas.dispatchEvent(new PointerEvent("pointerdown", at));
            canvas.dispatchEvent(new PointerEvent("pointerup", at));
        })()""")
        page.wait("drawn.filter(d => d.box.crystal !== undefined).length > 0")
        self.assertEqual(page.evaluate("new Set(drawn.map(d => d.box.crystal)).size"), 7 * 12 + 1)
        self.assertIn("7 × 12 crystals", page.evaluate("about.textContent"))

    def test_it_turns_and_zooms(self):
        page = self.open("box")
        before = page.evaluate("canvas.toDataURL()")
        page.evaluate("""(() => {
            canvas.setPointerCapture = () => {};
            for (const [kind, x] of [["pointerdown", 300], ["pointermove", 360], ["pointerup", 360]])
                canvas.dispatchEvent(new PointerEvent(kind, {clientX: x, clientY: 300, pointerId: 1}));
            canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -400, cancelable: true}));
        })()""")
        page.wait(f"canvas.toDataURL() !== {json.dumps(before)}")
        self.assertGreater(page.evaluate("view.zoom"), 1.3)

    def test_colours_by_board(self):
        page = self.open("box", "--colour", "board")
        self.assertEqual(page.evaluate("choose.colour.value"), "board")
        self.assertIn("board 15", page.evaluate("legend.textContent"))
        page.evaluate("choose.colour.value = 'type', choose.colour.dispatchEvent(new Event('change'))")
        self.assertEqual(page.evaluate("legend.textContent"), "panel")

    def test_modules_without_a_good_pair_are_counted(self):
        with open(os.path.join(EXAMPLES, "scanners", "two-heads.scanner.json"), encoding="utf-8") as file:
            description = json.load(file)
        del description["sources"]
        panel = {"radius_mm": 40, "angle_deg": 90, "count": 1, "pitch_mm": 32.4}
        for third, expected in ((False, "4 of 6 pairs of modules<"), (True, "4 of 10 pairs of modules; 1 module is in none<")):
            if third:
                description["modules"].append({"type": "head", "group": "third", "panel": panel})
            path = os.path.join(self.directory.name, "heads.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(description, file)
            result = draw(path, path + ".html", "--force")
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(path + ".html", encoding="utf-8") as file:
                self.assertIn(expected, file.read())

    def test_a_picture(self):
        path = os.path.join(self.directory.name, "phoswich.png")
        result = draw("phoswich", path)
        if "without cairo" in result.stderr:
            self.skipTest("built without cairo")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = rows_of_png(path)
        self.assertGreater(len({pixel for row in rows[::8] for pixel in row}), 100)
        width, height = len(rows[0]), len(rows)
        corner = collections.Counter(pixel for row in rows[-height // 4:] for pixel in row[:width // 5])
        for axis in ((191, 25, 25), (25, 128, 25), (25, 51, 191)):
            self.assertGreater(corner[bytes(axis)], 50, "arrows of x, y and z")
        self.assertEqual(modules_under_labels(rows), [module for module in range(28) if module != 12])
        # The bar has a round length in mm. Pixels for each mm are those of the page, whose circle of `reach` is as large.
        dark = bytes((30, 40, 51))
        bar = max(row[-width // 3:].count(dark) for row in rows[-height // 10:])
        page = self.open("phoswich")
        mm = bar / (0.45 * 460 * width / 560) * page.evaluate("scene.reach")
        rounded = float(f"{mm:.1g}")
        self.assertIn(str(rounded).strip("0.")[0], "125")
        self.assertLess(abs(mm - rounded), 0.02 * rounded)

    def test_mistakes(self):
        for output, options, expected in (("a.svg", (), "expected a name that ends in .html or .png, found '.svg'"),
                                          ("a.html", ("--colour", "red"), "red")):
            result = draw("box", os.path.join(self.directory.name, output), *options)
            self.assertEqual(result.returncode, 64, result.stderr)
            self.assertIn(expected, result.stderr)
            self.assertFalse(os.path.exists(os.path.join(self.directory.name, output)))


CHROMIUM = browser.find()
if __name__ == "__main__":
    if CHROMIUM is None:
        print("Chromium is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
