#!/usr/bin/env bash
# Installs kubectl-overrule into a folder, if it is not on the PATH:
#
#   install.sh FOLDER
#
# With OVERRULE_VERSION it installs that version of the module, else it builds the sources
# that this script belongs to, whose version OVERRULE_REF is shown in reports. On GitHub, the folder is added to the PATH of later steps.
set -euo pipefail

fail() {
	echo "overrule: $1" >&2
	if [ -n "${GITHUB_PATH:-}" ]; then echo "::error title=Overrule::$1"; fi
	exit 2
}

if path=$(command -v kubectl-overrule); then
	echo "using $path"
	exit 0
fi
command -v go >/dev/null || fail "kubectl-overrule and go not found; install one of them before this step"
mkdir -p "$1"
folder=$(cd "$1" && pwd -P)
if [ -n "${OVERRULE_VERSION:-}" ]; then
	GOBIN=$folder go install "overrule.dev/overrule/cmd/kubectl-overrule@$OVERRULE_VERSION" ||
		fail "cannot install version $OVERRULE_VERSION; see the error of go above"
else
	cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
	[ -d cmd/kubectl-overrule ] || fail "no sources found: set OVERRULE_VERSION, or install kubectl-overrule before this step"
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X overrule.dev/overrule/internal/build.version=${OVERRULE_REF:-dev}" -o "$folder/" ./cmd/kubectl-overrule || fail "cannot build kubectl-overrule; see the error of go above"
fi
if [ -n "${GITHUB_PATH:-}" ]; then echo "$folder" >>"$GITHUB_PATH"; fi
echo "installed $folder/kubectl-overrule"
