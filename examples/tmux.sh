#!/usr/bin/env bash
# An agent in a tmux session that outlives the terminal, known to the registries, with its verdict in a file.
#   ./tmux.sh NAME codex exec --json "Fix the failing test."
set -euo pipefail
name=$1
shift
report=${REPORT:-$PWD/$name.json}
# A word of the command that holds blanks or quotes reaches the agent as it is.
printf -v words '%q ' guard run ${GUARD_OPTIONS:-} --task "$name" --report "$report" -- "$@"
tmux ${TMUX_OPTIONS:-} new-session -d -s "$name" "$words; tmux ${TMUX_OPTIONS:-} wait-for -S ended-$name"
echo "watch it:     tmux attach -t $name"
echo "wait for it:  tmux wait-for ended-$name"
