#!/bin/bash
# Completion as fish would do it: completion_fish_test.sh FOLDER_OF_PROGRAMS COMPLETION_FILE
set -u
command -v fish >/dev/null || exit 77
# shellcheck source=tests/tools/completion_site.sh
source "${BASH_SOURCE[0]%/*}/completion_site.sh"
completion_site "$1"
export HOME=$folder XDG_CONFIG_HOME=$folder XDG_DATA_HOME=$folder

# One fish for all lines: it starts slowly.
cat >lines <<'END'
petctl st
petctl --socket start st
petctl start --nuclide G
petctl ledger --run=m
petctl acknowledge r
petctl log-level e
petacqd d
petacqd --config=d
petlm nema im
petlm export --format c
petlm help c
petcal derive energy --spectra d
petctl start --run 
petlm info tw
END
expected='petctl st: start status stop
petctl --socket start st: start status stop
petctl start --nuclide G: Ga-66 Ga-68 Ge-68
petctl ledger --run=m: --run=mouse-1
petctl acknowledge r: rat-2
petctl log-level e: error
petacqd d: data.plm
petacqd --config=d: --config=data.plm
petlm nema im: image-quality
petlm export --format c: castor coinstruct csv
petlm help c: cut
petcal derive energy --spectra d: data.plm
petctl start --run : 
petlm info tw: two words.json'
found=$(fish -N -c '
    source $argv[1]
    cat lines | while read -l -z all
        for line in (string split \n -- $all)
            test -n "$line"; or continue
            set -l offered (complete -C "$line" | string replace -r "\t.*" "" | sort)
            echo "$line: $offered"
        end
    end' "$2")
described=$(fish -N -c 'source $argv[1]; complete -C "petlm verif"' "$2")
[[ $described == verify$'\t'"Checks every block"* ]] || { echo "no description: $described"; exit 1; }
diff <(echo "$expected") <(echo "$found") && echo "all completions as expected"
