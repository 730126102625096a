"""Monitoring of a real daemon that the simulator feeds: a real Prometheus with the example rules and the queries of the
example dashboard, and the live page in a headless Chromium.

    monitoring_test.py DIRECTORY_OF_PROGRAMS SOURCE Prometheus|LivePage      Exit status 77: it is not installed."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

BIN, SOURCE, SUBJECT = sys.argv[1:4]
for folder in ("tools", "tests/daemon/http", "tests/support"):
    sys.path.insert(0, os.path.join(SOURCE, folder))
import browser  # noqa: E402  (found by the lines above)
from eventually import PATIENCE_S, eventually  # noqa: E402
from page_fields import FIELDS, compare  # noqa: E402

CHROMIUM = browser.find()
HAS_PROMETHEUS = all(shutil.which(name) for name in ("promtool", "prometheus"))
EXAMPLES = os.path.join(SOURCE, "config", "examples")
MONITORING = os.path.join(EXAMPLES, "monitoring")


def answered(condition):
    """Waits until the programs answer, and so."""
    return eventually(condition, (OSError, KeyError, IndexError, AttributeError))


def fetch(url):
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()


def program(name, *arguments):
    return subprocess.run([os.path.join(BIN, name), *arguments], capture_output=True, text=True, check=True).stdout


class Acquisition:
    """A daemon with a run in progress, raw capture and all, and a scanner that loses one datagram of a hundred."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory()
        here = self._directory.name
        scanner = os.path.join(EXAMPLES, "small.scanner.json")
        calibration = os.path.join(here, "c.h5")
        program("petcal", "make", "--scanner", scanner, "--output", calibration)
        configuration = {
            "scanner": scanner, "calibration": calibration, "data_dir": here,
            "receive": {"sockets": [{"address": "127.0.0.1", "port": 0}], "lock_memory": False, "batch_count": 32,
                        "batch_bytes": 262144},
            "coincidence": {"window_ticks": 320, "delay_ticks": 6400, "min_module_difference": 2},
            "listmode": {"write_raw": True, "sync_interval_ms": 200},
            "estimates": {"dead_time_ns": 2000, "scatter_fraction": 0.2},
            "spectra": {"enabled": True},
            "control": {"socket": os.path.join(here, "control.sock")},
            "http": {"listen": "127.0.0.1:0"},
        }
        with open(os.path.join(here, "petacqd.json"), "w", encoding="utf-8") as file:
            json.dump(configuration, file)
        self.socket = configuration["control"]["socket"]
        self._simulator = None
        with open(os.path.join(here, "log"), "w", encoding="utf-8") as log:
            self._daemon = subprocess.Popen([os.path.join(BIN, "petacqd"), "--config", file.name], stderr=log)
        try:
            answered(lambda: " ready: " in self._log())
            self.target = "127.0.0.1:" + re.search(r"http: listening on \S+, port (\d+)", self._log())[1]
            self.url = f"http://{self.target}/"
            self.control("start", "--run", "r1", "--note", "watched")
            self._simulator = subprocess.Popen(
                [os.path.join(BIN, "petsim"), "--crystals", "surface", "--scanner", scanner, "--calibration", calibration, "--quiet", "--threads", "1",
                 "--cylinder", "0,0,0,10,20,0.45", "--sources", "4", "--flush-us", "4000", "--duration-s", "600",
                 "--rate", "60000", "--loss", "0.01", "--to", f"127.0.0.1:{self.status()['sockets'][0]['port']}"])
            answered(lambda: self.status()["rates"]["prompts_per_s"] > 0)
        except BaseException:
            self.close()
            raise

    def _log(self):
        with open(os.path.join(self._directory.name, "log"), encoding="utf-8") as log:
            return log.read()

    def control(self, *arguments):
        return program("petctl", "--socket", self.socket, *arguments)

    def status(self):
        return json.loads(self.control("status", "--json"))

    def end_data(self):
        self._simulator.terminate()
        self._simulator.wait()

    def close(self):
        for process in (self._simulator, self._daemon):
            if process is not None:
                process.terminate()
                process.wait()
        self._directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class PrometheusServer:
    def __init__(self, target):
        self._directory = tempfile.TemporaryDirectory()
        here = self._directory.name
        with open(os.path.join(MONITORING, "prometheus.yml"), encoding="utf-8") as file:
            example = file.read()
        shutil.copy(os.path.join(MONITORING, "alerts.yml"), here)
        configuration = os.path.join(here, "prometheus.yml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(example.replace("127.0.0.1:9680", target).replace("_interval: 5s", "_interval: 1s"))
        # Prometheus cannot choose a free port and report it.
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={here}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._directory.cleanup()

    def get(self, path, **parameters):
        return json.loads(fetch(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"))["data"]

    def query(self, expression):
        return [(r["metric"], float(r["value"][1])) for r in self.get("query", query=expression)["result"]]


def filled(expression):
    """An expression of the dashboard with all of its variables."""
    for name in ("instance", "source", "module"):
        expression = expression.replace("$" + name, ".+")
    return expression.replace("$__rate_interval", "30s")


def dashboard_queries():
    with open(os.path.join(MONITORING, "grafana-dashboard.json"), encoding="utf-8") as file:
        dashboard = json.load(file)
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], filled(target["expr"])
    for annotation in dashboard["annotations"]["list"]:
        if annotation["name"] == "Runs":  # others are empty while all is well
            yield annotation["name"], filled(annotation["expr"])


class Prometheus(unittest.TestCase):
    def test_a_server_scrapes_a_daemon_that_takes_data(self):
        with Acquisition() as acquisition, PrometheusServer(acquisition.target) as server:
            answered(lambda: server.query('up{job="petacqd"}')[0][1] == 1)
            checked = subprocess.run(["promtool", "check", "metrics"], input=fetch(acquisition.url + "metrics"),
                                     capture_output=True, text=True, check=False)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))

            # Counters are those of the daemon, and so are rates.
            answered(lambda: server.query("rate(petacqd_prompts_total[30s])")[0][1] > 0)
            answered(lambda: server.query("petacqd_net_trues_per_second")[0][1] > 0)
            for title, expression in dashboard_queries():
                with self.subTest(panel=title, query=expression):
                    answered(lambda: server.query(expression))
            panels = {title for title, _ in dashboard_queries()}
            self.assertGreater(len(panels), 15)

            # Each rule can be evaluated, and the loss of datagrams raises its alert.
            groups = answered(lambda: server.get("rules")["groups"])
            rules = [rule for group in groups for rule in group["rules"]]
            self.assertGreater(len(rules), 10)
            for rule in rules:
                answered(lambda: next(r for g in server.get("rules")["groups"] for r in g["rules"]
                                        if r["name"] == rule["name"])["health"] == "ok")
            answered(lambda: server.query('ALERTS{alertname="PetacqdDatagramsLost",alertstate="firing"}'))
            self.assertEqual(server.query('ALERTS{alertname="PetacqdDown"}'), [])

            # After the end of the data, all values are exact.
            acquisition.end_data()
            acquisition.control("stop")
            answered(lambda: acquisition.status()["rates"]["datagrams_per_s"] == 0)
            status = acquisition.status()
            total, ledger = status["total"], status["ledger"]
            for metric, value in {
                    "petacqd_datagrams_received_total": total["datagrams"]["received"],
                    "petacqd_datagrams_lost": total["datagrams"]["lost"],
                    "petacqd_frames_received_total": total["frames"]["received"],
                    "petacqd_frames_accepted_total": total["frames"]["accepted"],
                    'petacqd_frames_rejected_total{reason="below_window"}': total["frames"]["below_window"],
                    "petacqd_prompts_total": total["singles"]["prompts"],
                    "petacqd_delayeds_total": total["singles"]["delayeds"],
                    "petacqd_pairs_written_total": ledger["pairs"]["written"],
                    "petacqd_ledger_closed": 1,
                    'petacqd_state{state="idle"}': 1}.items():
                with self.subTest(metric=metric):
                    self.assertTrue(answered(lambda: [v for _, v in server.query(metric)] == [float(value)]))
            self.assertGreater(total["datagrams"]["lost"], 0)


class LivePage(unittest.TestCase):
    def test_the_page_shows_the_status_while_data_arrive(self):
        with Acquisition() as acquisition, browser.Browser(CHROMIUM) as chromium:
            page = chromium.page()
            page.open(acquisition.url)
            page.wait("document.documentElement.dataset.connection === 'live'")
            page.evaluate("choose_module(3)")  # before the daemon has counted its spectra
            # The document and the fields of the page at the same moment.
            page.evaluate(f"""(() => {{
                const original = show_status;
                show_status = (status) => {{ original(status); window.shown = {{status, fields: {FIELDS}}}; }};
            }})(), 0""")
            uptimes = set()
            for _ in range(3):
                page.wait(f"window.shown && !{sorted(uptimes)}.includes(shown.status.uptime_s)")
                shown = page.evaluate("shown")
                uptimes.add(shown["status"]["uptime_s"])
                self.assertGreater(compare(self, shown["fields"], shown["status"]), 300)
                self.assertGreater(float(shown["fields"]["rates.prompts_per_s"]["value"]), 0)
                self.assertGreater(float(shown["fields"]["run.capture.datagrams_written"]["value"]), 0)
            # The sinogram and the image of the run: drawn, with the colours of the ramp.
            page.wait("document.getElementById('quick-look-reading').textContent.startsWith('Of run r1: ')")
            self.assertRegex(page.evaluate("document.getElementById('quick-look-reading').textContent"),
                             r"^Of run r1: [1-9][\d,]* prompts, less [1-9][\d,]* delayeds in the image\.$")
            page.wait("document.getElementById('unit-reading').textContent.startsWith('BDM 3, DU 0: ')")
            self.assertEqual(page.evaluate("['spectrum-of', 'unit-bdm', 'unit-du'].map(id => document.getElementById(id).value)"), ["3", "3", "0"])
            for canvas in ("sinogram", "image", "flood"):
                colours = page.evaluate(f"""(() => {{
                    const canvas = document.getElementById('{canvas}');
                    const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
                    return new Set(new Uint32Array(data.buffer)).size;
                }})()""")
                self.assertGreater(colours, 50, canvas)
            # After the end of the data, the counters no longer change, and agree with those of petctl.
            acquisition.end_data()
            acquisition.control("stop")
            ledger = acquisition.status()["ledger"]
            page.wait(f"shown.status.run === null && shown.status.ledger.frames.received === {ledger['frames']['received']}")
            fields = page.evaluate(FIELDS)
            self.assertEqual(int(fields["ledger.singles.prompts"]["value"]), ledger["singles"]["prompts"])
            self.assertEqual(fields["run.id"]["text"], "–")
            # The page loads nothing from other hosts, and the browser reports no error.
            origin = acquisition.url
            asked = page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
            self.assertEqual([name for name in asked if not name.startswith(origin)], [])
            self.assertEqual(page.complaints, [])


if __name__ == "__main__":
    if not {"Prometheus": HAS_PROMETHEUS, "LivePage": CHROMIUM}[SUBJECT]:
        print(f"SKIPPED: {SUBJECT}: the program that it needs is not installed (tools/setup --browser)")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], SUBJECT], verbosity=2)
