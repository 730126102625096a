#!/usr/bin/env python3
"""Checks every link and anchor of the documents, every file and folder of the tree that they name, and that each page is near
the index.

links_test.py ROOT
"""

import itertools
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1]).resolve()
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
PATH = re.compile(r"`((?:config|daemon|docs|gpu|net|systemd|tests|tools)/[\w./-]+)`")
FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
# The rows of "The way of a packet" begin with a file.
STEP = re.compile(r"^\| `([\w/]+)/\w+\.[ch]pp` \|", re.M)


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
    folders = [folder for folder, _ in itertools.groupby(STEP.findall(text))]
    if len(folders) != len(set(folders)):
        yield "the way of a packet enters a folder twice"


def far_pages(pages):
    """Pages of docs/ that are more than two links away from the index."""
    reached = near = {root / "docs/README.md"}
    for _ in range(2):
        near = {(page.parent / target).resolve() for page in near if page.suffix == ".md" and page.exists()
                for target, _ in LINK.findall(page.read_text(encoding="utf-8"))}
        reached = reached | near
    return [page for page in pages if root / "docs" in page.parents and page not in reached]


pages = [root / name for name in subprocess.run(
    ["git", "-C", root, "ls-files", "*.md"], capture_output=True, text=True, check=False).stdout.split()]
pages = pages or [*root.glob("*.md"), *root.glob("docs/**/*.md")]
found = [f"{page.relative_to(root)}: {problem}" for page in pages for problem in problems(page)]
found += [f"{page.relative_to(root)}: more than two links from docs/README.md" for page in far_pages(pages)]
print("\n".join(found) or f"{len(pages)} pages, no dead links")
sys.exit(bool(found))
