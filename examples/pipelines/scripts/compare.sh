#!/usr/bin/env bash
# Renders the manifests of two trees and checks the change from the first to the second:
#
#   compare.sh BASE_TREE HEAD_TREE
#
# It writes reports to OVERRULE_OUT, and exits as "kubectl overrule check" does: 0 for
# allowed, 1 for denied, 2 if something cannot be read or rendered. It needs bash 3.2 or
# later. These variables configure it:
#
#   OVERRULE_PATHS           folders and files, one in each line: manifests, kustomizations
#                            and Helm charts, of one cluster. White space around a path is
#                            removed
#   OVERRULE_RENDER          a command that writes manifests to the folder $OUT, in place of
#                            OVERRULE_PATHS. It runs in each tree
#   OVERRULE_KUSTOMIZE_ARGS  arguments of "kustomize build", one in each line
#   OVERRULE_HELM_ARGS       arguments of "helm template", one in each line
#   OVERRULE_ARGS            arguments of "kubectl overrule check", one in each line
#   OVERRULE_FORMAT          what is printed: table, tree, github, ... (default: table)
#   OVERRULE_FAIL_ON, OVERRULE_VALIDATE, OVERRULE_REDACT_VALUES
#                            as the flags --fail-on, --validate and --redact-values
#   OVERRULE_OUT             folder for the reports overrule.md, .sarif, .json,
#                            .junit.xml and .gitlab.json (default: none is written). If
#                            the change cannot be checked, overrule.md says why, and there
#                            is no other. It must not be in a folder of OVERRULE_PATHS, but
#                            files and folders whose name starts with a dot are not read
#   OVERRULE_BASE_NAME, OVERRULE_HEAD_NAME
#                            names of the revisions for messages
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
# shellcheck source=fail.sh
source "$scripts/fail.sh"

# read_lines TEXT sets the array lines to the lines of a text that are not empty.
read_lines() {
	local line
	lines=()
	while IFS= read -r line || [ -n "$line" ]; do
		line=${line%$'\r'}
		if [ -n "${line//[[:space:]]/}" ]; then lines+=("$line"); fi
	done <<<"$1"
}

# relative FROM TO prints the path of a folder relative to another one. Both are absolute.
relative() {
	local from=$1 up=
	while [ "$from" != / ] && [ "${2#"$from"/}" = "$2" ]; do
		from=$(dirname "$from")
		up=../$up
	done
	echo "$up${2#"${from%/}"/}"
}

# quoted prints a path as a string of YAML.
quoted() { printf "'%s'" "${1//\'/\'\'}"; }

# kustomize_build SOURCE FOLDER renders a kustomization into FOLDER/rendered.yaml. Each
# object has an annotation with its file, relative to FOLDER, for positions in reports.
kustomize_build() {
	local command=(kubectl kustomize) lines
	if command -v kustomize >/dev/null; then
		command=(kustomize build)
	elif ! command -v kubectl >/dev/null; then
		fail "kustomize and kubectl not found; install one of them to render \"$path\""
	fi
	printf 'resources: [%s]\nbuildMetadata: [originAnnotations]\n' "$(quoted "$(relative "$2" "$1")")" >"$2/kustomization.yaml"
	read_lines "${OVERRULE_KUSTOMIZE_ARGS:-}"
	"${command[@]}" "$2" ${lines[@]+"${lines[@]}"} >"$2/rendered.yaml" 2>"$work/stderr" || return
	rm "$2/kustomization.yaml"
}

# helm_template SOURCE FOLDER renders a chart into FOLDER/rendered.yaml. The comment that
# Helm writes before each object gets the path of the template relative to FOLDER.
helm_template() {
	local lines
	command -v helm >/dev/null || fail "helm not found; install it to render \"$path\""
	read_lines "${OVERRULE_HELM_ARGS:-}"
	(cd "$tree" && helm template "$(basename "$1")" "$1" ${lines[@]+"${lines[@]}"}) >"$2/helm.txt" 2>"$work/stderr" || return
	CHART=$(relative "$2" "$1") awk '
		sub(/^# Source: [^\/]*\//, "") { $0 = "# Source: " ENVIRON["CHART"] "/" $0 }
		{ print }' "$2/helm.txt" >"$2/rendered.yaml"
	rm "$2/helm.txt"
}

# is_kustomization FOLDER reports whether a folder is to be rendered with kustomize.
is_kustomization() {
	[ -f "$1/kustomization.yaml" ] || [ -f "$1/kustomization.yml" ] || [ -f "$1/Kustomization" ]
}

# read_paths sets the array paths to OVERRULE_PATHS, without white space around each.
read_paths() {
	local path
	paths=()
	read_lines "${OVERRULE_PATHS:-}"
	for path in ${lines[@]+"${lines[@]}"}; do
		path=${path#"${path%%[![:space:]]*}"}
		paths+=("${path%"${path##*[![:space:]]}"}")
	done
}

# check_plain fails for a folder of manifests with something that is to be rendered: without
# that, patches and templates would be read as objects.
check_plain() {
	local found
	found=$(cd "$1" && find . -mindepth 1 -name '.*' -prune -o -type f \( -name kustomization.yaml -o -name kustomization.yml -o -name Kustomization -o -name Chart.yaml \) -print | sort | head -n 1)
	[ -z "$found" ] || fail "\"$path\" of $revision has ${found#./}; specify the folders below \"$path\", one in each line, so that they are rendered"
}

# fail_to_render WHAT fails with the error of the program that renders.
fail_to_render() { fail "cannot render $1 of $revision" "$work/stderr"; }

# render_path appends what the plugin is to read for a path to the array manifests.
render_path() {
	local source=$tree/$path folder=$out/$path
	[ -e "$source" ] || return 0
	if [ ! -d "$source" ]; then
		manifests+=("$source")
		return
	fi
	source=$(cd "$source" && pwd -P)
	if is_kustomization "$source"; then
		mkdir -p "$folder"
		kustomize_build "$source" "$folder" || fail_to_render "the kustomization \"$path\""
	elif [ -f "$source/Chart.yaml" ]; then
		mkdir -p "$folder"
		helm_template "$source" "$folder" || fail_to_render "the Helm chart \"$path\""
	else
		check_plain "$source"
		manifests+=("$source")
		return
	fi
	show "$work/stderr" # warnings
	manifests+=("$folder/rendered.yaml")
}

# render TREE OUT REVISION sets the array manifests to what the plugin is to read.
render() {
	local tree=$1 out=$2 revision=$3 path
	manifests=()
	mkdir -p "$out"
	if [ -n "${OVERRULE_RENDER:-}" ]; then
		(cd "$tree" && OUT=$out bash -euo pipefail -c "$OVERRULE_RENDER") >"$work/stderr" 2>&1 ||
			fail_to_render "manifests with the render command"
		show "$work/stderr"
		manifests=("$out")
		return
	fi
	for path in "${paths[@]}"; do render_path; done
	if [ ${#manifests[@]} -eq 0 ]; then manifests=("$out"); fi # an empty folder
}

# check_paths fails for paths that are invalid, or in neither tree. It sets the array
# notices to what is to be said about those in one tree only.
check_paths() {
	local path
	[ ${#paths[@]} -gt 0 ] || fail "no paths: specify the folders with manifests, or a command that renders them"
	for path in "${paths[@]}"; do
		case "/$path/" in
		//* | */../*) fail "invalid path \"$path\": must be relative to the repository, without .." ;;
		esac
		if [ -e "$head/$path" ]; then
			[ -e "$base/$path" ] || notices+=("\"$path\" is not in $base_name: its objects are new, unless another path has them in the base. If it was moved, also specify its earlier path")
		elif [ -e "$base/$path" ]; then
			notices+=("\"$path\" is not in $head_name: its objects are deleted, unless another path has them. If it was moved, also specify its new path")
		else
			fail "\"$path\" does not exist, neither in $base_name nor in $head_name; check the paths"
		fi
	done
}

# notify prints the notices, on GitHub as annotations.
notify() {
	local notice
	for notice in ${notices[@]+"${notices[@]}"}; do
		if [ "${OVERRULE_FORMAT:-}" = github ]; then
			annotate warning "$notice"
		else
			echo "overrule: $notice" >&2
		fi
	done
}

# add_notices adds the notices to the Markdown, after its summary line. Paths cannot add
# markup, nor mention users.
add_notices() {
	local report=${OVERRULE_OUT:-}/overrule.md
	if [ ${#notices[@]} -eq 0 ] || [ ! -f "$report" ]; then return; fi
	{
		head -n 2 "$report"
		echo
		printf '%s.\n' "${notices[@]}" | sed -e 's/&/\&amp;/g' -e 's/</\&lt;/g' -e 's/[]\\`*_{}[()#!|~@]/\\&/g' -e 's/^"\(.*\)" is not in/> <code>\1<\/code> is not in/'
		tail -n +3 "$report"
	} >"$work/markdown"
	cat "$work/markdown" >"$report"
}

# arguments sets the array flags to the flags of the plugin.
arguments() {
	local manifest report lines
	flags=(--output="${OVERRULE_FORMAT:-table}" --fail-on="${OVERRULE_FAIL_ON:-deny}")
	for manifest in "${from[@]}"; do flags+=(--from="$manifest"); done
	for manifest in "${manifests[@]}"; do flags+=(--to="$manifest"); done
	if [ -n "${OVERRULE_VALIDATE:-}" ]; then flags+=(--validate="$OVERRULE_VALIDATE"); fi
	if [ "${OVERRULE_REDACT_VALUES:-false}" = true ]; then flags+=(--redact-values); fi
	if [ -n "${OVERRULE_OUT:-}" ]; then
		mkdir -p "$OVERRULE_OUT"
		for report in markdown=md sarif=sarif json=json junit=junit.xml gitlab=gitlab.json; do
			flags+=(--output-file="${report%%=*}=$OVERRULE_OUT/overrule.${report#*=}")
		done
	fi
	read_lines "${OVERRULE_ARGS:-}"
	flags+=(${lines[@]+"${lines[@]}"})
}

# check runs the plugin.
check() {
	local code=0
	kubectl-overrule check "${flags[@]}" 2>"$work/stderr" || code=$?
	# That an empty folder of this script has no manifests is no news.
	grep -v "^warning: --[a-z]*: $work/[a-z]*: " "$work/stderr" >"$work/messages" || true
	if grep -q 'duplicate object' "$work/messages"; then
		echo "if the paths are of different clusters, check each cluster on its own" >>"$work/messages"
	fi
	if [ "$code" -gt 1 ]; then fail "the change could not be checked" "$work/messages"; fi
	show "$work/messages"
	add_notices
	exit "$code"
}

base=$(cd "$1" && pwd -P)
head=$(cd "$2" && pwd -P)
base_name=${OVERRULE_BASE_NAME:-the base}
head_name=${OVERRULE_HEAD_NAME:-the change}
command -v kubectl-overrule >/dev/null || fail "kubectl-overrule not found; install it, or add its folder to PATH"
work=$(mktemp -d "${RUNNER_TEMP:-${TMPDIR:-/tmp}}/overrule.XXXXXX")
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd -P)

read_paths
notices=()
[ -n "${OVERRULE_RENDER:-}" ] || check_paths
notify
render "$base" "$work/base" "$base_name"
from=("${manifests[@]}")
render "$head" "$work/head" "$head_name"
arguments
check
