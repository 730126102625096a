"""The senders of docs/how-to/board.md, in C and Python, against a real daemon.

    board_test.py DIRECTORY_OF_PROGRAMS SOURCE"""

import json
import os
import shutil
import subprocess
import sys
import unittest

from daemon import Site

BIN, SOURCE = sys.argv[1:3]
SENDERS = os.path.join(SOURCE, "docs", "how-to", "senders")


class Board(unittest.TestCase):
    def test_the_senders_are_as_short_as_the_page_says(self):
        for name in ("send.c", "send.py"):
            with open(os.path.join(SENDERS, name), encoding="utf-8") as file:
                self.assertLessEqual(file.read().count("\n"), 50)

    def test_both_senders_lose_nothing(self):
        with open(os.path.join(SOURCE, "config", "examples", "small.scanner.json"), encoding="utf-8") as file:
            scanner = json.load(file)
        configuration = {"sources": {"ids": [0, 2]}, "coincidence": {"window_ticks": 320}}
        sent = []
        with Site(BIN, scanner, configuration) as site:
            compiler = shutil.which("cc") or shutil.which("gcc")
            board = site.file("send")
            subprocess.run([compiler, "-Wall", "-Wextra", "-Werror", "-O2", "-o", board, os.path.join(SENDERS, "send.c")],
                           check=True)

            def send(port, wait):
                def start(program, source, bdm):
                    arguments = ["127.0.0.1", port, source, bdm, 1.5, 4000, scanner["tick_ps"]]
                    return subprocess.Popen([*program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
                boards = [start([board], 0, 0), start([sys.executable, os.path.join(SENDERS, "send.py")], 2, 12)]
                for process in boards:
                    sent.append(json.loads(process.communicate(timeout=60)[0]))
                    self.assertEqual(process.returncode, 0)
                wait(sum(each["datagrams"] for each in sent))
            ledger = site.live("r", send)["ledger"]
        self.assertTrue(ledger["closed"])
        self.assertEqual(ledger["datagrams"]["received"], sum(each["datagrams"] for each in sent))
        self.assertEqual([ledger["datagrams"][key] for key in ("lost", "malformed", "duplicate")], [0, 0, 0])
        self.assertEqual(ledger["frames"]["received"] + ledger["tags"]["received"] if "tags" in ledger
                         else ledger["frames"]["received"], sum(each["frames"] for each in sent))
        self.assertEqual([ledger["frames"][key] for key in ("bad_marker", "bad_address", "time_jump")], [0, 0, 0])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
