"""The live page in a headless Chromium: it shows what the status document says, on any screen, in both colour schemes
and for the keyboard. Exit status 77: Chromium is not installed."""

import unittest

from page_fields import FIELDS, compare
from page_stand import InBrowser, Stand, main


# The controls that the Tab key must reach; radio buttons of a group count once.
CONTROLS = """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')].filter(
    e => !e.disabled && e.checkVisibility() && !(e.type === 'radio' && !e.checked))"""
NAME = "e => e.id || e.name || e.ariaLabel || e.getAttribute('aria-labelledby') || e.innerText"

# Texts with their contrast, if it is less than WCAG AA asks for: 4.5, or 3 for large ones.
FAINT = """(() => {
    const luminance = c => c.slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
        .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
    const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const numbers = text => {
        pen.clearRect(0, 0, 1, 1), pen.fillStyle = text, pen.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, under, share = 1) => under.slice(0, 3).map((v, i) => v + (top[i] - v) * top[3] * share).concat(1);
    const faint = [];
    for (const e of document.querySelectorAll('body *')) {
        if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility({checkOpacity: true})) continue;
        if (e.closest('.visually-hidden, .skip, :disabled, script, noscript')) continue;
        let ground = numbers(getComputedStyle(document.documentElement).backgroundColor), share = 1;
        const path = [];
        for (let p = e; p; p = p.parentElement) path.unshift(p);
        for (const p of path) {
            const style = getComputedStyle(p);
            share *= Number(style.opacity);
            ground = over(numbers(style.backgroundColor), ground, share);
        }
        const style = getComputedStyle(e);
        const [a, b] = [luminance(over(numbers(style.color), ground, share)), luminance(ground)].sort((x, y) => y - x);
        const size = parseFloat(style.fontSize);
        const least = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
        const ratio = (a + .05) / (b + .05);
        if (ratio < least) faint.push(e.textContent.trim().slice(0, 40) + ': ' + ratio.toFixed(2));
    }
    return faint;
})()"""


class Page(InBrowser, unittest.TestCase):
    def test_numbers_are_those_of_the_status(self):
        with Stand() as stand:
            stand.show()
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            fields = page.evaluate(FIELDS)
            compared = compare(self, fields, status)
            self.assertGreater(compared, 120)
            for name in ("rates.prompts_per_s", "rates.singles_per_s", "average.prompts_per_s", "sources.3.lost",
                         "modules.0.mean_keV", "disk.free_bytes", "latency.p99_ms", "run.note", "stages.1.utilisation",
                         "run.capture.datagrams_dropped", "queues.capture_high_water", "sources.0.lost_fraction"):
                self.assertIn(name, fields)
            self.assertEqual(fields["sources.3.frames_per_s"]["text"], "22.5")
            self.assertEqual(fields["disk.free_bytes"]["text"], "512 GB")
            self.assertEqual(fields["rates.lost_fraction"]["text"], "0.125%")
            self.assertEqual(fields["run.operator.activity_at_start_MBq"]["text"], "36.5 MBq")
            self.assertEqual(fields["run.operator.bed_mm"]["text"], "–")
            self.assertEqual(fields["run.operator.keys"]["text"], "fasted: yes, tracer: FDG")
            self.assertEqual(fields["page.silent_crystals"]["text"], "1")
            self.assertEqual(fields["page.crystals"]["text"], "12")
            self.assertEqual(page.evaluate("document.getElementById('reasons').textContent"),
                             status["health"]["reasons"][0]["message"])
            self.assertEqual(page.evaluate("document.title"), '● RECORDING mouse-7 – DEGRADED – petacqd tiny "ring"')
            self.assertEqual(page.complaints, [])

    def test_the_page_reports_a_lost_daemon(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            stand.process.kill()
            stand.process.wait()
            self.ask(page)
            self.assertEqual(page.evaluate("document.documentElement.dataset.connection"), "lost")
            self.assertRegex(page.evaluate("document.getElementById('connection').innerText"), r"^No data since \d\d:\d\d:\d\d UTC: the daemon does not answer\.$")
            self.assertEqual(page.evaluate("document.title"), "? UNKNOWN – petacqd")
            self.assertEqual(page.evaluate("document.getElementById('recording').dataset.state"), "unknown")
            self.assertEqual(page.evaluate("document.querySelector('.badge').innerText.trim()"), "unknown")
            self.assertEqual(page.evaluate("document.getElementById('reasons').children.length"), 0)
            self.assertIn("not known", page.evaluate("document.getElementById('recording').innerText"))
            self.assertTrue(page.evaluate("document.body.classList.contains('stale')"))

    def test_the_page_reports_figures_that_stand_still(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            # The daemon answers, but its status stays the same.
            page.evaluate("(() => { const now = performance.now.bind(performance); performance.now = () => now() + 11000; })(), 0")
            self.ask(page)
            self.assertEqual(page.evaluate("document.documentElement.dataset.connection"), "lost")
            self.assertRegex(page.evaluate("document.getElementById('connection').innerText"),
                             r"^No data since \d\d:\d\d:\d\d UTC: the daemon answers, but its figures stand still\.$")
            self.assertTrue(page.evaluate("document.getElementById('announcement').textContent").startswith("No data"))
            stand.show()
            self.ask(page)
            self.assertEqual(page.evaluate("document.documentElement.dataset.connection"), "live")
            self.assertTrue(page.evaluate("document.getElementById('connection').hidden"))
            self.assertEqual(page.evaluate("document.getElementById('health').dataset.state"), "degraded")
            stand.show()

    def test_a_screen_reader_announces_only_changes(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            page.evaluate("""window.said = []; new MutationObserver(() => said.push(document.getElementById('announcement').textContent))
                .observe(document.getElementById('announcement'), {childList: true, characterData: true, subtree: true}), 0""")
            for seconds in (3.1, 4.1):
                status["uptime_s"] += 1
                status["health"]["reasons"][0]["message"] = f"source 3 is silent for {seconds} s"
                stand.show(status)
                self.ask(page)
                self.assertTrue(page.evaluate(f"document.getElementById('reasons').textContent === 'source 3 is silent for {seconds} s'"))
            self.assertEqual(page.evaluate("said"), [])
            status["uptime_s"] += 1
            status["health"] = {"state": "ok", "reasons": []}
            stand.show(status)
            self.ask(page)
            status["uptime_s"] += 1
            status["recording"] = {**status["recording"], "state": "no_data", "word": "NO DATA"}
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate("said"), ["RECORDING mouse-7. Health: ok", "NO DATA mouse-7. Health: ok"])

    def test_figures_that_change_each_second_are_not_announced(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            page.evaluate("document.querySelector('input[value=since_start]').click(), map.point(1, 1)")
            page.evaluate("""window.spoken = []; for (const e of document.querySelectorAll('[aria-live]:not([aria-live=off]), output, [role=status], [role=alert]'))
                new MutationObserver(() => spoken.push(e.id)).observe(e, {childList: true, characterData: true, subtree: true}); 0""")
            before = page.evaluate("document.getElementById('map-reading').textContent")
            for _ in range(2):
                stand.show()
                self.ask(page)
            self.assertNotEqual(page.evaluate("document.getElementById('map-reading').textContent"), before)
            self.assertEqual(page.evaluate("spoken"), [])
            # But what the keyboard points at is.
            page.evaluate("document.getElementById('map').focus()")
            page.press("ArrowRight", 39)
            self.assertEqual(page.evaluate("document.getElementById('map-spoken').textContent"), page.evaluate("document.getElementById('map-reading').textContent"))

    def test_the_strip_says_whether_data_are_recorded(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            colours = set()
            for state, word, symbol, run in (("recording", "RECORDING", "●", "m"), ("not_recording", "NOT RECORDING", "■", None),
                                             ("interrupted", "INTERRUPTED", "▲", "night"), ("no_data", "NO DATA", "✕", None)):
                with self.subTest(state=state):
                    status["uptime_s"] += 1
                    status["recording"] = {**status["recording"], "state": state, "word": word, "text": f"<i>{word}</i> here", "run_id": run,
                                           "note": None}
                    stand.show(status)
                    self.ask(page)
                    self.assertEqual(page.evaluate("document.querySelector('#recording .word').innerText").split(), [symbol, *word.split()])
                    self.assertIn(f"<i>{word}</i> here", page.evaluate("document.getElementById('recording').innerText"))
                    self.assertTrue(page.evaluate("document.title").startswith(" ".join(filter(None, (symbol, word, run))) + " – "))
                    colours.add(page.evaluate("getComputedStyle(document.getElementById('recording')).backgroundColor"))
            self.assertEqual(len(colours), 4)
            # It is the first thing of the page, and stays in view.
            self.assertTrue(page.evaluate("document.querySelector('main').firstElementChild.id === 'recording'"))
            page.evaluate("scrollTo(0, 100000)")
            self.assertTrue(page.evaluate("(box => box.top >= 0 && box.bottom <= innerHeight)(document.getElementById('recording').getBoundingClientRect())"))

    def test_the_other_host_of_a_pair_is_named_with_what_it_does(self):
        line = "(e => e.checkVisibility() ? e.innerText : '')(document.getElementById('recording-peer'))"
        reasons = "[...document.querySelectorAll('#reasons li')].map(i => i.innerText)"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            self.assertEqual(page.evaluate(line), "")  # this host has none

            def peer(words, state, run=None, recording=None, failure=None, missing=None):
                with self.subTest(words=words):
                    status["uptime_s"] += 1
                    status["peer"] = {"url": "http://10.0.0.2:9680", "state": state, "since_utc": "2026-01-31T12:00:00.000Z", "run": run,
                                      "recording": recording, "not_heard_s": 63.2, "failure": failure}
                    status["health"] = {"state": "degraded" if missing else "ok", "reasons": [
                        {"code": "peer_missing", "message": f"{missing}: `petctl --hosts a+10.0.0.2 join`", "severity": "degraded"}] if missing else []}
                    stand.show(status)
                    self.ask(page)
                    self.assertEqual(page.evaluate(line), f"Other host, http://10.0.0.2:9680: {words}")
                    self.assertEqual(page.evaluate(reasons), [f"{missing}: petctl --hosts a+10.0.0.2 join"] if missing else [])
                    # What is missing is seen beside a green strip, too.
                    self.assertEqual(page.evaluate("document.getElementById('recording').dataset.health"), "degraded" if missing else "ok")

            peer("records run mouse-7", "recording", "mouse-7", "recording")
            peer("not heard for 1 min 3 s: <i>Connection</i> refused", "unreachable", failure="<i>Connection</i> refused", missing="this host alone")
            peer("has no run", "not_recording", recording="not_recording", missing="this host alone")
            peer("has another run, rat-1", "other_run", "rat-1", "recording", missing="this host alone")
            peer("has run mouse-7, and records nothing (no data)", "not_recording", "mouse-7", "no_data", missing="this host alone")
            peer("records run mouse-7-2", "recording", "mouse-7-2", "recording")
            status["uptime_s"] += 1
            status["peer"] = None  # the configuration has changed
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate(line), "")
            peer("records run mouse-7", "recording", "mouse-7", "recording")
            # What the other host did says nothing about the present.
            stand.process.kill()
            self.ask(page)
            self.assertEqual(page.evaluate(line), "")
            self.assertEqual([c for c in page.complaints if "ERR_" not in c], [])

    def test_health_shows_what_follows_from_a_reason_above(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            status["health"]["reasons"] = [{"code": code, "message": message, "severity": "degraded", "follows_from": cause} for code, message, cause in (
                ("source_silent", "source 3 is silent", None), ("temperature_high", "BDM 5 is hot", None),
                ("detector_unit_silent", "a <unit>", "source_silent"), ("detector_gain_step", "BDM 5 has another gain", "temperature_high"),
                ("detector_few_prompts", "few prompts", "detector_unit_silent"))]
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#reasons li')].map(i => [i.textContent, i.className])"),
                             [["source 3 is silent", ""], ["a <unit>", "follows"], ["few prompts", "follows"],
                              ["BDM 5 is hot", ""], ["BDM 5 has another gain", "follows"]])

    def test_modules_out_of_step_with_what_to_apply(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            self.assertTrue(page.evaluate("document.getElementById('out-of-step').hidden"))
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            status["synchrony"] = {"singles": 9, "limit_ns": 1, "reach_ns": 1e6, "modules": [
                {"bdm": bdm, "source": source, "state": state, "offset_ns": ns, "error_ns": 0.1, "add_ticks": ticks, "pairs": 500}
                for bdm, source, state, ns, ticks in ((0, 1, "in_step", 0.1, -6), (7, 2, "out_of_step", 10.04, -643),
                                                      (8, None, "out_of_step", -25, 1600), (9, 2, "unknown", None, None))]}
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate("document.getElementById('out-of-step').innerText"),
                             "Out of step: BDM 7 (source 2) 10.0 ns late, BDM 8 25.0 ns early. To apply to the calibration: "
                             "petcal apply --bdm-ticks 7:-643 --bdm-ticks 8:1600")
            status["synchrony"] = None
            status["uptime_s"] += 1
            stand.show(status)
            self.ask(page)
            self.assertTrue(page.evaluate("document.getElementById('out-of-step').hidden"))

    def test_a_command_that_is_selected_stays_selected(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            for seconds in (1, 2, 3):
                status["uptime_s"] += 1
                status["health"]["reasons"] = [{"code": "run_interrupted", "message": "run night was interrupted: `petlm recover night` saves it"},
                                               {"code": "source_silent", "message": f"source 3 is silent for {seconds} s"}]
                stand.show(status)
                self.ask(page)
                if seconds == 1:
                    page.evaluate("window.command = document.querySelector('#reasons code'), getSelection().selectAllChildren(command)")
            self.assertEqual(page.evaluate("document.getElementById('reasons').innerText").split("\n"),
                             ["run night was interrupted: petlm recover night saves it", "source 3 is silent for 3 s"])
            self.assertTrue(page.evaluate("command === document.querySelector('#reasons code')"))
            self.assertEqual(page.evaluate("getSelection().toString()"), "petlm recover night")

    def test_tables_begin_with_trouble_and_can_be_filtered(self):
        first = "[...document.querySelectorAll('#%s tbody tr')].map(r => r.querySelector('th').innerText)"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            self.assertEqual(page.evaluate(first % "sources"), ["3", "0", "1", "2"])
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            status["sources"][0]["health"] = "degraded"  # it is active, and loses datagrams
            status["sources"][1]["health"], status["modules"][1]["health"] = "failed", "degraded"
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate(first % "sources"), ["1", "3", "0", "2"])
            self.assertEqual(page.evaluate(first % "modules"), ["1", "0"])
            self.assertEqual(compare(self, page.evaluate(FIELDS), status) > 120, True)
            for words, found in (("silent", ["3"]), ("2", ["2"]), ("source 0", ["0"]), ("OK active", ["2"]), ("nothing", []), ("127.0.0.1:5003", ["3"])):
                with self.subTest(words=words):
                    page.evaluate(f"(f => {{ f.value = '{words}'; f.dispatchEvent(new Event('input')); }})(document.getElementById('sources-filter')), 0")
                    self.assertEqual(page.evaluate(first % "sources"), found)
                    self.assertEqual(page.evaluate("document.getElementById('sources-found').innerText"), f"{len(found)} of 4 shown")

    def test_columns_have_one_unit_and_three_digits(self):
        cells = "[...document.querySelectorAll('#sources tbody tr')].map(r => r.cells[3].innerText)"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            self.assertEqual(page.evaluate("[3, 5, 8].map(i => document.querySelector('#sources thead tr').cells[i].innerText)"),
                             ["Frames, k/s", "Loss, %", "Skew, µs"])
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            for source, rate in zip(status["sources"], (1234567, 12345, 0, None)):
                source["frames_per_s"] = rate
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate("document.querySelector('#sources thead tr').cells[3].innerText"), "Frames, M/s")
            self.assertEqual(page.evaluate(cells), ["–", "1.23", "0.01", "0.00"])
            # Nor is a tile wider for a larger number.
            self.assertEqual(page.evaluate("[0, 1.23456, 999.6, 12345, 1234567].map(compact)"), ["0", "1.23", "1,000", "12.3 k", "1.23 M"])

    def test_tables_are_sorted_by_a_click_and_stay_so(self):
        first = "[...document.querySelectorAll('#sources tbody tr')].map(r => r.querySelector('th').innerText)"
        sort = "document.querySelectorAll('#sources thead button')[3].click()"
        order = "document.querySelectorAll('#sources thead th')[3].getAttribute('aria-sort')"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            for source, rate in zip(status["sources"], (20, None, 30, 9)):
                source["frames_per_s"] = rate
            status["uptime_s"] += 1
            stand.show(status)
            self.ask(page)
            page.evaluate(sort)
            self.assertEqual((page.evaluate(first), page.evaluate(order)), (["3", "0", "2", "1"], "ascending"))
            page.evaluate(sort)
            self.assertEqual((page.evaluate(first), page.evaluate(order)), (["2", "0", "3", "1"], "descending"))
            # The next figures, and a reload, leave it so.
            status["uptime_s"] += 1
            status["sources"][3]["frames_per_s"] = 100
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate(first), ["3", "2", "0", "1"])
            page = self.open(stand)
            self.assertEqual((page.evaluate(first), page.evaluate(order)), (["3", "2", "0", "1"], "descending"))
            page.evaluate(sort)
            self.assertEqual((page.evaluate(first), page.evaluate(order)), (["3", "0", "1", "2"], None))
            self.assertEqual(page.complaints, [])

    def test_health_and_the_strip_do_not_contradict_each_other(self):
        mark = "getComputedStyle(document.querySelector('#health .mark'), '::before').color"
        edge = "getComputedStyle(document.getElementById('recording')).borderRightWidth"
        colour = "(name => { const e = document.createElement('i'); e.style.color = `var(--${name})`; document.body.append(e); const c = getComputedStyle(e).color; e.remove(); return c; })('%s')"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            for state, health, shown, wide in (("recording", "ok", "good", False), ("no_data", "ok", None, False), ("failed", "ok", None, False),
                                               ("recording", "degraded", "warn", True), ("recording", "failed", "bad", True)):
                with self.subTest(state=state, health=health):
                    status["uptime_s"] += 1
                    status["recording"]["state"], status["health"]["state"] = state, health
                    stand.show(status)
                    self.ask(page)
                    if shown:
                        self.assertEqual(page.evaluate(mark), page.evaluate(colour % shown))
                    else:
                        self.assertNotEqual(page.evaluate(mark), page.evaluate(colour % "good"))
                    self.assertEqual(page.evaluate(f"parseFloat({edge}) > 10"), wide)

    def test_text_from_outside_stays_text(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            self.assertEqual(page.evaluate("document.querySelector('[data-field=\"run.note\"]').textContent"), "<b>a & b</b>")
            self.assertEqual(page.evaluate("document.querySelectorAll('main b').length"), 0)

    def test_fits_a_phone_and_a_wall(self):
        with Stand() as stand:
            stand.show()
            for width, height, mobile in ((320, 568, True), (390, 844, True), (1400, 900, False), (3840, 2160, False)):
                with self.subTest(width=width):
                    page = self.open(stand, width=width, height=height, mobile=mobile)
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertEqual(page.evaluate("[...document.querySelectorAll('.tile')].filter(t => t.scrollWidth > t.clientWidth).map(t => t.innerText)"), [])
                    self.assertEqual(page.complaints, [])

    def test_paper_has_all_figures_and_no_controls(self):
        within = """(e => e.scrollWidth <= e.clientWidth + 1 && e.scrollHeight <= e.clientHeight + 1
            && e.getBoundingClientRect().right <= document.body.getBoundingClientRect().right)"""
        sharp = "[...document.querySelectorAll('.plot canvas, #map-grid')].filter(c => c.checkVisibility()).map(c => Math.round(c.width / c.clientWidth))"
        with Stand() as stand:
            stand.show()
            for screen in ({"width": 1400, "dark": True}, {"width": 390, "mobile": True}):
                with self.subTest(**screen):
                    page = self.open(stand, **screen)
                    before = page.evaluate(sharp)
                    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
                    self.assertEqual(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"), "rgb(255, 255, 255)")
                    self.assertEqual(page.evaluate("[...document.querySelectorAll('nav, input, button:not(.sort, td button, th button)')].filter(e => e.checkVisibility()).length"), 0)
                    self.assertEqual(page.evaluate(f"[...document.querySelectorAll('.scroll')].filter(e => e.checkVisibility() && !{within}(e)).map(e => e.innerText)"), [])
                    # It fits A4, whose text area is 186 mm wide.
                    self.assertAlmostEqual(page.evaluate("document.body.getBoundingClientRect().width"), 186 / 25.4 * 96, delta=1)
                    self.assertEqual(set(page.evaluate(sharp)), {4})
                    self.assertEqual(page.evaluate(FAINT), [])
                    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
                    self.assertEqual(page.evaluate(sharp), before)
                    self.assertEqual([c for c in page.complaints if "getImageData" not in c], [])

    def test_contrast_is_enough_in_both_colours(self):
        luminance = """(hex => rgb(hex).map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
            .reduce((s, c, i) => s + c * [.2126, .7152, .0722][i], 0))(colour('%s'))"""
        with Stand() as stand:
            stand.show()
            grounds = []
            for dark in (False, True):
                page = self.open(stand, dark=dark)
                ground = page.evaluate(luminance % "card")
                grounds.append(ground)
                for name, least in (("ink", 7), ("ink-soft", 4.5), ("good", 4.5), ("warn", 4.5), ("bad", 4.5), ("focus", 4.5),
                                    ("prompts", 3), ("trues", 3), ("delayeds", 3), ("singles", 3), ("lost", 3)):
                    with self.subTest(dark=dark, colour=name):
                        other = page.evaluate(luminance % name)
                        ratio = (max(ground, other) + .05) / (min(ground, other) + .05)
                        self.assertGreaterEqual(ratio, least)
            self.assertGreater(grounds[0], 0.8)
            self.assertLess(grounds[1], 0.1)

    def test_every_text_can_be_read_in_every_state(self):
        for dark in (False, True):
            with Stand() as stand:
                stand.show()
                page = self.open(stand, dark=dark)
                status = page.evaluate("fetch('/status').then(r => r.json())")
                for state, health in (("recording", "ok"), ("not_recording", "degraded"), ("interrupted", "failed"), ("no_data", "degraded")):
                    with self.subTest(dark=dark, state=state):
                        status["uptime_s"] += 1
                        status["recording"] = {**status["recording"], "state": state, "word": state.upper().replace("_", " ")}
                        status["health"]["state"] = health
                        stand.show(status)
                        self.ask(page)
                        self.assertEqual(page.evaluate(FAINT), [])
                with self.subTest(dark=dark, state="lost"):
                    stand.process.kill()
                    self.ask(page)
                    page.wait("document.body.classList.contains('stale')")
                    self.assertEqual(page.evaluate(FAINT), [])

    def test_keyboard_and_screen_reader(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            page.press("Tab", 9)
            self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
            controls = set(page.evaluate(f"{CONTROLS}.map({NAME})"))
            self.assertLessEqual({"spectrum-of", "map", "map-time", "sources-filter", "control-token", "stop", "Energy spectrum as a table", "Runs"}, controls)
            seen = set()
            while not page.evaluate("document.activeElement === document.body") and len(seen) <= len(controls):
                name = page.evaluate(f"({NAME})(document.activeElement)")
                with self.subTest(control=name):
                    # It is marked, and the strip does not cover it.
                    self.assertGreaterEqual(page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)"), 2)
                    self.assertEqual(page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "solid")
                    self.assertTrue(page.evaluate("""(() => {
                        const box = document.activeElement.getBoundingClientRect(), strip = document.getElementById('recording').getBoundingClientRect();
                        return document.activeElement.className === 'skip' || (box.bottom > strip.bottom || box.bottom < strip.top) && box.top < innerHeight;
                    })()"""))
                seen.add(name)
                page.press("Tab", 9)
            # The way leads through all of them and out again.
            self.assertEqual(seen, controls)
            page.evaluate("scrollTo(0, 1e6), document.getElementById('stop').focus()")
            for _ in range(8):
                page.press("Tab", 9, shift=True)
                self.assertTrue(page.evaluate("document.activeElement.getBoundingClientRect().bottom > document.getElementById('recording').getBoundingClientRect().bottom"))
            page.evaluate("document.getElementById('map').focus()")
            page.press("ArrowRight", 39)
            page.press("ArrowUp", 38)
            self.assertRegex(page.evaluate("document.getElementById('map-reading').innerText"), r"^Ring 1, crystal 1, BDM 0: [\d,]+ singles$")
            page.press("ArrowRight", 39, shift=True)
            self.assertRegex(page.evaluate("document.getElementById('map-reading').innerText"), r"^Ring 1, crystal 4, BDM 1: [\d,]+ singles$")
            nodes = page.call("Accessibility.getFullAXTree")["nodes"]
            roles = {}
            for node in nodes:
                if not node.get("ignored"):
                    roles.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
            self.assertEqual(len(roles["main"]), 1)
            for image in roles.get("image", []) + roles.get("img", []):
                self.assertNotEqual(image, "")
            self.assertEqual([len(roles[role]) for role in ("banner", "navigation", "contentinfo")], [1, 1, 1])
            levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))")
            self.assertEqual(levels[0], 1)
            self.assertEqual(set(levels[1:]), {2})
            names = [name for role in ("textbox", "searchbox", "combobox", "button", "spinbutton", "radio", "application", "link",
                                       "DisclosureTriangle") for name in roles.get(role, [])]
            self.assertNotIn("", names)
            self.assertEqual(sorted(names), sorted(set(names)))
            self.assertLessEqual({"Spectrum of", "Filter sources", "Filter BDMs", "Singles as a table"}, set(names))
            self.assertEqual(page.evaluate("[...document.querySelectorAll('th')].every(t => ['row', 'col'].includes(t.scope))"), True)
            self.assertEqual(page.evaluate("[...document.querySelectorAll('canvas:not([aria-hidden])')].every(c => c.ariaLabel)"), True)
            self.assertLessEqual({"Frames, k/s", "Skew, µs", "Temperature, °C"}, set(roles["columnheader"]))
            self.assertNotIn("", roles["columnheader"])
            self.assertLessEqual({"earlier", "later", "Sort BDMs by Mean, keV, column 4"}, set(roles["button"]))
            headings = roles["heading"]
            for title in ("Rates", "Sources", "BDMs", "Run"):
                self.assertIn(title, headings)
            self.assertEqual(page.evaluate("[...document.querySelectorAll('table')].every(t => t.tHead && t.closest('[aria-label],[aria-labelledby]'))"), True)
            self.assertEqual(page.evaluate("document.documentElement.lang"), "en")


if __name__ == "__main__":
    main()
