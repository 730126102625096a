# Completion in fish for petacqd, petacqd-demo, petctl, petsim, petlm, petlm-mpi, petcal and petbench.
#
# The programs tell themselves what may come next: PROGRAM __complete WORD... LAST.

function __petacq_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    command -q $words[1]; or return
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        if test "$line" = :files
            # "--option=file" is one word.
            set -l option (string match -r '^--[^=]*=' -- $current)
            __fish_complete_path (string replace -r '^--[^=]*=' '' -- $current) | string replace -r -- '^' "$option"
        else
            echo $line
        end
    end
end

for program in petacqd petacqd-demo petctl petsim petlm petlm-mpi petcal petbench
    complete -c $program -f -a '(__petacq_complete)'
end
