"""The map of the live page and a detector unit in a headless Chromium, for scanners of any arrangement. Exit status 77: Chromium
is not installed."""

import json
import os
import unittest

from page_stand import InBrowser, SOURCE, Stand, main

# Answers to be given instead of those of the daemon: by path, in `instead`.
INSTEAD = """window.instead = {}, fetch = (f => (path, ...more) => path in instead ? Promise.resolve(new Response(JSON.stringify(instead[path])))
    : f(path, ...more))(fetch), 0"""
# How many crystals have a pixel, and pixels that have a colour but no crystal or the other way round.
SHOWN = """(() => {
    const {columns, rows, crystal} = map.layout;
    const pixels = document.getElementById('map').getContext('2d').getImageData(0, 0, columns, rows).data;
    const wrong = crystal.reduce((n, c, i) => n + ((c >= 0) !== (pixels[4 * (i % columns + (rows - 1 - Math.floor(i / columns)) * columns) + 3] === 255)), 0);
    return [new Set(crystal.filter(c => c >= 0)).size, wrong];
})()"""


class PageMap(InBrowser, unittest.TestCase):
    held = True

    def test_every_crystal_is_on_the_map(self):
        for name in ("box", "insert", "phoswich", "unequal-blocks", "two-heads", "two-rings", "hexagon"):
            with self.subTest(scanner=name), Stand(scanner=name) as stand:
                stand.show()
                page = self.open(stand)
                scanner = page.evaluate("fetch('/scanner').then(r => r.json())")
                self.assertEqual(page.evaluate(SHOWN), [scanner["crystals"], 0])
                # The addresses of the page are those from which the description numbers the crystals.
                self.assertEqual(page.evaluate("""map.layout.scanner.modules.flatMap((m, module) => map.layout.scanner.types[m.type].layers.flatMap((l, layer) =>
                    l.y_mm.flatMap((_, column) => l.z_mm.map((_, row) => {
                        const found = map.layout.address(m.first + l.first + column * l.column_step + row * l.row_step);
                        return found.module === module && found.layer === layer && found.column === column && found.row === row;
                    })))).filter(right => !right).length"""), 0)
                self.assertEqual(page.complaints, [])

    def test_layers_are_above_each_other_or_alone(self):
        with Stand(scanner="phoswich") as stand:
            stand.show()
            page = self.open(stand)
            self.assertFalse(page.evaluate("document.getElementById('map-layer').parentElement.hidden"))
            self.assertEqual(page.evaluate("[...document.getElementById('map-layer').options].map(o => o.text)"), ["all layers", "layer 0", "layer 1"])
            both = page.evaluate("map.layout.rows")
            for layer, crystals in ((0, 28 * 49), (1, 28 * 64)):
                page.evaluate(f"(s => {{ s.value = '{layer}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('map-layer')), 0")
                self.assertEqual(page.evaluate(SHOWN), [crystals, 0])
                self.assertLess(page.evaluate("map.layout.rows"), 0.6 * both)
        with Stand(scanner="box") as stand:
            stand.show()
            page = self.open(stand)
            self.assertTrue(page.evaluate("document.getElementById('map-layer').parentElement.hidden"))

    def test_a_crystal_is_read_and_its_unit_chosen(self):
        with Stand(scanner="unequal-blocks") as stand:
            stand.show()
            page = self.open(stand)
            # Crystal 812 is of module 3, column 9, row 2, in the third unit of BDM 3.
            where = "(i => [i % map.layout.columns, Math.floor(i / map.layout.columns)])(map.layout.crystal.indexOf(812))"
            page.evaluate(f"map.point(...{where})")
            self.assertEqual(page.evaluate("document.getElementById('map-reading').textContent"),
                             "Module 3, layer 0, column 9, row 2 (crystal 812, BDM 3, DU 2): 812,000 singles")
            page.evaluate("document.getElementById('map').focus()")
            page.press("Enter", 13)
            self.assertEqual(page.evaluate("[map.chosen, document.getElementById('spectrum-of').value, unit.module, unit.du.value]"), [3, "3", 3, "2"])
            self.assertEqual(page.evaluate("map.chosen_boxes.length"), 1)
            page.press("ArrowRight", 39)
            self.assertRegex(page.evaluate("document.getElementById('map-reading').textContent"), r"^Module 3, layer 0, column 10, row 2 ")
            page.press("ArrowRight", 39, shift=True)
            self.assertRegex(page.evaluate("document.getElementById('map-reading').textContent"), r"^Module 4, ")
            page.evaluate("map.point(0, map.layout.rows - 1)")
            # A gap between modules is no crystal.
            gap = page.evaluate("map.layout.crystal.indexOf(-1)")
            page.evaluate(f"map.point({gap} % map.layout.columns, Math.floor({gap} / map.layout.columns))")
            self.assertEqual(page.evaluate("document.getElementById('map-reading').textContent"), "Between the crystals.")
            page.press("Enter", 13)
            self.assertEqual(page.evaluate("map.chosen"), 3)
            self.assertEqual(page.complaints, [])

    def test_only_units_that_exist_can_be_chosen(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            page.evaluate(INSTEAD)
            scanner = page.evaluate("fetch('/scanner').then(r => r.json())")
            scanner["units_per_module"] = 3
            scanner["unit_of_crystals"] = [0, 3, 2, 3, 7, 6]  # units 0 and 2 of BDM 0, unit 1 of BDM 2
            page.evaluate(f"show_scanner({json.dumps(scanner)})")
            numbers = "id => [...document.getElementById(id).options].map(o => o.value)"
            self.assertEqual(page.evaluate(f"({numbers})('unit-bdm')"), ["0", "2"])
            self.assertEqual(page.evaluate(f"({numbers})('unit-du')"), ["0", "2"])
            self.assertEqual(page.evaluate(f"({numbers})('spectrum-of')"), ["all", "0", "2"])
            page.evaluate("instead['/spectra/2/1'] = null, unit.show_module(2), 0")
            self.assertEqual(page.evaluate(f"[unit.module, ({numbers})('unit-du')]"), [2, ["1"]])

    def test_a_unit_shows_its_layers(self):
        crystals = list(range(113))
        spectra = {"bdm": 0, "du": 0, "modules": 28, "units": 1, "position_size": 64, "energy_bin_keV": 4, "flood": [1] * 4096,
                   "energy_per_crystal": [[1 if i < 49 else 2] * 256 for i in crystals], "crystals": crystals}
        with Stand(scanner="phoswich") as stand:
            stand.show()
            page = self.open(stand)
            page.evaluate(INSTEAD)
            page.evaluate(f"instead['/spectra/0/0'] = {json.dumps(spectra)}, document.querySelector('#unit details').open = true, unit.update()")
            self.assertRegex(page.evaluate("document.getElementById('unit-reading').textContent"),
                             r"Layer 0 \(solid line\): 49 crystals\. Layer 1 \(dashed line\): 64 crystals\.$")
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#unit-columns th')].map(t => t.textContent)"),
                             ["from keV", "frames", "layer 0", "layer 1"])
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#unit-table tr:first-child > *')].map(t => t.textContent)"),
                             ["0", "2,124", "588", "1,536"])
            self.assertEqual(page.complaints, [])

    def test_hundreds_of_thousands_of_crystals(self):
        if not os.path.exists(os.path.join(SOURCE, "config", "examples", "scanners", "total-body.scanner.json")):
            self.skipTest("no such example")
        with Stand(scanner="total-body") as stand:
            stand.show()
            page = self.open(stand)
            crystals = page.evaluate("map.layout.scanner.crystals")
            self.assertGreater(crystals, 400_000)
            self.assertEqual(page.evaluate(SHOWN), [crystals, 0])


if __name__ == "__main__":
    main()
