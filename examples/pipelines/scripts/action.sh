#!/usr/bin/env bash
# The step of the GitHub action that checks the change. It always ends with 0, so that later
# steps can comment: the last step of the action fails the job with the output exit-code.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
export OVERRULE_FORMAT=github
OVERRULE_OUT=$(mktemp -d "$RUNNER_TEMP/overrule-reports.XXXXXX")
export OVERRULE_OUT

# The commits of the events, of which at most one is set.
export OVERRULE_BASE=${OVERRULE_BASE:-${PULL_REQUEST_BASE:-${MERGE_GROUP_BASE:-${PUSH_BEFORE:-}}}}
code=0
bash "$scripts/check.sh" || code=$?

# output NAME VALUE sets an output. Values have no line breaks, except for paths of the user.
output() {
	local end=end-$RANDOM$RANDOM
	printf '%s<<%s\n%s\n%s\n' "$1" "$end" "$2" "$end" >>"$GITHUB_OUTPUT"
}

# report FILE COPY prints the path of a report: that of a copy in the workspace, if the user
# wants one.
report() {
	if [ -z "$2" ]; then
		echo "$OVERRULE_OUT/$1"
		return
	fi
	cd "$GITHUB_WORKSPACE"
	mkdir -p "$(dirname "$2")"
	cp "$OVERRULE_OUT/$1" "$2"
	echo "$2"
}

output exit-code "$code"
if [ -f "$OVERRULE_OUT/overrule.md" ]; then output markdown "$OVERRULE_OUT/overrule.md"; fi
if [ "$code" -gt 1 ]; then
	output denied false
	exit 0
fi
denied=false
if grep -q '^ *"allowed": false' "$OVERRULE_OUT/overrule.json"; then denied=true; fi
output denied "$denied"
output sarif "$(report overrule.sarif "${SARIF_FILE:-}")"
output junit "$(report overrule.junit.xml "${JUNIT_FILE:-}")"
