"""``brood completion SHELL``: prints what makes a shell complete ``brood``'s words.

    eval "$(brood completion bash)"                                # in ~/.bashrc
    eval "$(brood completion zsh)"                                 # in ~/.zshrc, after compinit
    brood completion fish > ~/.config/fish/completions/brood.fish

Commands, settings' keys and values, benchmarks, files and folders are completed.
"""

import sys
from collections.abc import Sequence

_BASH = r"""_brood() {
    local line="${COMP_LINE:0:COMP_POINT}" current breaks
    local -a given
    read -r -a given <<< "$line"
    [[ "$line" == *' ' ]] && given+=('')
    mapfile -t COMPREPLY < <("${given[0]}" complete -- "${given[@]:1}" 2>/dev/null)
    # Bash replaces only what comes after the last of these characters.
    current="${given[-1]}" breaks="${COMP_WORDBREAKS//[^=:]/}"
    if [[ -n "$breaks" ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${current%"${current##*[$breaks]}"}"}")
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[=./] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}
complete -F _brood brood
"""
_ZSH = r"""_brood() {
    local -a found
    found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    [[ -n "${found[1]}" ]] || return 1
    compadd -Q -S '' -- "${(@M)found:#*[=./]}"
    compadd -Q -- "${(@)found:#*[=./]}"
}
compdef _brood brood
"""
_FISH = r"""complete -c brood -f -a \
    '(brood complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
"""
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def main(arguments: Sequence[str]) -> int:
    """Print a shell's script; return the exit code."""
    if {"--help", "-h"} & set(arguments):
        sys.stdout.write((__doc__ or "").replace("``", ""))
        return 0
    if len(arguments) != 1 or arguments[0] not in SCRIPTS:
        given = " ".join(arguments)[:50]
        sys.stderr.write(f"error: shell is {given!r}; it must be one of {', '.join(SCRIPTS)}\n")
        return 2
    sys.stdout.write(SCRIPTS[arguments[0]])
    return 0
