"""The live page in a headless Chromium: earlier hours and runs, messages, start and stop. Exit status 77: Chromium is not
installed."""

import json
import os
import tempfile
import time
import unittest

from page_stand import InBrowser, LIBRARY, Stand, main


class PageRecords(InBrowser, unittest.TestCase):
    def test_runs_reports_and_messages(self):
        with tempfile.TemporaryDirectory() as data, Stand(data=data) as stand:
            os.makedirs(os.path.join(data, "mouse-6", "plot"))
            with open(os.path.join(data, "mouse-6", "run.json"), "w", encoding="utf-8") as file:
                json.dump({"state": "running", "start_utc": "2026-01-30T12:00:00.000Z"}, file)
            with open(os.path.join(data, "mouse-6", "plot", "report.html"), "w", encoding="utf-8") as file:
                file.write("<!DOCTYPE html><style>h1 { color: rgb(1, 2, 3) }</style><h1>Report</h1><script>document.title = 'run'</script>")
            stand.show()
            page = self.open(stand)
            page.wait("document.querySelectorAll('#runs tbody tr').length === 1")
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#runs tbody tr *')].slice(0, 2).map(e => e.innerText)"), ["mouse-6", "interrupted"])
            self.assertIn("the stand <b>serves</b> the page", page.evaluate("document.getElementById('messages').innerText"))
            self.assertEqual(page.evaluate("document.querySelector('#messages li').dataset.level"), "info")
            self.assertEqual(page.complaints, [])
            page.evaluate("show_messages({events: Array.from({length: 200}, (_, i) => ({time: '2026-01-30T12:00:00.000Z', level: 'info', text: String(i)}))})")
            self.assertEqual(page.evaluate("[...document.querySelectorAll('#messages li')].length"), 200)
            page.open(page.evaluate("document.querySelector('#runs a').href"))
            page.wait("document.querySelector('h1').innerText === 'Report'")
            # A report has its style, and runs nothing.
            self.assertEqual(page.evaluate("getComputedStyle(document.querySelector('h1')).color"), "rgb(1, 2, 3)")
            self.assertEqual(page.evaluate("document.title"), "")

    def test_a_disk_that_hangs_leaves_the_page_alive(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            page.wait("document.getElementById('runs-earlier').innerText === 'No runs yet.'")
            # What the page does when no answer comes in time.
            page.evaluate("fetch = (f => (path, ...more) => path === '/runs' ? new Promise((_, refuse) => { window.give_up = refuse; }) : f(path, ...more))(fetch), next_records = 0")
            stand.show()
            self.ask(page)
            page.wait("window.give_up")
            page.evaluate("give_up(new Error())")
            page.wait("document.getElementById('runs-earlier').innerText.startsWith('The list is not up to date')")
            self.assertEqual(page.evaluate("document.documentElement.dataset.connection"), "live")
            self.assertEqual(page.evaluate("document.querySelector('[data-field=uptime_s]').getAttribute('value')"), "102")

    def test_the_day_survives_a_restart(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libjs-chart.js is not installed")
        now = int(time.time() // 30)
        columns = ["singles_per_s", "prompts_per_s", "delayeds_per_s", "net_trues_per_s", "datagrams_per_s", "frames_per_s", "lost_fraction", "bytes_per_s"]
        with tempfile.TemporaryDirectory() as data:
            with open(os.path.join(data, "history.json"), "w", encoding="utf-8") as file:
                json.dump({"petacqd_history": 1, "step_s": 30, "columns": columns,
                           "rows": [[now - 240 + i] + [100.0 + i] * 8 for i in range(200)],
                           "runs": [{"run": "night", "start": 30.0 * (now - 200), "stop": None, "interrupted": False}]}, file)
            with Stand(data=data) as stand:
                stand.show()
                page = self.open(stand)
                # The last ten minutes are not those of this daemon only.
                points = page.evaluate("charts.coincidences.data.datasets[0].data")
                self.assertEqual([p["y"] for p in points[-3:]], [299, None, 1234.5])
                page.evaluate("document.querySelector('#view [data-span=\"21600\"]').click()")
                points = page.evaluate("charts.coincidences.data.datasets[0].data")
                self.assertGreaterEqual(len(points), 200)
                self.assertAlmostEqual(points[0]["x"], -240 * 30, delta=120)
                self.assertEqual([p["y"] for p in points[:200]], [100 + i for i in range(200)])
                page.evaluate("document.querySelector('details').open = true")
                page.wait("document.querySelectorAll('#coincidences-table tr').length >= 10")
                self.assertLess(page.evaluate("document.querySelectorAll('#coincidences-table tr').length"), 20)  # of ten minutes each
                runs = page.evaluate("day.runs()")
                self.assertEqual([run["run"] for run in runs], ["night", "mouse-7"])
                self.assertAlmostEqual(runs[0]["to"], -40 * 30, delta=120)
                self.assertEqual(page.evaluate("[charts.loss.scales.x.min, charts.loss.scales.x.max]"), [-21600, 0])
                page.evaluate("document.querySelector('#view [data-act=\"in\"]').click()")
                self.assertEqual(page.evaluate("charts.singles.scales.x.min"), -10800)
                page.evaluate("document.querySelector('#view [data-act=\"earlier\"]').click()")
                # What is shown stays where it is while time goes on.
                until = page.evaluate("view.until")
                self.assertAlmostEqual(until, page.evaluate("day.now()") - 5400, delta=60)
                shown = page.evaluate("document.getElementById('view-text').textContent")
                self.assertRegex(shown, r"^\d\d:\d\d to \d\d:\d\d UTC$")
                page.evaluate("(now => { Date.now = () => now + 3e6; })(Date.now()), 0")
                self.ask(page)
                self.assertEqual(page.evaluate("view.until"), until)
                self.assertEqual(page.evaluate("document.getElementById('view-text').textContent"), shown)
                for edge, expected in (("min", -16200 - 3000), ("max", -5400 - 3000)):
                    self.assertAlmostEqual(page.evaluate(f"charts.singles.scales.x.{edge}"), expected, delta=60)
                page.evaluate("document.querySelector('#view [data-span=\"600\"]').click()")
                self.assertEqual(page.evaluate("view.span"), None)
                self.assertEqual(page.complaints, [])

    def test_seconds_and_the_zoom_survive_a_restart(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libjs-chart.js is not installed")
        now = int(time.time())
        columns = ["prompts_per_s", "singles_per_s"]
        with tempfile.TemporaryDirectory() as data:
            with open(os.path.join(data, "history.json"), "w", encoding="utf-8") as file:
                json.dump({"petacqd_history": 1, "step_s": 30, "columns": columns, "rows": [], "runs": [],
                           "seconds": {"columns": columns, "rows": [[now - 300 + i, 10.0 + i, None] for i in range(200)]}}, file)
            with Stand(data=data) as stand:
                stand.show()
                page = self.open(stand)
                points = page.evaluate("charts.coincidences.data.datasets[0].data")
                self.assertEqual([p["y"] for p in points], [10.0 + i for i in range(200)] + [None, 1234.5])
                self.assertAlmostEqual(points[0]["x"], -300, delta=60)
                self.assertAlmostEqual(points[199]["x"] - points[0]["x"], 199, places=3)
                page.evaluate("view.set(120, -100)")
                shown = page.evaluate("[view.span, view.until, document.getElementById('view-text').textContent]")
                page = self.open(stand)
                self.assertEqual(page.evaluate("[view.span, view.until, document.getElementById('view-text').textContent]"), shown)
                self.assertEqual(page.evaluate("charts.singles.scales.x.max - charts.singles.scales.x.min"), 120)
                self.assertEqual(page.complaints, [])

    def test_times_are_local_beside_utc(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libjs-chart.js is not installed")
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            page.call("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
            try:
                page = self.open(stand)
                page.evaluate("(now => { Date.now = () => now; })(Date.parse('2026-06-01T20:00:07Z')), day.ahead_s = 0, charts.showHistory(past)")
                self.assertEqual(page.evaluate("charts.singles.scales.x.ticks.at(-1).label"), ["01:30:07", "20:00:07 UTC"])
                self.assertEqual(page.evaluate("place_title(-60)"), ["01:29:07 GMT+5:30, 19:59:07 UTC", "1 min 0 s ago"])
                page.evaluate("view.set(3600, -3600)")
                self.assertEqual(page.evaluate("document.getElementById('view-text').textContent"),
                                 "23:30 to 00:30 GMT+5:30 (18:00 to 19:00 UTC)")
                self.assertEqual(page.evaluate("document.querySelector('[data-field=\"run.start_utc\"]').title"), "2026-01-31 17:30:00 GMT+5:30")
                self.assertEqual(page.complaints, [])
            finally:
                page.call("Emulation.setTimezoneOverride", timezoneId="")

    def test_marks_are_in_the_charts_and_in_a_list(self):
        if not os.path.exists(LIBRARY):
            self.skipTest("libjs-chart.js is not installed")
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            self.assertTrue(page.evaluate("document.getElementById('marks').hidden"))
            status = page.evaluate("fetch('/status').then(r => r.json())")
            utc = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 30))
            status["uptime_s"] += 1
            status["run"]["marks"] = {"count": 1, "latest": [{"utc": utc, "ticks": 5, "text": "<b>FDG</b> injected"}]}
            stand.show(status)
            self.ask(page)
            page.wait("!document.getElementById('marks').hidden")
            self.assertRegex(page.evaluate("document.getElementById('mark-list').innerText"), r"^\d\d:\d\d:\d\d UTC mouse-7 <b>FDG</b> injected$")
            at = page.evaluate("day.marks().map(m => [m.at, m.text])")
            self.assertEqual([text for _, text in at], ["<b>FDG</b> injected"])
            self.assertAlmostEqual(at[0][0], -30, delta=30)
            self.assertEqual(page.evaluate("marks_near(charts.singles, day.marks()[0].at)"), ["mark: <b>FDG</b> injected"])
            self.assertEqual(page.evaluate("marks_near(charts.singles, day.marks()[0].at - 60)"), [])
            # A line where it was made, on each chart of rates.
            dark = """(() => { const x = Math.round(charts.singles.scales.x.getPixelForValue(day.marks()[0].at) * devicePixelRatio), a = charts.singles.chartArea;
                charts.singles.draw();
                const row = charts.singles.ctx.getImageData(x - 2, (a.top + 40) * devicePixelRatio, 5, 60).data;
                return Math.max(...Array.from({length: row.length / 4}, (_, i) => row[4 * i + 3])); })()"""
            self.assertGreater(page.evaluate(dark), 100)
            self.assertEqual([c for c in page.complaints if "getImageData" not in c], [])

    def test_a_run_is_marked_as_soon_as_it_starts(self):
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            status["run"]["id"] = "mouse-8"
            stand.show(status)
            self.ask(page)
            page.wait("day.runs().map(r => r.run).join() === 'mouse-7,mouse-8'")

    def test_commands_to_save_a_run_fit_a_phone(self):
        command = "petlm recover /var/lib/petacqd/the-long-night-with-mouse-7 -o the-long-night-with-mouse-7.recovered"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["recording"] = {**status["recording"], "state": "interrupted", "word": "INTERRUPTED", "note": None, "run_id": "the-long-night-with-mouse-7",
                                   "text": f"run the-long-night-with-mouse-7 ended without being stopped: save it with `{command}`, then `petctl acknowledge the-long-night-with-mouse-7`"}
            status["health"]["reasons"][0]["message"] = f"run the-long-night-with-mouse-7 was interrupted: `{command}` saves what it holds"
            stand.show(status)
            for width, height in ((320, 568), (568, 320)):
                with self.subTest(width=width):
                    page = self.open(stand, width=width, height=height, mobile=True)
                    self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                    self.assertEqual(page.evaluate("[...document.querySelectorAll('#recording code, #reasons code')].map(c => c.innerText)"),
                                     [command, "petctl acknowledge the-long-night-with-mouse-7", command])
                    # The strip leaves room for the page.
                    self.assertLessEqual(page.evaluate("document.getElementById('recording').offsetHeight"), 0.6 * height)

    def test_runs_are_started_and_stopped_with_the_token(self):
        answer = "document.getElementById('control-answer').innerText"
        with Stand() as stand:
            stand.show()
            page = self.open(stand)
            self.assertFalse(page.evaluate("document.getElementById('control').hidden"))
            page.evaluate("document.getElementById('stop').click()")
            self.assertIn("token", page.evaluate(answer))
            self.assertFalse(page.evaluate("document.getElementById('stop-question').open"))
            page.evaluate("document.getElementById('control-token').value = 'a token for the test', document.getElementById('stop').click()")
            self.assertTrue(page.evaluate("document.getElementById('stop-question').open"))
            self.assertEqual(page.evaluate("[document.activeElement.id, document.getElementById('stop-run').innerText]"), ["stop-no", "mouse-7"])
            page.press("Escape", 27)
            self.assertFalse(page.evaluate("document.getElementById('stop-question').open"))
            page.evaluate("document.getElementById('mark-text').value = 'FDG injected', document.getElementById('mark').click()")
            page.wait(answer + " === 'Run mouse-7 is marked: FDG injected.'")
            page.evaluate("document.getElementById('stop').click(), document.getElementById('stop-no').click()")
            self.assertFalse(page.evaluate("document.getElementById('stop-question').open"))
            page.evaluate("document.getElementById('stop').click(), document.getElementById('stop-yes').click()")
            page.wait(answer + " === 'Run mouse-7 is stopped and on disk.'")
            # What the daemon says of the run comes before what the operator hopes for.
            for said, shown in (({"failure": "disk full", "ledger_closed": True}, "Run mouse-7 has failed: disk full."),
                                ({"failure": None, "ledger_closed": False}, "Run mouse-7 is stopped and on disk, but its ledger does not close.")):
                page.evaluate(f"""fetch = (f => (...words) => {{ fetch = f; return Promise.resolve(new Response({json.dumps(json.dumps(said))})); }})(fetch),
                    document.getElementById('stop').click(), document.getElementById('stop-yes').click()""")
                page.wait(f"{answer} === '{shown}'")
                self.assertTrue(page.evaluate("document.getElementById('control-answer').classList.contains('bad')"))
            status = page.evaluate("fetch('/status').then(r => r.json())")
            status["uptime_s"] += 1
            status["run"] = None
            stand.show(status)
            self.ask(page)
            self.assertEqual(page.evaluate("[document.getElementById('start').disabled, document.getElementById('stop').disabled]"), [False, True])
            # A run needs a name that is typed.
            self.assertFalse(page.evaluate("document.getElementById('start-form').checkValidity()"))
            # What is known of the source goes with it; an activity needs its nuclide and its time.
            page.evaluate("""window.sent = [], fetch = (f => (path, how, ...more) => { if (how?.body) sent.push([path, JSON.parse(how.body)]); return f(path, how, ...more); })(fetch);
                for (const [id, value] of [['run', 'm7'], ['subject', 'mouse 7'], ['activity', '12.5']]) {
                    document.getElementById('start-' + id).value = value; document.getElementById('start-' + id).dispatchEvent(new Event('input')); }""")
            self.assertFalse(page.evaluate("document.getElementById('start-form').checkValidity()"))
            page.evaluate("document.getElementById('start-nuclide').value = 'F-18'")
            self.assertTrue(page.evaluate("document.getElementById('start-form').checkValidity()"))
            page.evaluate("document.getElementById('start-assay').value = '2026-01-31T11:00:00', document.getElementById('start').click()")
            page.wait(answer + ".startsWith('Run m7 has started')")
            local = page.evaluate("new Date('2026-01-31T11:00:00').toISOString()")
            self.assertEqual(page.evaluate("sent"), [["/control/start", {"run": "m7", "nuclide": "F-18", "activity_MBq": 12.5, "assay_utc": local, "subject": "mouse 7"}]])
            for typed, expected in (("taken", "Refused: run taken is in progress."), ("m8", "Run m8 has started. The strip at the top says whether data arrive.")):
                page.evaluate(f"document.getElementById('start-run').value = '{typed}', document.getElementById('start').click()")
                page.wait(f"{answer} === '{expected}'")
            page.complaints = [c for c in page.complaints if "409" not in c]
            self.assertEqual(page.complaints, [])
            page.evaluate("document.getElementById('control-token').value = 'another token for it', document.getElementById('start-run').value = 'm9', document.getElementById('start').click()")
            page.wait(answer + ".startsWith('Refused: this is not the token')")


if __name__ == "__main__":
    main()
