"""Runs all fuzz targets, each for its share of the time. tools/check --fuzz calls it.

    campaign.py TARGETS PROGRAMS SOURCE CORPUS MINUTES

TARGETS has the libFuzzer programs, PROGRAMS those that make the seeds. Inputs that reach new code stay in CORPUS/TARGET
for the next time. Exit status 1 with a finding; its input is in CORPUS/findings.
"""

import concurrent.futures
import glob
import os
import re
import subprocess
import sys

# These do more for one input, and get more time.
SLOW = {"http": 2, "recover": 2, "tracker": 3}
# Longer inputs reach nothing more, and take more time.
LONGEST = {"tracker": 400, "wire": 1500, "json_rpc": 1000, "http": 2000}


def name_of(program):
    return os.path.basename(program)[len("fuzz_"):]


def fuzz(program, corpus, seeds, findings, seconds):
    """(executions, what was found)"""
    target = name_of(program)
    folder = os.path.join(corpus, target)
    os.makedirs(folder, exist_ok=True)
    dictionary = os.path.join(os.path.dirname(os.path.abspath(__file__)), target + ".dict")
    command = [program, f"-max_total_time={seconds:.0f}", "-timeout=25", "-rss_limit_mb=4096", "-print_final_stats=1",
               f"-max_len={LONGEST.get(target, 0)}", f"-artifact_prefix={findings}/{target}-", folder, os.path.join(seeds, target),
               os.path.join(os.path.dirname(os.path.abspath(__file__)), "regressions", target)]
    command += [f"-dict={dictionary}"] if os.path.exists(dictionary) else []
    done = subprocess.run([word for word in command if not word.startswith("/") or os.path.exists(word)], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = done.stderr.decode("utf-8", "replace")
    count = re.search(r"number_of_executed_units:\s*(\d+)", said)
    if done.returncode == 0 and count:
        return target, int(count[1]), ""
    return target, int(count[1]) if count else 0, said[-6000:]


def main():
    targets, programs, source, corpus, minutes = sys.argv[1:]
    corpus = os.path.abspath(corpus)
    seeds, findings = os.path.join(corpus, "seeds"), os.path.join(corpus, "findings")
    os.makedirs(findings, exist_ok=True)
    subprocess.run([sys.executable, os.path.join(source, "tests", "fuzz", "seeds.py"), programs, source, seeds], check=True)
    all_targets = sorted(glob.glob(os.path.join(os.path.abspath(targets), "fuzz_*")))
    weight = {path: SLOW.get(name_of(path), 1) for path in all_targets}
    workers = os.cpu_count() or 1
    share = float(minutes) * 60 * workers / sum(weight.values())
    seconds = {name_of(path): max(1.0, share * weight[path]) for path in all_targets}
    total, found = 0, []
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(fuzz, path, corpus, seeds, findings, seconds[name_of(path)]) for path in all_targets]
        for job in concurrent.futures.as_completed(jobs):
            target, count, finding = job.result()
            total += count
            print(f"{target}: {count:,} executions, {count / seconds[target]:,.0f} per second{'; FOUND:' if finding else ''}\n"
                  f"{finding}".rstrip(), flush=True)
            found += [target] if finding else []
    print(f"fuzz: {total:,} executions over {len(all_targets)} targets, "
          + (f"findings in {', '.join(found)}: the inputs are in {findings}" if found else "no findings"))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
