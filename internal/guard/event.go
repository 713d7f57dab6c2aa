package guard

import (
	"strings"
	"unicode/utf8"
)

// noteLength is the most bytes that the note of a Kubernetes Event may have.
const noteLength = 1024

// EventNote cuts a message to what a Kubernetes Event takes.
func EventNote(text string) string {
	const more = " …"
	text = strings.ReplaceAll(text, "\n", "; ")
	if len(text) <= noteLength {
		return text
	}
	end := noteLength - len(more)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + more
}
