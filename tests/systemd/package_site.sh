# For the tests that run in a system with the packages, which read it with the variable duration_s: a directory that goes
# when they end, with a calibration and a capture of the example scanner.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp /etc/petacqd/mouse.scanner.json .
petcal make --scanner mouse.scanner.json --output calibration.h5
petsim --scanner mouse.scanner.json --calibration calibration.h5 --seed 3 --duration-s "$duration_s" --rate 200000 \
    --to 127.0.0.1:9655 --write all.pcap

configuration() { # MEMBERS, besides those that all have
    cat <<END
{"scanner": "mouse.scanner.json", "calibration": "calibration.h5",
 "receive": {"sockets": [{"address": "127.0.0.1", "port": 9655}]}, "energy": {"lower_keV": 350, "upper_keV": 650},
 "coincidence": {"window_ticks": 400, "min_module_difference": 2, "delay_ticks": 10000},
 "control": {"socket": "socket"}, $1}
END
}
