package report

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// docs is the address of the documentation.
const docs = "https://overrule.dev/docs/"

// reason is a reason code with its section of docs/reasons.md.
type reason struct {
	code api.ReasonCode
	// level is the severity of its default action.
	level Severity
	// subject is what it is about, from the table of reasons.
	subject string
	// summary is the first paragraph of its section.
	summary string
	// text and markdown are the section: the cause, examples, and what to do.
	text, markdown string
}

// helpURI returns the address of the section of a code in docs/reasons.md.
func helpURI(code api.ReasonCode) string { return docs + "reasons#" + strings.ToLower(string(code)) }

// reasonIndex returns the index of a code in reasons, -1 if it is not one of them.
func reasonIndex(code api.ReasonCode) int {
	return slices.IndexFunc(reasons, func(r reason) bool { return r.code == code })
}
