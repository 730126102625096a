#!/usr/bin/env python3
"""What `cmake --install` puts where.  installed_test.py CMAKE BUILD_DIRECTORY

Every program with its man page and completion, units that systemd and its helpers find, documents whose links lead
somewhere, and a configuration to begin with that is good.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

cmake, build = sys.argv[1:3]
programs = ["petacqd", "petacqd-demo", "petctl", "petlm", "petcal", "petsim", "petbench"]
if (pathlib.Path(build) / "bin/petlm-mpi").exists():  # built where MPI is found
    programs.append("petlm-mpi")
faults = []


def wanted(condition, what):
    if not condition:
        faults.append(what)


def links(document):
    """Files that a Markdown page refers to, relative to it."""
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        target = target.split("#")[0]
        if target and "://" not in target:
            yield target


with tempfile.TemporaryDirectory(prefix="petacq-installed-") as name:
    subprocess.run([cmake, "--install", build], env=dict(os.environ, DESTDIR=name), check=True, stdout=subprocess.DEVNULL)
    units = list(pathlib.Path(name).glob("**/lib/systemd/system/petacqd.service"))
    wanted(len(units) == 1, "a service unit")
    prefix = units[0].parents[3]
    settings = next(pathlib.Path(name).glob("**/etc/petacqd"))

    for program in programs:
        wanted(os.access(prefix / "bin" / program, os.X_OK), f"the program {program}")
        wanted(list(prefix.glob(f"share/man/man[18]/{program}.[18]*")), f"a man page of {program}")
        wanted((prefix / "share/bash-completion/completions" / program).is_file(), f"completion for {program}")
        wanted((prefix / "share/fish/vendor_completions.d" / f"{program}.fish").is_file(), f"completion in fish for {program}")
    for file in ("share/zsh/vendor-completions/_petacq", "lib/systemd/system/petacqd.socket", "lib/sysusers.d/petacqd.conf", "lib/tmpfiles.d/petacqd.conf",
                 "lib/sysctl.d/50-petacqd.conf", "lib/systemd/system/petacqd-check.timer", "share/petacqd/petacqd.schema.json"):
        wanted((prefix / file).is_file(), file)
    wanted(list(prefix.glob("share/man/man5/petacqd.json.5*")), "a man page of the configuration")

    # The units run installed programs.
    for unit in (units[0], units[0].with_name("petacqd-check.service")):
        for line in re.findall(r"^Exec\w+=(/\S+petacqd\S*)", unit.read_text(), re.M):
            wanted(os.access(name + line, os.X_OK), f"{line}, which {unit.name} runs")
    documents = list(prefix.glob("share/doc/*/**/*.md"))
    wanted([d for d in documents if d.name == "operations.md"], "the manual for operators")
    for document in documents:
        for target in links(document):
            wanted((document.parent / target).exists(), f"{target}, to which {document.name} has a link")
    wanted(list(prefix.glob("share/doc/*/slurm/resort-mpi.sbatch")) or "petlm-mpi" not in programs, "the script for Slurm")
    example = prefix / "share/petacqd/examples"
    for command in ("deliver", "mail", "spool", "webhook"):
        wanted(os.access(example / "alarm" / command, os.X_OK), f"the command {command} of the alarm")
        before = next(prefix.glob("share/doc/*/examples/alarm")) / command
        wanted(before.resolve() == (example / "alarm" / command).resolve(), f"{command} where version 1.0 has it")
    wanted(list(example.glob("monitoring/*.yml")) and list(example.glob("monitoring/*.json")), "examples for Prometheus and Grafana")

    # Each example of a configuration: with the calibration and the directory that its page makes, it is good.
    examples = [path for path in example.glob("**/*.json") if path.with_name(f"{path.stem}.scanner.json").exists()]
    wanted(len(examples) == 12, f"12 examples of a configuration, found {len(examples)}")
    for path in examples:
        document = json.loads(path.read_text(encoding="utf-8"))
        document["receive"]["sockets"][0]["port"] = 0  # the port of the example may be in use
        document["http"] = {"listen": "127.0.0.1:0"}
        path.write_text(json.dumps(document), encoding="utf-8")
        (path.parent / document["data_dir"]).mkdir(exist_ok=True)
        for command in (["petcal", "make", "--bins", "1", "--scanner", path.parent / document["scanner"],
                         "--output", path.parent / document["calibration"]],
                        ["petacqd", "--check", "--config", path]):
            done = subprocess.run([prefix / "bin" / command[0], *command[1:]], check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            wanted(done.returncode == 0, f"an example that is good: {done.stdout}")

    # The steps before the first start.
    subprocess.run([prefix / "bin/petcal", "make", "--scanner", settings / "mouse.scanner.json", "--output",
                    settings / "calibration.h5"], check=True, stdout=subprocess.DEVNULL)
    configuration = settings / "petacqd.json"
    wanted('"/var/lib/petacqd"' in configuration.read_text(), "a configuration that names the data directory")
    # systemd and its helper make this directory, with its owner.
    configuration.write_text(configuration.read_text().replace("/var/lib/petacqd", name))
    done = subprocess.run([prefix / "bin/petacqd", "--check", "--config", configuration], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wanted(done.returncode == 0, f"a configuration that is good: {done.stdout}")

for fault in faults:
    print(f"missing: {fault}")
if not faults:
    print(f"{len(documents)} documents, {len(programs)} programs, units and configuration: all there")
sys.exit(1 if faults else 0)
