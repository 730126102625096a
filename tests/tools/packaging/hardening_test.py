"""Programs are hardened: hardening_test.py FILE_OR_FOLDER ...

Of each ELF file in them: position independent, no executable stack, all relocations read-only after start, canaries on the stack,
checked buffers of the C library and, on x86-64, places where indirect jumps may land (from -fcf-protection). With COMMANDS.json among the
arguments, the compile commands of a build, also that every source has been compiled with guards of large stack frames, which leave no
mark in a program.
"""
import json
import pathlib
import re
import subprocess
import sys

LANDING = b"\xf3\x0f\x1e\xfa"  # endbr64


def readelf(*words):
    return subprocess.run(["readelf", "--wide", *words], capture_output=True, text=True, check=True).stdout


def missing(path):
    """What a program lacks."""
    header, segments, dynamic = readelf("-h", path), readelf("-l", path), readelf("-d", path)
    imported = set(re.findall(r" UND (\w+)", readelf("--dyn-syms", path)))
    if not re.search(r"Type:\s+DYN", header) or (re.search(r"INTERP", segments) and "PIE" not in dynamic):
        yield "position independence (-pie)"
    stack = re.search(r"GNU_STACK.*", segments)
    if not stack or "E" in stack.group().split()[-2]:
        yield "a stack that is not executable (-z noexecstack)"
    if "GNU_RELRO" not in segments or not re.search(r"\bNOW\b", dynamic):
        yield "read-only relocations (-z relro -z now)"
    if "__stack_chk_fail" not in imported:
        yield "canaries on the stack (-fstack-protector-strong)"
    if not any(name.endswith("_chk") for name in imported):
        yield "checked buffers (_FORTIFY_SOURCE)"
    # Each function that a pointer may reach has one: hundreds in a program. The C library's own start has a few.
    start, size = (int(number, 16) for number in re.search(r" \.text +PROGBITS +\w+ (\w+) (\w+)", readelf("-S", path)).groups())
    if "X86-64" in header and pathlib.Path(path).read_bytes().count(LANDING, start, start + size) < 100:
        yield "landing places of indirect jumps (-fcf-protection)"


def uncovered(commands):
    """Sources of a release build that were compiled without a guard of large frames."""
    for one in json.loads(pathlib.Path(commands).read_text(encoding="utf-8")):
        if "-O3 -DNDEBUG" in one["command"] and "-fstack-clash-protection" not in one["command"]:
            yield one["file"]


def elf_files(argument):
    path = pathlib.Path(argument)
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and not file.is_symlink():
            with open(file, "rb") as opened:
                if opened.read(4) == b"\x7fELF":
                    yield file


def main():
    problems, seen = [], 0
    for argument in sys.argv[1:]:
        if argument.endswith(".json"):
            problems += [f"{file}: compiled without -fstack-clash-protection" for file in uncovered(argument)]
            continue
        for file in elf_files(argument):
            seen += 1
            problems += [f"{file}: without {what}" for what in missing(file)]
    print("\n".join(problems) or f"{seen} programs are hardened")
    return 1 if problems or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
