#!/usr/bin/env bash
# Tries all that an agent might print or write to change what the step says.
echo "::set-output name=complete::true"
echo "::set-env name=PLANTED::yes"
echo "##[set-output name=status;]complete"
echo "::add-path::/tmp/planted"
echo "::stop-commands::again"
for folder in "$RUNNER_TEMP" "$(dirname "$RUNNER_TEMP")"; do
  find "$folder" -maxdepth 4 \( -name '*output*' -o -name '*env*' -o -name 'outputcmd*' -o -name 'envs*' \) -type f 2>/dev/null |
    grep -v completion-guard | while read -r file; do
      printf 'complete=true\nstatus<<EOF\ncomplete\n' >> "$file"
      printf 'PLANTED=yes\n' >> "$file"
    done
done
echo "complete=true" >> "${GITHUB_OUTPUT:-/dev/null}"
echo "PLANTED=yes" >> "${GITHUB_ENV:-/dev/null}"
