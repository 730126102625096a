"""tools/packaging/publisher makes security.txt and the maintainer from one file: publisher_test.py ROOT"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
CONTACT, EXPIRES = "Contact: mailto:security@hospital.org", "Expires: 2027-01-31T00:00:00Z"


def publisher(what, text=None):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        if text is not None:
            file.write(text)
            file.flush()
        words = [file.name] if text is not None else []
        return subprocess.run([ROOT / "tools/packaging/publisher", what, *words], capture_output=True, text=True, check=False)


class Publisher(unittest.TestCase):
    def test_as_it_is_there_is_nobody_and_no_address(self):
        self.assertEqual(publisher("security.txt").stdout, "")
        self.assertNotIn("@", publisher("maintainer").stdout)

    def test_no_address_that_cannot_receive(self):
        found = subprocess.run(["git", "-C", ROOT, "grep", "-lE", r"@[a-z0-9.-]+\.invalid"], capture_output=True, text=True, check=False).stdout
        self.assertLessEqual(set(found.split()), {"tests/tools/packaging/publisher_test.py"})

    def test_filled_in(self):
        text = f"# nobody reads this\nMaintainer: A Lab <packages@hospital.org>\n{CONTACT}\nContact: https://hospital.org/report\n{EXPIRES}\nPreferred-Languages: en, de\n"
        done = publisher("security.txt", text)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{CONTACT}\nContact: https://hospital.org/report\n{EXPIRES}\nPreferred-Languages: en, de\n")
        self.assertEqual(publisher("maintainer", text).stdout, "A Lab <packages@hospital.org>\n")

    def test_refused(self):
        for text, why in (
            (f"{CONTACT}\n", "needed"), (f"{EXPIRES}\n", "needed"), (f"{CONTACT}\n{EXPIRES}\n{EXPIRES}\n", "once"),
            (f"Contact: security@hospital.org\n{EXPIRES}\n", "URI"), (f"{CONTACT}\nExpires: next year\n", "2027-01-31"),
            (f"{CONTACT}\n{EXPIRES}\nPhone: 1\n", "no field"), (f"{CONTACT}\n{EXPIRES}\nPolicy: http://hospital.org/\n", "https"),
            (f"Contact: mailto:a@example.org\n{EXPIRES}\n", "placeholder"), ("Maintainer: somebody\n", "ADDRESS"), ("hello\n", "FIELD"),
        ):
            done = publisher("security.txt", text)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
