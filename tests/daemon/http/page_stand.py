"""What the tests of the live page share: a server that shows what they want, and a headless Chromium."""

import json
import os
import subprocess
import sys
import unittest

STAND, SOURCE, LIBRARY = sys.argv[1:4]
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import browser  # noqa: E402  (found by the line above)

CHROMIUM = browser.find()


class Stand:
    """A server that shows the status documents of the test."""

    def __init__(self, library=LIBRARY, data=None, scanner=None):
        """`scanner`: an example of config/examples/scanners instead of a small ring."""
        description = scanner and os.path.join(SOURCE, "config", "examples", "scanners", f"{scanner}.scanner.json")
        arguments = [library or "", data or "", description or ""]
        while arguments and not arguments[-1]:
            arguments.pop()
        self.process = subprocess.Popen([STAND, *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = f"http://127.0.0.1:{self.process.stdout.readline().strip()}/"

    def show(self, document=None):
        self.process.stdin.write((json.dumps(document) if document else "") + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # killed by a test
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# For a page, before its scripts: what it would ask for later is counted and not done, and every answer is waited for.
HELD = """window.held = 0;
(set => { window.setTimeout = (what, ms, ...more) => ms >= 100 ? void ++held : set(what, ms, ...more); })(window.setTimeout);
AbortSignal.timeout = () => new AbortController().signal;"""


class InBrowser:
    """For test cases: one page for all of them."""
    held = False  # whether the page asks the server only when it is opened and when the test lets it

    @classmethod
    def setUpClass(cls):
        chromium = browser.Browser(CHROMIUM)
        cls.addClassCleanup(chromium.close)
        cls.page = chromium.page()  # for all tests: each loads it anew
        if cls.held:
            cls.page.before(HELD)

    def open(self, stand, **screen):
        self.page.show_as(**screen)
        self.page.open(stand.url)
        self.page.complaints = []
        self.page.wait("document.documentElement.dataset.connection === 'live'")
        if self.held:
            self.page.wait('held === 2')  # the figures and the pictures have been asked for once
        return self.page

    def ask(self, page):
        """Lets the page ask the server now and not within a second, and waits until it has shown the answer."""
        page.evaluate("run()")


def main():
    if CHROMIUM is None:
        print("SKIPPED: no Chromium here (apt install chromium)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
