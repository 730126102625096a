"""The man pages against the programs: man_pages_test.py FOLDER_OF_PROGRAMS FOLDER_OF_PAGES SCHEMA

The man page of each program lists exactly the options of --help, under their commands; petacqd.json(5) lists exactly the
keys of the configuration; references to other pages lead to existing pages.
"""
import json
import pathlib
import re
import subprocess
import sys

programs, pages, schema_file = map(pathlib.Path, sys.argv[1:4])
SECTIONS = {"petacqd": 8, "petacqd-demo": 1, "petctl": 1, "petsim": 1, "petlm": 1, "petcal": 1, "petbench": 1}
if (programs / "petlm-mpi").exists():  # built where MPI is found
    SECTIONS["petlm-mpi"] = 1
ELSEWHERE = {("systemd", "1"), ("systemd.service", "5"), ("dd", "1"), ("ssh", "1"), ("recvmmsg", "2")}
problems = []


def differ(what, here, there, in_here, in_there):
    for missing in sorted(there - here):
        problems.append(f"{what}: {missing} is in {in_there} and not in {in_here}")
    for missing in sorted(here - there):
        problems.append(f"{what}: {missing} is in {in_here} and not in {in_there}")


def help_of(program, *command):
    done = subprocess.run([programs / program, *command, "--help"], capture_output=True, text=True, check=True)
    options, commands, in_commands = set(), [], False
    for line in done.stdout.splitlines():
        if re.match(r"\S", line):
            in_commands = line.startswith("Subcommands:")
        elif in_commands and (found := re.match(r"  (\S+)", line)):
            if found[1] != "help":  # its options are those of the other commands
                commands.append(found[1])
        elif found := re.match(r"  (-\S+)", line):
            options.update(re.sub(r"\{.*?\}", "", found[1]).split(","))
    return options - {"-h", "--help"}, commands


def options_in(page, commands):
    """Options by command; "" has those outside of all commands."""
    options, here = {name: set() for name in ["", *commands]}, ""
    headings = []
    for line in page.splitlines():
        if line.startswith((".Sh ", ".Ss ")):
            here = line[4:] if line[4:] in commands else ""
            headings.append(line[4:])
        elif line.startswith(".It Fl "):
            # "Fl -name" is "--name".
            options[here].update("-" + name for name in re.findall(r"Fl (\S+)", line))
    for name in commands:
        if name not in headings:
            problems.append(f"command {name} has no section")
    options[""] -= {"-h", "--help"}
    return options


def keys_of(root, schema, prefix=""):
    while "$ref" in schema:
        found = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            found = found[step]
        schema = found
    for name, key in schema.get("properties", {}).items():
        if name == "$schema":
            continue
        deeper = set(keys_of(root, key, f"{prefix}{name}."))
        if key.get("type") == "array":
            deeper |= set(keys_of(root, key["items"], f"{prefix}{name}[]."))
            yield prefix + name
        elif not deeper:
            yield prefix + name
        yield from deeper


for program, section in SECTIONS.items():
    page = (pages / f"{program}.{section}").read_text(encoding="utf-8")
    own, commands = help_of(program)
    for command in list(commands):
        commands += [f"{command} {nested}" for nested in help_of(program, command)[1]]
    written = options_in(page, commands)
    differ(program, written[""], own, "the man page", "--help")
    for command in commands:
        differ(f"{program} {command}", written[command], help_of(program, *command.split())[0], "the man page", "--help")
    if "--help" not in page and "-help" not in page:
        problems.append(f"{program}: the man page does not mention --help")

schema = json.loads(schema_file.read_text(encoding="utf-8"))
page = (pages / "petacqd.json.5").read_text(encoding="utf-8")
keys = set(keys_of(schema, schema))
assert len(keys) > 40, keys
differ("petacqd.json", set(re.findall(r"^\.It Cm (\S+)", page, re.M)), keys, "the man page", "the schema")

for path in sorted(pages.iterdir()):
    name, _, section = path.name.rpartition(".")
    text = path.read_text(encoding="utf-8")
    if not re.search(rf"^\.Dt {re.escape(name.upper())} {section}$", text, re.M):
        problems.append(f"{path.name}: .Dt does not say {name.upper()} {section}")
    for to, number in re.findall(r"^\.Xr (\S+) (\d)", text, re.M):
        if not (pages / f"{to}.{number}").exists() and (to, number) not in ELSEWHERE:
            problems.append(f"{path.name}: refers to {to}({number}), which does not exist")

for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
