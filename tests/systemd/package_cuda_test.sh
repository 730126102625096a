#!/bin/sh
# Runs in the system with the packages petacqd and petacqd-cuda: the programs of petacqd-cuda know CUDA, those that they
# replace do not, and without a GPU both find the same coincidences.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp /etc/petacqd/mouse.scanner.json .
petcal make --scanner mouse.scanner.json --output calibration.h5
petsim --scanner mouse.scanner.json --calibration calibration.h5 --seed 3 --duration-s 0.2 --rate 200000 \
    --to 127.0.0.1:9655 --write all.pcap
for backend in auto cuda; do
    cat >$backend.json <<END
{"scanner": "mouse.scanner.json", "calibration": "calibration.h5", "data_dir": ".",
 "receive": {"sockets": [{"address": "127.0.0.1", "port": 9655}]}, "energy": {"lower_keV": 350, "upper_keV": 650},
 "coincidence": {"window_ticks": 400, "min_module_difference": 2, "delay_ticks": 10000},
 "pipeline": {"backend": "$backend"}, "control": {"socket": "socket"}}
END
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
