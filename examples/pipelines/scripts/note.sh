#!/usr/bin/env bash
# Writes the Markdown of a report as a note on a merge request of GitLab, or updates the note
# of an earlier run. It needs curl, jq and OVERRULE_TOKEN: a project access token with the
# scope api. An error is a warning only.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

warn() {
	echo "overrule: no note was written: $1" >&2
	exit 0
}

if [ -z "${CI_MERGE_REQUEST_IID:-}" ] || [ ! -f "$OVERRULE_OUT/overrule.md" ]; then exit 0; fi
[ -n "${OVERRULE_TOKEN:-}" ] || warn "set the variable OVERRULE_TOKEN to a project access token with the scope api"
for program in curl jq; do
	command -v "$program" >/dev/null || warn "$program not found; install it"
done

body=$(mktemp "${TMPDIR:-/tmp}/overrule-note.XXXXXX")
trap 'rm -f "$body"' EXIT
bash "$scripts/body.sh" "$OVERRULE_OUT/overrule.md" "${OVERRULE_NAME:-}" 1000000 >"$body" || warn "its text is invalid"
START=$(head -n 2 "$body")
export START
notes=$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests/$CI_MERGE_REQUEST_IID/notes

# call ARGUMENT... calls the API. The token is not an argument: other users can read these.
call() { curl --silent --show-error --fail --header @<(printf 'PRIVATE-TOKEN: %s\n' "$OVERRULE_TOKEN") "$@"; }

# earlier_note prints the ID of the note of an earlier run.
earlier_note() {
	local page=1 notes_of_page id
	while [ "$page" -le 20 ]; do
		notes_of_page=$(call "$notes?per_page=100&page=$page") || return
		# shellcheck disable=SC2016 # $ENV is of jq
		id=$(jq -r '[.[] | select(.system | not) | select(.body | gsub("\r"; "") | startswith($ENV.START)) | .id] | first // empty' <<<"$notes_of_page") || return
		if [ -n "$id" ] || [ "$(jq length <<<"$notes_of_page")" -lt 100 ]; then break; fi
		page=$((page + 1))
	done
	echo "$id"
}

id=$(earlier_note) || warn "cannot list the notes, see the error above; check that OVERRULE_TOKEN has the scope api"
if [ -n "$id" ]; then
	call --output /dev/null --request PUT --data-urlencode "body@$body" "$notes/$id" || warn "cannot update note $id, see the error above"
	echo "note $id updated"
elif grep -qE '^(\||<details>)' "$body"; then
	call --output /dev/null --request POST --data-urlencode "body@$body" "$notes" || warn "cannot create it, see the error above"
	echo "note created"
else
	echo "no note: the change has no findings and no effect, or could not be checked"
fi
