#!/bin/sh
# Runs in the system with the packages petacqd and petacqd-cuda: the programs of petacqd-cuda know CUDA, those that they
# replace do not, and without a GPU both find the same coincidences.
set -eu
duration_s=0.2
. "$(dirname "$0")/package_site.sh"
for backend in auto cuda; do
    configuration "\"data_dir\": \".\", \"pipeline\": {\"backend\": \"$backend\"}" >$backend.json
done
for program in petacqd petacqd-cpu; do
    $program --config auto.json --replay all.pcap --run by-$program
    petlm dump by-$program >by-$program.txt
    status=0
    $program --config cuda.json --replay all.pcap --run on-$program >$program.log 2>&1 || status=$?
    cat $program.log
    # Where a GPU is found, petacqd uses it.
    [ $program = petacqd ] && [ $status -eq 0 ] || [ $status -eq 78 ]
done
[ "$(wc -l <by-petacqd.txt)" -gt 100 ]
cmp by-petacqd.txt by-petacqd-cpu.txt
grep -q "built without it" petacqd-cpu.log
if grep -q "built without it" petacqd.log; then
    exit 1
fi
for program in petlm petcal petbench; do
    $program-cpu --help >$program.txt
done
