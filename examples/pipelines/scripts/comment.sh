#!/usr/bin/env bash
# Writes the Markdown of a report as a comment on a pull request of GitHub, or updates the
# comment of an earlier run. It needs gh and GH_TOKEN. An error is a warning only: tokens of
# pull requests from forks are not allowed to comment.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# warn TEXT writes an annotation, with what gh printed.
warn() {
	local text="no comment was written: $1"
	if [ -s "$work/stderr" ]; then text+=$'\n'$(cat "$work/stderr"); fi
	if grep -q 'HTTP 40[34]' "$work/stderr"; then
		text+=$'\nThe token needs the permission pull-requests: write, which pull requests from forks do not have.'
	fi
	text=${text//'%'/%25}
	text=${text//$'\r'/%0D}
	echo "::warning title=Overrule::${text//$'\n'/%0A}"
	exit 0
}

# call ARGUMENT... calls the API.
call() { gh api "$@" 2>"$work/stderr"; }

if [ "${OVERRULE_COMMENT:-true}" != true ] || [ -z "${PULL_REQUEST:-}" ] || [ -z "${MARKDOWN:-}" ]; then exit 0; fi
work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/overrule-comment.XXXXXX")
trap 'rm -rf "$work"' EXIT
touch "$work/stderr"
command -v gh >/dev/null || warn "gh not found; install it, or set comment: false"

body=$work/body
bash "$scripts/body.sh" "$MARKDOWN" "${OVERRULE_NAME:-}" 65536 >"$body" 2>"$work/stderr" || warn "its text is invalid"
START=$(head -n 2 "$body")
# The token of a job or of an app has no user: then its comments are those of a bot.
AUTHOR=$(call user --jq .login) || AUTHOR=
export START AUTHOR

# A comment of another user is left alone, even if it starts with the same lines.
# shellcheck disable=SC2016 # $ENV is of jq
filter='.[] | select(if $ENV.AUTHOR == "" then .user.type == "Bot" else .user.login == $ENV.AUTHOR end) |
	select(.body | gsub("\r"; "") | startswith($ENV.START)) | .id'
repository=repos/$GITHUB_REPOSITORY
ids=$(call --paginate "$repository/issues/$PULL_REQUEST/comments?per_page=100" --jq "$filter") || warn "cannot list the comments"
id=${ids%%$'\n'*}
if [ -n "$id" ]; then
	call --silent --method PATCH "$repository/issues/comments/$id" --field "body=@$body" || warn "cannot update comment $id"
	echo "comment $id updated"
elif grep -qE '^(\||<details>)' "$body"; then
	call --silent --method POST "$repository/issues/$PULL_REQUEST/comments" --field "body=@$body" || warn "cannot create it"
	echo "comment created"
else
	echo "no comment: the change has no findings and no effect, or could not be checked"
fi
