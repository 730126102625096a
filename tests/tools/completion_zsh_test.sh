#!/bin/bash
# Completion as zsh does it, on a pseudo-terminal: completion_zsh_test.sh FOLDER_OF_PROGRAMS FOLDER_OF_COMPLETION
set -u
command -v zsh >/dev/null || exit 77
# shellcheck source=tests/tools/completion_site.sh
source "${BASH_SOURCE[0]%/*}/completion_site.sh"
completion_site "$1"

# Each row: what is typed before the tab key, and the line that it makes.
cat >zsh-rows <<'END'
petctl sto|petctl stop 
petctl --socket start stat|petctl --socket start status 
petctl start --nuclide Ge|petctl start --nuclide Ge-68 
petctl ledger --run m|petctl ledger --run mouse-1 
petctl ledger --run=r|petctl ledger --run=rat-2 
petctl acknowledge m|petctl acknowledge mouse-1 
petacqd d|petacqd data.plm 
petacqd --config=d|petacqd --config=data.plm 
petlm nema im|petlm nema image-quality 
petlm verify --j|petlm verify --json 
petcal derive energy --spectra d|petcal derive energy --spectra data.plm 
petlm info tw|petlm info two\ words.json 
END
cat >zsh-driver <<'END'
zmodload zsh/zpty
zpty -b shell zsh -f -i
# Waits until the shell has written the pattern.
expect() { local heard; zpty -r -m shell heard "*$1*" && seen=$heard }
zpty -w shell "PS1= RPS1=; fpath=($2 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey -e"
# Control-X shows the line; control-U has removed the one before.
zpty -w shell 'show() { print -r -- "<$BUFFER>"; BUFFER= }; zle -N show; bindkey "^X" show; unsetopt prompt_sp; print rea""dy'
expect ready
failures=0
while IFS='|' read -r typed expected; do
    zpty -w -n shell "$typed"$'\t\x18'
    seen=
    expect '<*>'
    line=${${seen##*<}%%>*}
    if [[ $line != $expected ]]; then
        print -r -- "after \"$typed\"" "  expected: $expected" "  made:     $line"
        failures=1
    fi
done <zsh-rows
zpty -d shell
exit $failures
END
timeout 60 zsh -f zsh-driver "$1" "$2" && echo "all completions as expected"
