#!/usr/bin/env python3
"""Checks every link and anchor of the documents, and every file and folder of the tree that they name.

links_test.py ROOT
"""

import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1]).resolve()
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PATH = re.compile(r"`((?:config|daemon|docs|gpu|net|systemd|tests|tools)/[\w./-]+)`")
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
# The steps in "One packet" name files relative to their folder.
STEP = re.compile(r"^\d+\. \*\*`([\w/]+)/`\*\*(.*?)(?=^\d+\. |^$)", re.M | re.S)
FILE = re.compile(r"`([\w/]+\.[ch]pp)`")


def anchors(page):
    """The anchors of the headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading).lower()).replace(" ", "-") for heading in headings}


def problems(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target, anchor in LINK.findall(CODE.sub("", text)):
        if target.startswith(("http:", "https:")):
            continue
        there = page.parent / target if target else page
        if not there.exists():
            yield f"no file {target}"
        elif anchor and anchor not in anchors(there):
            yield f"no heading #{anchor} in {target or 'this page'}"
    for path in PATH.findall(text):
        if not (root / path).exists() and "NAME" not in path:
            yield f"no file {path}"
    folders = [folder for folder, _ in STEP.findall(text)]
    if len(folders) != len(set(folders)):
        yield "the way of a packet enters a folder twice"
    for folder, step in STEP.findall(text):
        for file in FILE.findall(step):
            if not (root / folder / file).exists():
                yield f"no file {folder}/{file}"


pages = [root / name for name in subprocess.run(
    ["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True, check=False).stdout.split()]
pages = pages or [*root.glob("*.md"), *root.glob("docs/**/*.md")]
found = [f"{page.relative_to(root)}: {problem}" for page in pages for problem in problems(page)]
print("\n".join(found) or f"{len(pages)} pages, no dead links")
sys.exit(bool(found))
