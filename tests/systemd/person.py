"""A person at a clean machine: alice, who may use sudo, has packages, and types what a page says."""

import re
import shutil

from machine import Failure, Machine

FURNISH = """
set -e
cd "$1"
rm -rf var/lib/petacqd
: > etc/machine-id
chroot . useradd --create-home --shell /bin/bash alice
echo 'alice ALL=(ALL) NOPASSWD: ALL' > etc/sudoers.d/alice
echo 'APT::Get::Assume-Yes "true";' > etc/apt/apt.conf.d/90yes
mkdir -p home/alice/build/package
cp {packages}/* home/alice/build/package
chroot . chown -R alice: home/alice
"""


def clean_machine(work, root, *packages):
    """`work`: an empty directory; `root`: what any host has, with what the packages need in apt's cache; it stays as it is."""
    here = work / "packages"
    here.mkdir()
    for package in packages:
        shutil.copy(package, here)
    return Machine(work, FURNISH.format(packages=here), root)


def code_blocks(text):
    """The shell commands of a page or a chapter, block by block."""
    found = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.M | re.S)
    if not found:
        raise Failure("no commands on the page")
    return found
