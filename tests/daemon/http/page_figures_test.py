"""The figures of the live page in a headless Chromium: charts with their tables, the map, sinogram and image, a detector unit.
Exit status 77: Chromium is not installed."""

import json
import os
import unittest

from page_fields import FIELDS
from page_stand import InBrowser, LIBRARY, Stand, main

ROWS = "[...document.querySelectorAll('#%s tr')].map(r => [...r.children].map(c => c.innerText))"
# Answers to be given instead of those of the daemon: by path, in `instead`.
INSTEAD = """window.instead = {}, fetch = (f => (path, ...more) => path in instead ? Promise.resolve(new Response(JSON.stringify(instead[path])))
    : f(path, ...more))(fetch), 0"""


class PageFigures(InBrowser, unittest.TestCase):
    held = True

    def test_charts_show_the_history_and_the_singles(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libjs-chart.js is not installed")
        with Stand() as stand:
            for _ in range(5):
                stand.show()
            page = self.open(stand)
            self.assertEqual(page.evaluate("charts.coincidences.data.datasets.map(d => d.label)"), ["Prompts", "Net trues", "Delayeds"])
            self.assertEqual(page.evaluate("charts.coincidences.legend.legendItems.map(i => i.text)"), ["Prompts", "Net trues", "Delayeds"])
            self.assertEqual(page.evaluate("charts.coincidences.data.datasets[0].data.map(p => [p.x, p.y])"),
                             [[i - 5, 1234.5 * i] for i in range(1, 6)])
            self.assertEqual(page.evaluate("charts.spectrum.scales.x.ticks.map(t => t.label)"), ["0", "400", "800", "1,200"])
            self.assertEqual(page.evaluate("charts.singles.scales.y.ticks.map(t => t.label).includes('200 k')"), True)
            self.assertEqual(page.evaluate("charts.loss.data.datasets[0].data[0].y"), 0.125)
            self.assertEqual(page.evaluate("charts.spectrum.data.datasets[0].data[127]"), {"x": 510, "y": 10000})
            self.assertEqual(page.evaluate("[...document.querySelectorAll('.plot canvas')].every(c => c.offsetHeight > 100)"), True)
            stand.show()
            self.ask(page)
            self.assertEqual(page.evaluate("charts.coincidences.data.datasets[0].data.length"), 6)
            # One pixel per crystal, the last ring on top.
            self.assertEqual(page.evaluate("[document.getElementById('map').width, document.getElementById('map').height]"), [6, 2])
            pixels = page.evaluate("[...document.getElementById('map').getContext('2d').getImageData(0, 0, 6, 2).data]")
            at = lambda crystal, ring: pixels[4 * (crystal + 6 * (1 - ring)):][:3]
            self.assertEqual(at(5, 0), page.evaluate("rgb(colour('ramp-0'))"))
            self.assertEqual(at(5, 1), page.evaluate("rgb(colour('ramp-2'))"))
            self.assertNotIn(at(0, 0), (at(5, 0), at(5, 1)))
            page.evaluate("document.getElementById('spectrum-of').value = '1'; document.getElementById('spectrum-of').dispatchEvent(new Event('change'))")
            self.assertEqual(page.evaluate("charts.spectrum.data.datasets[0].data[127].y"), 0)
            self.assertEqual(page.evaluate("charts.spectrum.data.datasets[0].data[128].y"), 20000)
            self.assertEqual(page.complaints, [])

    def test_gammas_have_their_window_rate_times_and_energies(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libjs-chart.js is not installed")
        gammas = {"run": "m", "running": True, "dropped": 0,
                  "times": {"from_ns": -2.5, "bin_ns": 0.5, "triples": [1, 2, 30], "delayed_triples": [0, 2, 1]},
                  "energies": {"from_keV": 700, "bin_keV": 5, "triples": [7, 8], "delayed_triples": [3, 4]}}
        # What of the spectrum lies behind its line at the middle of a window, and beside all windows.
        ground = """(at => { const x = charts.spectrum.scales.x.getPixelForValue(at) * devicePixelRatio, y = (charts.spectrum.chartArea.top + 40) * devicePixelRatio;
            return charts.spectrum.ctx.getImageData(Math.round(x), Math.round(y), 1, 1).data[3]; })(%d)"""
        shown = "[...document.querySelectorAll('.of-triples')].map(e => e.checkVisibility())"
        with Stand() as stand:
            stand.show()
            stand.show()
            page = self.open(stand)
            self.assertEqual(page.evaluate(shown), [True] * 6)
            self.assertEqual(page.evaluate("charts.triples.data.datasets.map(d => d.data.map(p => p.y))"), [[45.5, 91], [4.25, 8.5]])
            self.assertEqual(page.evaluate("charts.spectrum.windows.map(w => [w.name, w.from, w.to])"), [["pairs", 425, 650], ["gammas", 700, 1200]])
            self.assertGreater(page.evaluate(ground % 550), 0)
            self.assertGreater(page.evaluate(ground % 850), 0)
            self.assertEqual(page.evaluate(ground % 350), 0)
            page.evaluate(INSTEAD)
            page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
            page.evaluate(f"instead['/gammas'] = {json.dumps(gammas)}, window.look = new QuickLook(), look.update()")
            self.assertEqual(page.evaluate("charts.gamma_times.data.datasets.map(d => d.data.map(p => [p.x, p.y]))"),
                             [[[-2.25, 1], [-1.75, 2], [-1.25, 30]], [[-2.25, 0], [-1.75, 2], [-1.25, 1]]])
            self.assertEqual(page.evaluate(ROWS % "gamma-times-table"), [["-2.5", "1", "0"], ["-2", "2", "2"], ["-1.5", "30", "1"]])
            # By powers of ten; without any there is still a place.
            heights = page.evaluate("[1, 10, 100, 0].map(n => charts.gamma_times.scales.y.getPixelForValue(n))")
            self.assertAlmostEqual(heights[0] - heights[1], heights[1] - heights[2], places=3)
            self.assertGreater(heights[3], heights[0])
            self.assertEqual(page.evaluate("charts.gamma_energies.data.datasets.map(d => d.data.map(p => [p.x, p.y]))"),
                             [[[702.5, 7], [707.5, 8]], [[702.5, 3], [707.5, 4]]])
            self.assertEqual(page.evaluate(ROWS % "gamma-energies-table"), [["700", "7", "3"], ["705", "8", "4"]])
            # The axis of the spectrum reaches to the end of the window, and to that of the bins.
            self.assertEqual(page.evaluate("charts.spectrum.scales.x.max"), 1200)
            self.assertEqual(page.evaluate("charts.spectrum.data.datasets[0].data.at(-1).x"), 1018)
            page.evaluate("charts.showSpectrum(Array(256).fill(1), 8, energy_windows)")
            self.assertEqual(page.evaluate("charts.spectrum.scales.x.max"), 2000)
            self.assertEqual(page.evaluate("charts.spectrum.data.datasets[0].data.at(-1).x"), 2036)
            # Another daemon has no gammas.
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            status["common"].update(gammas_lower_keV=None, gammas_upper_keV=None)
            status["rates"].update(triples_per_s=None)
            stand.show(status)
            self.ask(page)
            page.evaluate("instead['/gammas'] = null, look.update()")
            self.assertEqual(page.evaluate(shown), [False] * 6)
            self.assertEqual(page.evaluate("charts.gamma_times.data.datasets.map(d => d.data.length)"), [0, 0])
            self.assertEqual(page.evaluate("charts.gamma_energies.data.datasets.map(d => d.data.length)"), [0, 0])
            self.assertEqual(page.evaluate("charts.spectrum.windows.map(w => w.name)"), ["pairs"])
            self.assertEqual(page.evaluate("charts.spectrum.scales.x.max"), 1000)
            # Chromium complains of the pixels that the test reads.
            self.assertEqual([c for c in page.complaints if "getImageData" not in c], [])

    def test_all_figures_are_shown_without_the_chart_library(self):
        with Stand(library=None) as stand:
            stand.show()
            page = self.open(stand)
            self.assertIn("libjs-chart.js", page.evaluate("document.getElementById('no-charts').innerText"))
            self.assertEqual(page.evaluate(FIELDS)["rates.prompts_per_s"]["value"], "1234.5")
            self.assertEqual(page.evaluate("document.querySelector('.plot').offsetHeight"), 0)
            page.complaints = [c for c in page.complaints if "/chart.js" not in c]
            self.assertEqual(page.complaints, [])

    def test_a_module_is_chosen_on_the_map_and_in_the_table(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            chosen = "[document.getElementById('spectrum-of').value, String(map.chosen)]"
            page.evaluate("document.querySelector('#modules tbody tr:nth-child(2) button').click()")
            self.assertEqual(page.evaluate(chosen), ["1", "1"])
            page.evaluate("document.getElementById('map').focus()")
            page.press("ArrowRight", 39)
            page.press("Enter", 13)
            self.assertEqual(page.evaluate(chosen), ["0", "0"])
            page.evaluate("""(c => { const b = c.getBoundingClientRect();
                c.dispatchEvent(new MouseEvent('click', {clientX: b.right - 2, clientY: b.top + 2})); })(document.getElementById('map')), 0""")
            self.assertEqual(page.evaluate(chosen), ["1", "1"])
            page.evaluate("(s => { s.value = 'all'; s.dispatchEvent(new Event('change')); })(document.getElementById('spectrum-of')), 0")
            self.assertEqual(page.evaluate(chosen), ["all", "null"])
            # The grid covers the map and its numbers, in the pixels of the screen.
            self.assertEqual(page.evaluate("document.getElementById('map-grid').width"), page.evaluate("Math.round(document.querySelector('.map').getBoundingClientRect().width)"))

    def test_charts_have_their_figures_in_tables(self):
        for library in (LIBRARY, None):
            with self.subTest(library=library), Stand(library=library) as stand:
                for _ in range(5):
                    stand.show()
                page = self.open(stand)
                self.assertEqual(page.evaluate(ROWS % "singles-table"), [])
                page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
                page.wait("document.querySelectorAll('#coincidences-table tr').length >= 3")
                # Means of two seconds each, the latest first.
                self.assertEqual(page.evaluate(ROWS % "coincidences-table")[:3],
                                 [["now", "5,555", "4,501", "1,054"], ["−2 s", "3,086", "2,501", "586"], ["−4 s", "1,235", "1,000", "234"]])
                self.assertEqual(page.evaluate(ROWS % "singles-table")[1:3], [["−2 s", "114,196"], ["−4 s", "45,679"]])
                # Of the loss the largest.
                status = page.evaluate("fetch('/status').then(r => r.json())")
                for loss in (0.02, 0.01):
                    status["uptime_s"] += 1
                    status["rates"]["lost_fraction"] = loss
                    stand.show(status)
                    self.ask(page)
                self.assertEqual(page.evaluate(ROWS % "loss-table")[:2], [["now", "2"], ["−2 s", "0.125"]])
                self.assertEqual(page.evaluate(ROWS % "spectrum-table")[21], ["1008", "0"])

    def test_the_crystal_that_is_pointed_at_stands_out(self):
        # Contrast of the tones of its frame with each colour of the map.
        contrast = """ramp_table().map(ground => Math.max(...['card', 'ink'].map(tone => {
            const luminance = c => c.map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
                .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
            const [a, b] = [luminance(ground), luminance(rgb(colour(tone)))].sort((x, y) => y - x);
            return (a + .05) / (b + .05);
        })))"""
        # Colours of the pixels of a line across the middle of the crystal.
        across = """(() => {
            const [box, frame] = ['map', 'map-grid'].map(id => document.getElementById(id).getBoundingClientRect());
            const height = box.height / map.layout.rows, y = Math.round(box.top - frame.top + (map.layout.rows - 1 - map.place[1] + .5) * height);
            const row = document.getElementById('map-grid').getContext('2d').getImageData(0, y, frame.width, 1).data;
            return [...new Set(Array.from({length: row.length / 4}, (_, i) => [...row.slice(4 * i, 4 * i + 4)].join()))];
        })()"""
        with Stand() as stand:
            stand.show()
            for dark in (False, True):
                with self.subTest(dark=dark):
                    page = self.open(stand, dark=dark)
                    page.evaluate("map.point(1, 1)")
                    colours = page.evaluate(across)
                    for tone in ("card", "ink"):
                        self.assertIn(page.evaluate(f"[...rgb(colour('{tone}')), 255].join()"), colours)
                    self.assertGreaterEqual(min(page.evaluate(contrast)), 3)
                    page.evaluate("map.point(null)")
                    self.assertNotIn(page.evaluate("[...rgb(colour('ink')), 255].join()"), page.evaluate(across.replace("map.place[1]", "1")))

    def test_sinogram_and_image_of_another_daemon_vanish(self):
        common = {"run": "m", "running": True, "prompts": 7, "delayeds": 0, "dropped": 0}
        pictures = {"/sinogram": {**common, "angles": 2, "radial": 2, "radius_mm": 50, "counts": [1, 2, 3, 4]},
                    "/image": {**common, "size": 2, "step_mm": 1, "values": [1, 2, 3, 4]}}
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            page.evaluate(INSTEAD)
            page.evaluate(f"Object.assign(instead, {json.dumps(pictures)}), window.look = new QuickLook(), look.update()")
            self.assertFalse(page.evaluate("document.getElementById('quick-look').hidden"))
            self.assertEqual(page.evaluate("document.getElementById('quick-look-reading').innerText"), "Of run m: 7 prompts.")
            page.evaluate("instead['/sinogram'] = instead['/image'] = null, look.update()")
            self.assertTrue(page.evaluate("document.getElementById('quick-look').hidden"))
            self.assertEqual(page.evaluate("[look.sinogram, look.image]"), [None, None])
            self.assertEqual(page.complaints, [])

    def test_a_detector_unit_or_what_it_needs(self):
        unit = {"bdm": 0, "du": 0, "modules": 2, "units": 1, "position_size": 8, "energy_bin_keV": 4, "flood": [3] * 64,
                "energy_per_crystal": [[0] * 127 + [5] + [0] * 128, [0] * 127 + [6] + [1] * 128], "crystals": [0, 1]}
        shown = "['unit', 'no-unit'].filter(id => !document.getElementById(id).hidden)"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)

            def next_second():  # figures that stand still for long are no longer shown
                stand.show()
                self.ask(page)

            for _ in range(3):
                next_second()
            self.assertEqual(page.evaluate(shown), ["no-unit"])
            self.assertIn("need spectra.enabled", page.evaluate("document.getElementById('no-unit').innerText"))
            page.evaluate(INSTEAD)
            page.evaluate(f"instead['/spectra/0/0'] = {json.dumps(unit)}, 0")
            next_second()
            self.assertEqual(page.evaluate(shown), ["unit"])
            self.assertEqual(page.evaluate("document.getElementById('unit-reading').innerText"), "BDM 0, DU 0: 192 frames of the run in progress.")
            page.evaluate("document.querySelector('#unit details').open = true")
            page.wait("document.querySelectorAll('#unit-table tr').length > 0")
            self.assertEqual(page.evaluate(ROWS % "unit-table")[9:12], [["432", "0"], ["480", "15"], ["528", "12"]])
            page.evaluate("instead['/spectra/0/0'] = null, unit.show_module(0)")
            # One answer is no reason yet.
            self.assertEqual(page.evaluate(f"unit.unknown = 0, unit.update().then(() => {shown})"), ["unit"])
            for _ in range(3):
                next_second()
            self.assertEqual(page.evaluate(shown), ["no-unit"])
            self.assertEqual(page.complaints, [])


if __name__ == "__main__":
    main()
