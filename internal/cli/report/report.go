package report

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// Report is what a command found.
type Report struct {
	// Command is check, diff or violations.
	Command string
	// Version is the version of the plugin.
	Version string
	// Notes are what a reader has to know about the result as a whole, such as that one of
	// the revisions is empty.
	Notes []string
	// WarningsFail is set if warnings make the command fail.
	WarningsFail bool
	// Remarks are what a reader may want to know about the result as a whole. They come
	// last.
	Remarks []string
	// Objects are the objects that were evaluated, in the order of their evaluation.
	Objects []Object
	// Findings are shown by severity, the most severe first, then as the command found
	// them.
	Findings []Finding
	// Changes are the differences of effective policies, sorted by policy kind and path.
	// Each path of a policy kind is in it once, and once more for each path whose requests
	// it took over.
	Changes []Change
	// Diagram is a Mermaid flowchart of the changed paths, "" for none.
	Diagram string
}

// Change is the change of the effective policy of a path. Its object is the last one that
// changed it.
type Change struct {
	api.Change
	// Causes are the objects that changed it, in the order of their writes.
	Causes []Object
	// Namespace is that of the route of the path, or without one, of what it ends at.
	Namespace string
	// Was is the path that served the requests before the change, nil for the same or none.
	Was []api.PathElement
	// New is set if the path does not exist before the change, and Removed if it does not
	// exist after it.
	New, Removed bool
}

// Object is an object that was evaluated.
type Object struct {
	Ref api.Ref
	// Operation is CREATE, UPDATE or DELETE; empty if the object is not changed.
	Operation string
	Allowed   bool
	// Moved says what requests lose that move to another route, rule or listener, "" for nothing.
	Moved string
	At    Location
}

// Severity is what a finding does to the result.
type Severity int

// The severities, the most severe first.
const (
	Error   Severity = iota // the change is denied
	Warning                 // the change returns a warning
	Note                    // an audit record only
)

// Finding is one denial, warning or violation.
type Finding struct {
	Severity Severity
	Code     api.ReasonCode
	// Object is the object that was written, or the policy or constraint of a violation.
	Object    api.Ref
	Operation string
	// PolicyKind and Path are those of a violation.
	PolicyKind api.PolicyKind
	Path       []api.PathElement
	Rule       string
	// Policy is the other policy, see api.Reason; nil for none.
	Policy  *api.Ref
	Message string
	// CountsPaths is set if the message is a number of paths, which Changes list.
	CountsPaths bool
	At          Location
}

// Location is the position of an object or a field in a file. The zero value is none: an
// object of a cluster.
type Location struct {
	// File is the path relative to the root of its repository, with slashes; the
	// absolute path of a file that is not in the repository; "-" for standard input.
	File string
	// Line and Column count from 1; 0 stands for the whole file. EndColumn is the
	// column after the last character, on the same line.
	Line, Column, EndColumn int
}
