"""The command lines of all programs: command_lines_test.py FOLDER_OF_PROGRAMS

Every option with a number, of every command, refuses what is no number, is not finite, too large, or negative where that
makes no sense; every program has --version and help, and says what a misspelt word was meant to be.
"""
import pathlib
import re
import subprocess
import sys

folder = pathlib.Path(sys.argv[1])
PROGRAMS = ["petacqd", "petctl", "petlm", "petsim", "petcal", "petbench"]
if (folder / "petlm-mpi").exists():
    PROGRAMS.append("petlm-mpi")
MAY_BE_NEGATIVE = {"--bed-mm", "--nonlinearity", "--cylinder", "--point", "--offset-mm", "--temperature-c",
                   "--clock-drift-ps-per-c", "--gain-drift-percent-per-c", "--rotation"}
NONSENSE = {
    "FLOAT": ["nan", "9" * 309, "-nan", "inf", "-inf", "1e999", "", "x", "1x"],
    "UINT": ["nan", "9" * 309, "inf", "1e999", "1.5", "", "x", "18446744073709551616"],
    "INT": ["nan", "9" * 309, "inf", "", "x", "1.5"],
}
ABOVE_ZERO = [("petctl", "runs", "--last"), ("petctl", "start", "--duration"), ("petctl", "doctor", "--seconds"),
              ("petctl", "frames", "--count"), ("petctl", "frames", "--seconds"),
              ("petacqd", "--rate"), ("petbench", "receive", "--seconds")]
USAGE = 64
problems = []
tried = 0


def call(program, *words):
    return subprocess.run([folder / program, *words], capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL)


def refused(*words, because=""):
    global tried
    tried += 1
    done = call(*words)
    # Each line of the message begins with the name of the program, but for the one on --help.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Run with --help")]
    named = lines and all(line.startswith(f"{words[0]}: ") for line in lines)
    if done.returncode != USAGE or because not in done.stderr or not named:
        shown = " ".join(word[:40] or "''" for word in words)
        problems.append(f"{shown}: exit status {done.returncode}, expected {USAGE} and '{because}': {done.stderr[:200]}")


def commands_of(program, *command):
    """The command itself and those below it, with their help."""
    text = call(program, *command, "--help").stdout
    yield command, text
    below = text.partition("Subcommands:")[2]
    for name in re.findall(r"^  (\S+)", below, re.MULTILINE):
        if name != "help":
            yield from commands_of(program, *command, name)


for program in PROGRAMS:
    version = call(program, "--version")
    if version.returncode != 0 or not re.fullmatch(rf"{program} \d+\.\d+\.\d+\n", version.stdout):
        problems.append(f"{program} --version: {version.stdout} {version.stderr}")
    options = 0
    for command, text in commands_of(program):
        if call(program, "help", *command).stdout != text:
            problems.append(f"{program} help {' '.join(command)}: not what --help prints")
        if re.search(r"[^\n -~]|ENUM", text):
            problems.append(f"{program} {' '.join(command)} --help: shows values as they are inside, not as they are typed")
        for name, kind in re.findall(r"^  (?:-\w,)?(--[\w-]+)(?:,-\w)? (FLOAT|UINT|INT)\b", text, re.MULTILINE):
            # Everything with a few options, and with all what passes most comparisons.
            values = NONSENSE[kind] if options < 3 else NONSENSE[kind][:1]
            options += 1
            values = values + (["-1"] if kind != "INT" and name not in MAY_BE_NEGATIVE else [])
            for value in values:
                refused(program, *command, f"{name}={value}", because=name)
    for option in re.findall(r"^  (?:-\w,)?(--[\w-]{5,})", text, re.MULTILINE)[:3]:
        refused(program, *command, option[:-1] + "x" + option[-1], because="did you mean --")
    refused(program, "help", "nonsens", because="there is no command")

for words in ABOVE_ZERO:
    refused(*words, "0", because="above 0")
refused("petctl", "strat", because="strat: did you mean start?")
refused("petctl", "stauts", because="stauts: did you mean status?")
refused("petctl", "status", "--jsn", because="--jsn: did you mean --json?")
refused("petacqd", "--confg", "x", because="--confg: did you mean --config?")
refused("petlm", "exprot", because="exprot: did you mean export?")
refused("petcal", "derive", "enrgy", because="enrgy: did you mean energy?")
refused("petctl", "help", "strat", because="strat: did you mean start?")
refused("petlm", "resort", "run", "-o", "x", "--window-ns", "4", "--window-ticks", "3", because="excludes")

if problems:
    sys.exit("\n".join(problems))
if tried < 300:
    sys.exit(f"only {tried} command lines were tried: are the options still found?")
print(f"{tried} command lines refused as they should be")
