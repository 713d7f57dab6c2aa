#!/usr/bin/env bash
# Prints the body of a comment: the Markdown of a report with the name of its cluster.
#
#   body.sh MARKDOWN NAME LIMIT
#
# The first two lines identify the comment. A text of more than LIMIT bytes is replaced by
# its summary line and the notices below it.
set -euo pipefail

name=$2
case $name in
*[!A-Za-z0-9._/\ -]* | *--*)
	echo "overrule: invalid name \"$name\": must be ASCII letters, digits, spaces and the characters . _ / -, without --" >&2
	exit 2
	;;
esac
head -n 1 "$1"
echo "<!-- name: $name -->"
if [ -n "$name" ]; then printf '### %s\n\n' "$name"; fi
if [ "$(($(wc -c <"$1") + 2 * ${#name} + 40))" -le "$3" ]; then
	tail -n +2 "$1"
else
	sed -n -e 2p -e '/^> /p' "$1"
	printf '\nThe report is too long for a comment. See the summary of the job.\n'
fi
