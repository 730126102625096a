#!/bin/sh
# Runs in the system with the packages petacqd and petacqd-mpi: two hosts save the singles of half of the boards each.
# petlm-mpi with two ranks must find in them the coincidences that petlm finds.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp /etc/petacqd/mouse.scanner.json .
petcal make --scanner mouse.scanner.json --output calibration.h5
petsim --scanner mouse.scanner.json --calibration calibration.h5 --seed 3 --duration-s 0.5 --rate 200000 \
    --to 127.0.0.1:9655 --write all.pcap
for parity in 0 1; do
    mkdir "host$parity"
    ids=$(sed -n 's/.*"id": *\([0-9]*\).*/\1/p' mouse.scanner.json | awk -v p="$parity" '$1 % 2 == p' | paste -sd ,)
    cat >"host$parity.json" <<END
{"scanner": "mouse.scanner.json", "calibration": "calibration.h5", "data_dir": "host$parity",
 "receive": {"sockets": [{"address": "127.0.0.1", "port": 9655}]}, "energy": {"lower_keV": 350, "upper_keV": 650},
 "coincidence": {"window_ticks": 400, "min_module_difference": 2, "delay_ticks": 10000}, "sources": {"ids": [$ids]},
 "listmode": {"write_singles": true, "write_coincidences": false}, "pipeline": {"backend": "cpu"},
 "control": {"socket": "socket"}}
END
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
