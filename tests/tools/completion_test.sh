#!/bin/bash
# Completion as bash would do it: completion_test.sh FOLDER_OF_PROGRAMS COMPLETION_FILE
set -u
# shellcheck source=tests/tools/completion_site.sh
source "${BASH_SOURCE[0]%/*}/completion_site.sh"
completion_site "$1"
# shellcheck source=/dev/null
source "$2" || exit 1

failures=0
# offers LINE EXPECTED: EXPECTED are the sorted words that completion offers at the end of LINE, split as bash splits it.
offers() {
    local line=$1 expected=$2 found
    read -ra COMP_WORDS <<<"${line//=/ = }"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
    COMPREPLY=(left from before)
    _petacq "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    found=$(printf '%s\n' "${COMPREPLY[@]}" | sort | paste -sd ' ')
    if [[ $found != "$expected" ]]; then
        printf 'after "%s"\n  expected: %s\n  offered:  %s\n' "$line" "$expected" "$found"
        failures=$((failures + 1))
    fi
}

offers "petctl " "acknowledge doctor frames help history join ledger log-level mark relay reload runs sources start status stop watch"
offers "petctl st" "start status stop"
offers "petctl --so" "--socket"
offers "petctl --ho" "--hosts"
offers "petctl --hosts start st" "start status stop" # "start" is the name of a host
offers "petctl --socket " "bin data.plm other.d sockets two words.json"
offers "petctl --socket start st" "start status stop" # "start" is the socket's name
offers "petctl start --" "--activity-MBq --assay --bed-mm --branching-ratio --duration --from-s --from-ticks --half-life-s --help --hosts --json --key --note --nuclide --nuclide-source --run --socket --subject --to-s --to-ticks --version"
offers "petctl start --d" "--duration"
offers "petctl start --duration " ""
offers "petctl start --run " "" # a new name
offers "petctl start --nuclide G" "Ga-66 Ga-68 Ge-68"
offers "petctl start --assay " "now"
offers "petctl start --note " ""
offers "petctl ledger --run " "mouse-1 rat-2"
offers "petctl ledger --run=m" "mouse-1"
offers "petctl ledger --run r" "rat-2"
offers "petctl --socket $folder/sockets/elsewhere ledger --run " "elsemouse-1 elserat-2"
offers "petctl acknowledge m" "mouse-1"
offers "petctl ledger --file d" "data.plm"
offers "petctl log-level " "debug error info trace warning"
offers "petctl log-level e" "error"
offers "petctl stop " ""
offers "petctl stop --run m" "mouse-1"
offers "petctl stop --" "--help --hosts --json --run --socket --version"
offers "petctl runs --l" "--last"
offers "petacqd --config d" "data.plm"
offers "petacqd -c t" "two words.json"
offers "petacqd d" "data.plm"
offers "petlm verify --j" "--json"
offers "petsim make-detector -o" "-o"
offers "petsim make-detector --o" "--output"
offers "petacqd --ch" "--check"
offers "petsim --framing " "bare sequenced"
offers "petsim --seed " ""
offers "petsim comp" "compare"
offers "petlm in" "info"
offers "petlm info d" "data.plm"
offers "petlm dump --kind " "delayed prompt"
offers "petlm resort --policy Take" "TakeAllGoods TakeIfOnlyOneGood TakeWinnerIfAllAreGoods TakeWinnerIfIsGood TakeWinnerOfGoods"
offers "petlm resort --window-mode " "every single single_opener"
offers "petlm resort --window-n" "--window-ns"
offers "petlm image --nuclide F" "F-18"
offers "petlm image --backend " "auto cpu cuda"
offers "petlm frames --s" "--scanner --scatter --schedule --shortest-s --size --smooth-mm --subsets"
offers "petlm export --format c" "castor coinstruct csv"
offers "petlm help c" "cut"
offers "petcal help derive a" "activity"
offers "petctl help sta" "start status"
offers "petctl doctor --s" "--seconds --socket"
offers "petctl frames d" "data.plm"
offers "petctl frames --so" "--socket --source"
offers "petlm nema " "count-rate image-quality resolution scatter sensitivity"
offers "petlm nema image-quality --o" "--offset-mm --output"
offers "petbench receive --no-g" "--no-gro --no-gso"
offers "petcal ins" "inspect"
offers "petcal make --sc" "--scanner"
offers "petcal derive " "activity crystals energy normalisation time"
offers "petcal derive crystals --c" "--corrections"
offers "petcal derive energy --s" "--scanner --second --second-line-keV --spectra"
offers "petcal derive energy --spectra d" "data.plm"
offers "petcal check --re" "--reference --report --resolution-percent"
offers "petcal check d" "data.plm"
offers "petbench wr" "writer"
offers "petbench nonsense --j" ""
offers "$folder/bin/petlm ver" "verify"

((failures == 0)) && echo "all completions as expected"
exit $((failures > 0))
