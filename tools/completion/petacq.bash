# Completion in bash for petacqd, petacqd-demo, petctl, petsim, petlm, petlm-mpi, petcal and petbench.
#
# The candidates come from --help, so that they always match the installed program. After `petctl ledger --run` and
# `petctl stop --run` the daemon supplies the ids of the runs on disk.

# Prints the commands of the help text on standard input, one per line.
_petacq_commands() {
    awk '/^Subcommands:/ { found = 1; next } /^[^ ]/ || /^$/ { found = 0 } found && /^  [^ ]/ { print $1 }'
}

# Prints the options of the help text, one per line, each followed by the type of its value ("" for none).
_petacq_options() {
    awk '/^  -/ {
        names = $1
        # A type is in capitals and follows the name.
        type = match($0, /^  [^ ]+ [A-Z]+/) ? substr($0, index($0, $1) + length($1) + 1) : ""
        sub(/   *.*/, "", type) # the description
        sub(/\{.*/, "", names) # the suffix of a flag that turns something off
        count = split(names, name, ",")
        for (i = 1; i <= count; ++i) print name[i], type
    }'
}

# Prints the words in a type like "{a,b,c}" or "{a->1,b->2,c->3}".
_petacq_words() {
    [[ $1 =~ \{([^}]*)\} ]] && sed 's/->[^,]*//g; s/,/ /g' <<<"${BASH_REMATCH[1]}"
}

# Prints the type of the value of an option. Fails for an option without a value, and for any other word.
_petacq_type() { # OPTIONS WORD
    local name type
    while read -r name type; do
        if [[ $name == "$2" && -n $type ]]; then
            echo "$type"
            return 0
        fi
    done <<<"$1"
    return 1
}

_petacq_offer() { # CURRENT WORD...
    local current=$1
    shift
    mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current" | sort -u)
}

_petacq_files() { # CURRENT
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_petacq_runs() { # PROGRAM WORD...: uses the --socket on the line
    local program=$1 socket=() i
    shift
    for ((i = 1; i <= $#; ++i)); do
        [[ ${!i} == --socket ]] && ((i < $#)) && i=$((i + 1)) && socket=(--socket "${!i}")
    done
    timeout 2 "$program" "${socket[@]}" runs 2>/dev/null | awk 'NR > 1 { print $1 }'
}

_petacq() {
    COMPREPLY=()
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} words=() i
    # readline splits "--run=x" into three words.
    for ((i = 1; i < COMP_CWORD; ++i)); do
        [[ ${COMP_WORDS[i]} == = ]] || words+=("${COMP_WORDS[i]}")
    done
    [[ $current == = ]] && current=
    local previous=
    ((${#words[@]} > 0)) && previous=${words[-1]}

    local help options commands command='' path=() type name=${program##*/}
    help=$("$program" --help 2>/dev/null) || return
    options=$(_petacq_options <<<"$help")
    commands=$(_petacq_commands <<<"$help")
    for ((i = 0; i < ${#words[@]}; ++i)); do
        if _petacq_type "$options" "${words[i]}" >/dev/null; then
            i=$((i + 1)) # skips the value of an option
        elif [[ ${words[i]} == help && $i == 0 ]]; then
            continue # "petlm help cut" is "petlm cut --help"
        elif [[ ${words[i]} != -* && $'\n'$commands$'\n' == *$'\n'"${words[i]}"$'\n'* ]]; then
            command=${words[i]}
            path+=("$command")
            help=$("$program" "${path[@]}" --help 2>/dev/null) || return
            # petctl also accepts its own options after the command.
            [[ $name == petctl ]] || options=
            options+=$'\n'$(_petacq_options <<<"$help")
            type=$(_petacq_commands <<<"$help")
            [[ -n $type ]] || break
            commands=$type command='' # "petcal derive" has commands of its own
        fi
    done

    if type=$(_petacq_type "$options" "$previous"); then
        if [[ $name == petctl && $previous == --run ]]; then
            [[ $command == ledger || $command == stop ]] && _petacq_offer "$current" "$(_petacq_runs "$program" "${words[@]}")"
        elif [[ $type == *'{'* ]]; then
            _petacq_offer "$current" "$(_petacq_words "$type")"
        elif [[ $type == TEXT* ]]; then
            _petacq_files "$current"
        fi
    elif [[ $current == -* ]]; then
        _petacq_offer "$current" "$(awk '{ print $1 }' <<<"$options")"
    elif [[ -n $commands && -z $command ]]; then
        _petacq_offer "$current" "$commands"
    elif [[ $name == petctl && $command == acknowledge ]]; then
        _petacq_offer "$current" "$(_petacq_runs "$program" "${words[@]}")"
    else
        type=$(awk '/^Positionals:/ { found = 1; next } /^[^ ]/ { found = 0 } found && NF { print $2; exit }' <<<"$help")
        if [[ $type == *'{'* ]]; then
            _petacq_offer "$current" "$(_petacq_words "$type")"
        elif [[ -n $type ]]; then
            _petacq_files "$current"
        fi
    fi
}

complete -F _petacq petacqd petacqd-demo petctl petsim petlm petlm-mpi petcal petbench
