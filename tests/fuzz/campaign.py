"""Runs the fuzz targets, each for its share of the time. tools/check --fuzz calls it.

    campaign.py TARGETS PROGRAMS SOURCE CORPUS MINUTES [NAME ...]

TARGETS has the libFuzzer programs, PROGRAMS those that make the seeds; NAME: only these targets. Inputs that reach new code
stay in CORPUS/TARGET for the next time. For each target it prints how many lines of the files that it is about its inputs
have reached. Exit status 1 with a finding; its input is in CORPUS/findings.
"""

import concurrent.futures
import json
import os
import re
import subprocess
import sys

from targets import TARGETS


class Campaign:
    def __init__(self, targets, source, corpus):
        self.targets, self.source, self.corpus = (os.path.abspath(path) for path in (targets, source, corpus))
        self.findings = os.path.join(self.corpus, "findings")
        os.makedirs(self.findings, exist_ok=True)

    def program(self, name):
        return os.path.join(self.targets, "fuzz_" + name)

    def inputs(self, name):
        """The directories with inputs: what has been found so far comes first, and gets more."""
        own = os.path.join(self.corpus, name)
        os.makedirs(own, exist_ok=True)
        others = (os.path.join(self.corpus, "seeds", name), os.path.join(self.source, "tests", "fuzz", "regressions", name))
        return [own, *(path for path in others if os.path.exists(path))]

    def run(self, name, *options, profile=os.devnull):
        return subprocess.run([self.program(name), "-timeout=25", "-rss_limit_mb=4096", "-malloc_limit_mb=512", *options,
                               f"-artifact_prefix={self.findings}/{name}-", *self.inputs(name)], check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "LLVM_PROFILE_FILE": profile})

    def fuzz(self, name, seconds):
        """(executions, what was found)"""
        done = self.run(name, f"-max_total_time={seconds:.0f}", "-print_final_stats=1", f"-max_len={TARGETS[name].longest}")
        said = done.stderr.decode("utf-8", "replace")
        count = re.search(r"number_of_executed_units:\s*(\d+)", said)
        found = "" if done.returncode == 0 and count else said[-6000:]
        return int(count[1]) if count else 0, found

    def coverage(self, name):
        """{file: (lines reached, lines)} of the files that a target is about, by all its inputs. Empty: not known."""
        raw, merged = (os.path.join(self.corpus, name + end) for end in (".profraw", ".profdata"))
        self.run(name, "-runs=0", profile=raw)
        try:
            subprocess.run(["llvm-profdata", "merge", "-o", merged, raw], check=True, stderr=subprocess.DEVNULL)
            told = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={merged}", self.program(name)],
                                  check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        except (OSError, subprocess.CalledProcessError):
            return {}
        finally:
            for path in (raw, merged):
                if os.path.exists(path):
                    os.remove(path)
        lines = {os.path.relpath(os.path.normpath(file["filename"]), self.source): file["summary"]["lines"]
                 for file in json.loads(told)["data"][0]["files"]}
        return {path: (of["covered"], of["count"]) for path, of in sorted(lines.items())
                if any(path == about or path.startswith(about + "/") for about in TARGETS[name].about)}


def share(covered, count):
    return f"{covered} of {count} lines ({100 * covered / max(count, 1):.0f} %)"


def report(name, count, seconds, found, covered):
    print(f"{name}: {count:,} executions, {count / seconds:,.0f} per second{'; FOUND:' if found else ''}\n{found}".rstrip())
    for path, of in covered.items():
        print(f"    {path}: {share(*of)}")
    if len(covered) > 1:
        print(f"    in all: {share(*(sum(column) for column in zip(*covered.values())))}")
    sys.stdout.flush()


def main():
    targets, programs, source, corpus, minutes, *names = sys.argv[1:]
    names = names or sorted(TARGETS)
    campaign = Campaign(targets, source, corpus)
    subprocess.run([sys.executable, os.path.join(source, "tests", "fuzz", "seeds.py"), programs, source,
                    os.path.join(corpus, "seeds")], check=True)
    workers = min(os.cpu_count() or 1, len(names))
    each = float(minutes) * 60 * workers / sum(TARGETS[name].weight for name in names)
    seconds = {name: max(1.0, each * TARGETS[name].weight) for name in names}
    total, findings = 0, []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = {pool.submit(lambda n: (*campaign.fuzz(n, seconds[n]), campaign.coverage(n)), name): name for name in names}
        for job in concurrent.futures.as_completed(jobs):
            name = jobs[job]
            count, found, covered = job.result()
            report(name, count, seconds[name], found, covered)
            total += count
            findings += [name] if found else []
    print(f"fuzz: {total:,} executions over {len(names)} targets, "
          + (f"findings in {', '.join(findings)}: the inputs are in {campaign.findings}" if findings else "no findings"))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
