#!/bin/sh
# Run an agent in a container that sees this repository and nothing else of your files. Guard stays outside:
#   guard loop --no-probe --prompt-file prompt.md -- examples/container/agent.sh claude -p --output-format stream-json --verbose \
#       --dangerously-skip-permissions
set -eu
root=$(git rev-parse --show-toplevel)
# A linked work tree has its git directory elsewhere: the agent needs that folder to commit.
common=$(cd "$(git rev-parse --git-common-dir)" && pwd -P)
case "$common/" in
"$root"/*) elsewhere= ;;
*) elsewhere="$common:$common" ;;
esac
# The paths are the same inside and outside, so that what git writes down is true in both places.
exec docker run --rm --init --interactive \
    --user "$(id -u):$(id -g)" --cap-drop ALL --security-opt no-new-privileges --pids-limit 1024 \
    --env ANTHROPIC_API_KEY --env GIT_AUTHOR_NAME --env GIT_AUTHOR_EMAIL --env GIT_COMMITTER_NAME --env GIT_COMMITTER_EMAIL \
    --volume "$root:$root" ${elsewhere:+--volume "$elsewhere"} --workdir "$root" \
    "${AGENT_IMAGE:-guard-agent}" "$@"
