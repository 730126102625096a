#!/bin/sh
# Runs in the system with the packages petacqd and petacqd-mpi: two hosts save the singles of half of the boards each.
# petlm-mpi with two ranks must find in them the coincidences that petlm finds.
set -eu
duration_s=0.5
. "$(dirname "$0")/package_site.sh"
for parity in 0 1; do
    mkdir "host$parity"
    ids=$(sed -n 's/.*"id": *\([0-9]*\).*/\1/p' mouse.scanner.json | awk -v p="$parity" '$1 % 2 == p' | paste -sd ,)
    configuration "\"data_dir\": \"host$parity\", \"sources\": {\"ids\": [$ids]}, \"pipeline\": {\"backend\": \"cpu\"},
 \"listmode\": {\"write_singles\": true, \"write_coincidences\": false}" >"host$parity.json"
    petacqd --config "host$parity.json" --replay all.pcap --run r
done
petlm resort host0/r host1/r -o by-petlm
mpirun --allow-run-as-root --oversubscribe -n 2 petlm-mpi host0/r host1/r -o by-mpi --backend cpu --shard-singles 20000
petlm verify by-mpi
for run in by-petlm by-mpi; do
    petlm dump "$run" >"$run.txt"
done
[ "$(wc -l <by-petlm.txt)" -gt 1000 ]
cmp by-petlm.txt by-mpi.txt
