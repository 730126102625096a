"""Errors, warnings and findings are coloured on a terminal only: colours_test.py FOLDER_OF_PROGRAMS"""

import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = pathlib.Path(sys.argv[1]).resolve()
BAD, PLAIN = "\x1b[1;31m", "\x1b[0m"
# A name that would itself colour what follows.
NAME = "no\x1b[32mwhere"
SHOWN = "no\\u001b[32mwhere"
# Each ends with something wrong, which is on standard error, or on standard output.
COMMANDS = (("stderr", ("petlm", "info", NAME)), ("stdout", ("petlm", "verify", NAME)),
            ("stderr", ("petcal", "inspect", "--scanner", NAME, "c.h5")), ("stderr", ("petctl", "ledger", "--file", NAME)))


def said(stream, words, folder, **variables):
    """What a command writes to a terminal that is this stream of it."""
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")} | variables
    ours, theirs = pty.openpty()
    other = "stdout" if stream == "stderr" else "stderr"
    with subprocess.Popen([PROGRAMS / words[0], *words[1:]], cwd=folder, env=environment,
                          **{stream: theirs, other: subprocess.DEVNULL}) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                more = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not more:
                break
            text += more
        process.wait()
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


class Colours(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory(prefix="petacq-colours-")
        self.addCleanup(kept.cleanup)
        self.folder = kept.name

    def test_on_a_terminal(self):
        for stream, words in COMMANDS:
            with self.subTest(words=words):
                text = said(stream, words, self.folder, TERM="xterm")
                self.assertTrue(text.startswith(BAD) and text.endswith(PLAIN + "\n"), repr(text))
                self.assertIn(SHOWN, text)
                self.assertEqual(text.count("\x1b"), 2, "a name has coloured the terminal")

    def test_not_if_the_user_or_the_terminal_does_not_want_it(self):
        for stream, words in COMMANDS:
            for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
                with self.subTest(words=words, variables=variables):
                    text = said(stream, words, self.folder, **variables)
                    self.assertIn(SHOWN, text)
                    self.assertNotIn("\x1b", text)

    def test_not_elsewhere(self):
        for _, words in COMMANDS:
            done = subprocess.run([PROGRAMS / words[0], *words[1:]], cwd=self.folder, capture_output=True, text=True, check=False,
                                  env=os.environ | {"TERM": "xterm"})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(SHOWN, done.stdout + done.stderr)
            self.assertNotIn("\x1b", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
