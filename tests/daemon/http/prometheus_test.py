"""A real Prometheus scrapes the metrics; promtool accepts them and the example rules. Exit status 77: not installed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

STAND, SOURCE = sys.argv[1:3]
sys.path.insert(0, os.path.join(SOURCE, "tests", "support"))
from eventually import eventually  # noqa: E402  (found by the line above)

EXAMPLES = os.path.join(SOURCE, "config", "examples", "monitoring")


def fetch(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.read().decode()


def answered(condition):
    """Waits until Prometheus answers, and so."""
    return eventually(condition, (OSError, KeyError, IndexError))


def promtool(*arguments, **options):
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout + done.stderr


class Prometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stand = subprocess.Popen([STAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.target = f"127.0.0.1:{cls.stand.stdout.readline().strip()}"
        cls.show()

    @classmethod
    def tearDownClass(cls):
        cls.stand.stdin.close()
        cls.stand.wait()
        cls.stand.stdout.close()

    @classmethod
    def show(cls):
        cls.stand.stdin.write("\n")
        cls.stand.stdin.flush()
        cls.stand.stdout.readline()

    def test_promtool_finds_nothing_wrong_with_the_metrics(self):
        self.assertEqual(promtool("check", "metrics", input=fetch(f"http://{self.target}/metrics")), (0, ""))

    def test_promtool_accepts_the_example_rules_and_configuration(self):
        code, said = promtool("check", "rules", os.path.join(EXAMPLES, "alerts.yml"))
        self.assertEqual(code, 0, said)
        code, said = promtool("check", "config", os.path.join(EXAMPLES, "prometheus.yml"))
        self.assertEqual(code, 0, said)

    def test_the_example_rules_fire_when_they_should(self):
        code, said = promtool("test", "rules", os.path.join(EXAMPLES, "alerts_test.yml"))
        self.assertEqual(code, 0, said)

    def test_examples_name_only_metrics_that_there_are(self):
        served = {line.split()[2] for line in fetch(f"http://{self.target}/metrics").splitlines() if line.startswith("# TYPE")}
        import re
        for name in ("alerts.yml", "grafana-dashboard.json"):
            with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
                used = set(re.findall(r"\bpetacqd_[a-z0-9_]+", file.read()))
            self.assertTrue(used)
            self.assertEqual(used - served - {"petacqd_expected_randoms_per_second"}, set(), name)

    def test_a_server_scrapes_them(self):
        with tempfile.TemporaryDirectory() as directory:
            configuration = os.path.join(directory, "prometheus.yml")
            with open(configuration, "w", encoding="utf-8") as file:
                json.dump({"global": {"scrape_interval": "1s"},
                           "rule_files": [os.path.join(EXAMPLES, "alerts.yml")],
                           "scrape_configs": [{"job_name": "petacqd", "static_configs": [{"targets": [self.target]}]}]}, file)
            # A free port. If another program takes it meanwhile, the server does not start, and the test says so.
            import socket
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            with open(os.path.join(directory, "log"), "w", encoding="utf-8") as log:
                server = subprocess.Popen(["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={directory}/data",
                                           f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
                try:
                    def query(expression):
                        answer = json.loads(fetch(f"http://127.0.0.1:{port}/api/v1/query?query={expression}"))
                        return [(r["metric"], float(r["value"][1])) for r in answer["data"]["result"]]

                    answered(lambda: query("up")[0][1] == 1)
                    first = answered(lambda: query("petacqd_datagrams_received_total"))[0][1]
                    self.assertEqual(query('petacqd_source_frames_total{source="3"}')[0][1], 22500 * first / 1000)
                    self.show()
                    answered(lambda: query("petacqd_datagrams_received_total")[0][1] == first + 1000)
                    self.assertGreater(query("scrape_samples_scraped")[0][1], 100)
                finally:
                    server.terminate()
                    server.wait()


if __name__ == "__main__":
    missing = [name for name in ("promtool", "prometheus") if shutil.which(name) is None]
    if missing:
        print(f"SKIPPED: {' and '.join(missing)} not here (apt install prometheus)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
