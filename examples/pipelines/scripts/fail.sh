# Functions of check.sh and compare.sh for what cannot be checked. See compare.sh for the
# variables. This file is sourced.
# shellcheck shell=bash

# annotate LEVEL TEXT writes an annotation of GitHub.
annotate() {
	local text=${2//'%'/%25}
	text=${text//$'\r'/%0D}
	echo "::$1 title=Overrule::${text//$'\n'/%0A}"
}

# show FILE prints messages of other programs. They may have lines that GitHub's runner
# would read as commands.
show() {
	if [ "${OVERRULE_FORMAT:-}" = github ]; then
		sed -e 's/##\[/## [/g' -e 's/^/| /' "$1" >&2
	else
		cat "$1" >&2
	fi
}

# fail TEXT [FILE] prints an error and the messages of another program, on GitHub as an
# annotation, and exits with 2. The only report is then a Markdown that says so.
fail() {
	local file=${2:-/dev/null} last
	last=$(tail -n 20 "$file")
	if [ -n "${OVERRULE_OUT:-}" ]; then report_failure "$1" "$last"; fi
	if [ "${OVERRULE_FORMAT:-}" != github ]; then
		echo "overrule: $1${last:+:}" >&2
		cat "$file" >&2
		exit 2
	fi
	# The runner prints annotations to the log, too.
	if [ "$(wc -l <"$file")" -gt 20 ]; then show "$file"; fi
	annotate error "$1${last:+:$'\n'$last}"
	exit 2
}

# report_failure TEXT MESSAGES replaces the reports of an earlier run. The indentation makes
# the messages a block of code, which shows each character as it is.
report_failure() {
	mkdir -p "$OVERRULE_OUT"
	rm -f "$OVERRULE_OUT"/overrule.{sarif,json,junit.xml,gitlab.json}
	{
		printf '<!-- overrule -->\n**Overrule: the change could not be checked**\n\n'
		if [ "${OVERRULE_REDACT_VALUES:-false}" = true ]; then
			echo 'The log of the job has the error.'
		else
			printf '%s\n' "$1" "$2" | tr -d '\r' | sed -e 's/^/    /'
		fi
	} >"$OVERRULE_OUT/overrule.md"
}
