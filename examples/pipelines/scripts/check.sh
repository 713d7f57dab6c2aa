#!/usr/bin/env bash
# Checks the change from a commit to the files of the working folder, which is in a Git
# repository. The commit is checked out into a temporary work tree, and fetched first if a
# shallow clone does not have it. See compare.sh for the variables that configure it, and:
#
#   OVERRULE_BASE  the commit, branch or tag (default: the first parent of HEAD)
#   OVERRULE_NAME  the name of the cluster, for the comment (default: none)
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)

# shellcheck source=fail.sh
source "$scripts/fail.sh"

# commit REVISION prints the SHA of a revision, if the repository has it.
commit() { git rev-parse --verify --quiet "$1^{commit}"; }

# fetch REVISION fetches a revision, and prints its SHA. A complete clone stays complete.
fetch() {
	local depth=()
	if [ "$(git rev-parse --is-shallow-repository)" = true ]; then depth=(--depth=1); fi
	git fetch --quiet --no-tags ${depth[@]+"${depth[@]}"} origin "$1" >&2 && commit FETCH_HEAD
}

# parent prints the SHA of the first parent of HEAD, also if a shallow clone lacks it.
parent() { git cat-file commit HEAD | sed -n -e '/^$/q' -e '/^parent /{s///p;q;}'; }

case ${OVERRULE_NAME:-} in
*[!A-Za-z0-9._/\ -]* | *--*)
	# No report, so that no comment has the name.
	OVERRULE_OUT='' fail "invalid name \"$OVERRULE_NAME\": must be ASCII letters, digits, spaces and the characters . _ / -, without --"
	;;
esac
git rev-parse --verify --quiet HEAD >/dev/null || fail "no commit found: run this in a Git repository; see the error of git above"
revision=${OVERRULE_BASE:-}
case $revision in
-*) fail "invalid base \"$revision\": must be a commit, a branch or a tag" ;;
"" | 0000000000000000000000000000000000000000) revision=$(parent) ;; # a new branch has no commit before
esac

work=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/overrule-base.XXXXXX")
remove() {
	git worktree remove --force "$work/tree" 2>/dev/null || true
	rm -rf "$work"
}
trap remove EXIT

prefix=$(git rev-parse --show-prefix)
if [ -n "$revision" ]; then
	sha=$(commit "$revision" || commit "refs/remotes/origin/$revision" || fetch "$revision") ||
		fail "cannot find the base \"$revision\"; fetch it before this step, for example with a complete clone (GitHub: fetch-depth: 0; GitLab: GIT_DEPTH: 0)"
	GIT_LFS_SKIP_SMUDGE=1 git worktree add --quiet --detach "$work/tree" "$sha" ||
		fail "cannot check out the base \"$revision\"; see the error of git above"
	OVERRULE_BASE_NAME="base ${sha:0:12}"
else
	echo "overrule: HEAD has no parent: the base is empty" >&2
	OVERRULE_BASE_NAME="the empty base"
fi
mkdir -p "$work/tree/$prefix" # the working folder may be new
export OVERRULE_BASE_NAME
export OVERRULE_HEAD_NAME=${OVERRULE_HEAD_NAME:-"head $(git rev-parse --short=12 HEAD)"}
bash "$scripts/compare.sh" "$work/tree/$prefix" .
