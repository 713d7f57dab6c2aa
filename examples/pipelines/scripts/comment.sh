#!/usr/bin/env bash
# Writes the Markdown of a report as a comment on a pull request of GitHub, or updates the
# comment of an earlier run. It needs gh and GH_TOKEN. An error is a warning only: tokens of
# pull requests from forks are not allowed to comment.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

warn() {
	local text=${1//'%'/%25}
	echo "::warning title=Overrule::${text//$'\n'/%0A}"
	exit 0
}

if [ "${OVERRULE_COMMENT:-true}" != true ] || [ -z "${PULL_REQUEST:-}" ] || [ -z "${MARKDOWN:-}" ]; then exit 0; fi
command -v gh >/dev/null || warn "no comment was written: gh not found; install it, or set comment: false"

body=$(mktemp "${RUNNER_TEMP:-/tmp}/overrule-comment.XXXXXX")
trap 'rm -f "$body"' EXIT
bash "$scripts/body.sh" "$MARKDOWN" "${OVERRULE_NAME:-}" 65536 >"$body" || warn "no comment was written: invalid name"
START=$(head -n 2 "$body")
export START

denied="no comment was written: the token needs the permission pull-requests: write, which pull requests from forks do not have. The report is in the summary of the job."
# A comment of another user is left alone, even if it starts with the same lines.
# shellcheck disable=SC2016 # $ENV is of jq
filter='.[] | select(.user.type == "Bot" and (.body | gsub("\r"; "") | startswith($ENV.START))) | .id'
ids=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments?per_page=100" --jq "$filter") || warn "$denied"
id=${ids%%$'\n'*}
if [ -n "$id" ]; then
	gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" --field "body=@$body" || warn "$denied"
	echo "comment $id updated"
elif grep -qE '^(\||<details>)' "$body"; then
	gh api --silent --method POST "repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments" --field "body=@$body" || warn "$denied"
	echo "comment created"
else
	echo "no comment: the change has no findings and no effect"
fi
