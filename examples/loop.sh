#!/usr/bin/env bash
# A loop of one's own: iterations of an agent until the tasks are done, somebody is needed, or the breaker opens.
#   TASKS=tasks.md MOST=50 ./loop.sh codex exec --json "Do the next open task in tasks.md."
set -uo pipefail
tasks=${TASKS:-tasks.md}
for _ in $(seq "${MOST:-50}"); do
  guard run ${GUARD_OPTIONS:-} -- "$@"
  code=$?
  case $code in
    0) grep -q '\[ \]' "$tasks" || exit 0 ;;
    10 | 11 | 12 | 15 | 16) ;;                  # a stall, or not ready: the breaker counts what has to be counted
    13) sleep "${PAUSE:-900}" ;;                # limited
    14) echo "a person is needed" >&2; exit 14 ;;
    *) exit "$code" ;;                          # the breaker is open (20), Ctrl-C (130), or guard itself cannot go on
  esac
done
exit 12
