# Completion in bash for petacqd, petacqd-demo, petctl, petsim, petlm, petlm-mpi, petcal and petbench.
#
# The programs tell themselves what may come next: PROGRAM __complete WORD... LAST.

_petacq() {
    local current=${COMP_WORDS[COMP_CWORD]} words=() candidates=() line i
    # readline splits "--run=x" into three words.
    for ((i = 1; i < COMP_CWORD; ++i)); do
        [[ ${COMP_WORDS[i]} == = ]] || words+=("${COMP_WORDS[i]}")
    done
    [[ $current == = ]] && current=
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
        fi
        candidates+=("${line%%$'\t'*}")
    done < <("${COMP_WORDS[0]}" __complete "${words[@]}" "$current" 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "${candidates[*]}" -- "$current" | sort -u)
}

complete -F _petacq petacqd petacqd-demo petctl petsim petlm petlm-mpi petcal petbench
