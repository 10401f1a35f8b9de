"""Shell completion: `eval "$(_TFGUARD_COMPLETE=bash_source tfguard)"`, and the same for zsh and fish.

Whatever fails while a shell waits completes nothing, and says nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from tfguard.cli.own import cli
from tfguard.cli.suggestions import suggestions
from tfguard.errors import UsageError

VARIABLE = "_TFGUARD_COMPLETE"

_BASH = """\
%(complete_func)s() {
    local kind value program=%(prog_name)s
    [[ $1 == */* ]] && program=$1
    COMPREPLY=()
    while IFS=$'\\t' read -r kind value; do
        [[ $kind == file ]] && compopt -o filenames 2>/dev/null
        [[ $value == *[/=] ]] && compopt -o nospace 2>/dev/null
        COMPREPLY+=("$value")
    done < <(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
        %(complete_var)s=bash_complete "$program" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s 2>/dev/null || complete -F %(complete_func)s %(prog_name)s
"""
_ZSH = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local line value shown program=%(prog_name)s
    local -a values values_shown open open_shown
    [[ $words[1] == */* ]] && program=$words[1]
    for line in "${(@f)$(env COMP_WORDS="${(j: :)words[1,CURRENT-1]} $PREFIX" \\
        %(complete_var)s=zsh_complete $program 2>/dev/null)}"; do
        value=${line%%%%$'\\t'*}
        [[ -z $value ]] && continue
        shown=$value
        [[ -n ${line#*$'\\t'} ]] && shown="$value  -- ${line#*$'\\t'}"
        if [[ $value == *[/=] ]]; then open+=("$value"); open_shown+=("$shown")
        else values+=("$value"); values_shown+=("$shown"); fi
    done
    (( $#values )) && compadd -U -V %(prog_name)s -l -d values_shown -a values
    (( $#open )) && compadd -U -S '' -V %(prog_name)s -l -d open_shown -a open
    (( $#values + $#open ))
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""
_FISH = """\
function %(complete_func)s
    env COMP_WORDS=(commandline -cp | string collect) %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null
end
complete --no-files --keep-order --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


def answer(program: str) -> int:
    """Print a shell's script, or what a shell has asked for. `program` is the name that tfguard was called by."""
    shell, _, wanted = os.environ[VARIABLE].partition("_")
    kind = _SHELLS.get(shell)
    if kind is None or wanted not in ("source", "complete"):
        raise UsageError(
            f"{VARIABLE} is '{os.environ[VARIABLE]}'", f"set it to {', '.join(f'{name}_source' for name in _SHELLS)}"
        )
    shell_complete = kind(cli, {}, program, VARIABLE)
    if wanted == "source":
        print(shell_complete.source())
        return 0
    try:
        print(shell_complete.complete(), end="")
    except Exception:  # noqa: BLE001 (a shell that waits for a key must get no traceback, whatever is broken)
        return 0
    return 0


class _Complete(ShellComplete):
    """What the three shells share: the line up to the cursor comes in COMP_WORDS as it was typed."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one at the cursor, without the program's name, and that word as far as it was typed."""
        *words, incomplete = split_arg_string(os.environ["COMP_WORDS"] + "_")
        while words and "=" in words[0]:  # variables that are set for this one call
            del words[0]
        return words[1:], incomplete.removesuffix("_")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The words that may stand at the cursor."""
        return [item for item in suggestions(args, incomplete) if str(item.value).startswith(incomplete)]

    def complete(self) -> str:
        """One line for each."""
        words, incomplete = self.get_completion_args()
        found = {item.value: item for item in self.get_completions(words, incomplete)}
        return "".join(f"{self.format_completion(item)}\n" for item in found.values())

    def format_completion(self, item: CompletionItem) -> str:
        """The word, and what it means."""
        return f"{item.value}\t{item.help or ''}"


class _Bash(_Complete):
    name = "bash"
    source_template = _BASH

    def format_completion(self, item: CompletionItem) -> str:
        """Only what comes after the last character that ends a word for bash, since bash keeps what stands before.

        Bash itself puts the slash behind a folder that it sees, and knows what to do with an open quote then.
        """
        breaks = os.environ.get("COMP_WORDBREAKS", "")
        _, incomplete = self.get_completion_args()
        kept = max((incomplete.rfind(mark) + 1 for mark in "=:" if mark in breaks), default=0)
        word = str(item.value)[kept:]
        seen = item.type == "file" and Path(word).expanduser().is_dir()
        return f"{item.type}\t{word.rstrip('/') if seen else word}"


class _Zsh(_Complete):
    name = "zsh"
    source_template = _ZSH


class _Fish(_Complete):
    name = "fish"
    source_template = _FISH


_SHELLS = {kind.name: kind for kind in (_Bash, _Zsh, _Fish)}
