# Completion in bash for petacqd, petctl, petsim, petlm, petcal and petbench.
#
# What can stand where is read from --help, so that it is always what the installed program takes. After
# `petctl ledger --run` the ids of the runs on disk are asked of the daemon.

# Commands, one a line, in a help text on standard input.
_petacq_commands() {
    awk '/^Subcommands:/ { found = 1; next } /^[^ ]/ || /^$/ { found = 0 } found && /^  [^ ]/ { print $1 }'
}

# Options, one a line with the type of its value behind it ("" for none), in a help text.
_petacq_options() {
    awk '/^  -/ {
        names = $1
        # A type is in capitals and stands right behind the name.
        type = match($0, /^  [^ ]+ [A-Z]+/) ? substr($0, index($0, $1) + length($1) + 1) : ""
        sub(/   *.*/, "", type) # the description
        sub(/\{.*/, "", names) # what a flag that turns off is followed by
        count = split(names, name, ",")
        for (i = 1; i <= count; ++i) print name[i], type
    }'
}

# The words of "{a,b,c}", or of "{a->1,b->2,c->3}", in a type.
_petacq_words() {
    [[ $1 =~ \{([^}]*)\} ]] && sed 's/->[^,]*//g; s/,/ /g' <<<"${BASH_REMATCH[1]}"
}

# Type of the value of an option; fails for an option without a value, and for anything else.
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

_petacq_runs() { # PROGRAM WORD...; with the socket that stands on the line
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
    # "--run=x" comes as three words.
    for ((i = 1; i < COMP_CWORD; ++i)); do
        [[ ${COMP_WORDS[i]} == = ]] || words+=("${COMP_WORDS[i]}")
    done
    [[ $current == = ]] && current=
    local previous=
    ((${#words[@]} > 0)) && previous=${words[-1]}

    local help options commands command='' type name=${program##*/}
    help=$("$program" --help 2>/dev/null) || return
    options=$(_petacq_options <<<"$help")
    commands=$(_petacq_commands <<<"$help")
    for ((i = 0; i < ${#words[@]}; ++i)); do
        if _petacq_type "$options" "${words[i]}" >/dev/null; then
            i=$((i + 1)) # its value is no command
        elif [[ ${words[i]} != -* && $'\n'$commands$'\n' == *$'\n'"${words[i]}"$'\n'* ]]; then
            command=${words[i]}
            help=$("$program" "$command" --help 2>/dev/null) || return
            # petctl takes its own options behind the command, too.
            [[ $name == petctl ]] || options=
            options+=$'\n'$(_petacq_options <<<"$help")
            break
        fi
    done

    if type=$(_petacq_type "$options" "$previous"); then
        if [[ $name == petctl && $previous == --run ]]; then
            [[ $command == ledger ]] && _petacq_offer "$current" "$(_petacq_runs "$program" "${words[@]}")"
        elif [[ $type == *'{'* ]]; then
            _petacq_offer "$current" "$(_petacq_words "$type")"
        elif [[ $type == TEXT* ]]; then
            _petacq_files "$current"
        fi
    elif [[ $current == -* ]]; then
        _petacq_offer "$current" "$(awk '{ print $1 }' <<<"$options")"
    elif [[ -n $commands && -z $command ]]; then
        _petacq_offer "$current" "$commands"
    else
        type=$(awk '/^Positionals:/ { found = 1; next } /^[^ ]/ { found = 0 } found && NF { print $2; exit }' <<<"$help")
        if [[ $type == *'{'* ]]; then
            _petacq_offer "$current" "$(_petacq_words "$type")"
        elif [[ -n $type ]]; then
            _petacq_files "$current"
        fi
    fi
}

complete -F _petacq petacqd petctl petsim petlm petcal petbench
