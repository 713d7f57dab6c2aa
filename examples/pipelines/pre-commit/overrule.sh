#!/usr/bin/env bash
# Checks the change from HEAD to the index: what "git commit" is about to commit. The
# arguments are folders and files of one cluster, as OVERRULE_PATHS of
# ../scripts/compare.sh, whose other variables can be set, too.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/../scripts" && pwd -P)
cd "$(git rev-parse --show-toplevel)"
work=$(mktemp -d "${TMPDIR:-/tmp}/overrule-commit.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/head" "$work/base"

# Git sets GIT_INDEX_FILE for a commit of some files only: then that is what is committed.
git checkout-index --all --prefix="$work/head/"
if git rev-parse --verify --quiet HEAD >/dev/null; then
	export GIT_INDEX_FILE=$work/index
	git read-tree HEAD
	git checkout-index --all --prefix="$work/base/"
fi
OVERRULE_PATHS=$(printf '%s\n' "$@")
export OVERRULE_PATHS
export OVERRULE_BASE_NAME=HEAD OVERRULE_HEAD_NAME="the index"
bash "$scripts/compare.sh" "$work/base" "$work/head"
