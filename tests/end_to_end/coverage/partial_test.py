"""Two hosts, of which one ends early, sorted again with --partial: what lacks is lost.

usage: partial_test.py BIN_DIRECTORY SOURCE_TREE"""

import sys
import tempfile

from table_test import Table


def main():
    with tempfile.TemporaryDirectory() as directory:
        table = Table(*sys.argv[1:3], directory)
        table.simulate("long.pcap")
        table.program("petsim", "--crystals", "surface", "--scanner", "s.scanner.json", "--calibration", "s.h5", "--quiet", "--write", "short.pcap",
                      "--fast", "--cylinder", "0,0,0,10,20,0.5", "--duration-s", 2.5)
        table.replay("a.json", "long.pcap", "r")
        table.replay("b.json", "short.pcap", "r")
        table.petlm("resort", "a/r", "b/r", "-o", "new", "--partial")
        shares = [share for _, _, share in table.seconds("new")]
        for found, expected in zip(shares, [1, 1, 0.75, 0.5], strict=True):
            table.expect("partial", "seconds", "live share", found, expected, 0.01)
        table.expect("partial", "run.json", "live", table.run_coverage("new")["loss"]["live"], 3.25 / 4, 0.01)
        print("\n".join(table.wrong))
        return 1 if table.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
