package canary

import (
	"fmt"
	"strings"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Outcome is the outcome of an attempt or of a run.
type Outcome string

// Outcomes. A run has failed if one of its attempts has; otherwise it is untried if one
// of them is.
const (
	// Untried: it could not be determined how Overrule handles the write.
	Untried Outcome = "untried"
	Failed  Outcome = "failed"
	Passed  Outcome = "passed"
)

// Outcomes lists all outcomes in the order in which they are displayed.
var Outcomes = []Outcome{Passed, Failed, Untried}

// Attempt is one write and its result.
type Attempt struct {
	// Sent describes the write, Response what was returned for it.
	Sent     string  `json:"sent"`
	Response string  `json:"came"`
	Outcome  Outcome `json:"outcome"`
	// Milliseconds until the response.
	Milliseconds int64 `json:"milliseconds"`

	// overloaded is true if Overrule itself responded that it is overloaded.
	overloaded bool
}

// Result is the result of one run of the canary.
type Result struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Outcome    Outcome `json:"outcome"`
	// Enforcement is the enforcement that the run expects of the installation.
	Enforcement string    `json:"enforcement"`
	Attempts    []Attempt `json:"trials"`
	// Note says what the run does not verify.
	Note string `json:"note,omitempty"`

	// Took is the duration of the run; At is when it ended.
	Took time.Duration `json:"-"`
	At   time.Time     `json:"-"`
}

func newResult(enforcement api.Action, attempts []Attempt) Result {
	r := Result{
		APIVersion: api.APIVersion, Kind: "CanaryResult",
		Outcome: Passed, Enforcement: strings.ToLower(string(enforcement)), Attempts: attempts,
	}
	for _, t := range attempts {
		if t.Outcome == Failed || t.Outcome == Untried && r.Outcome == Passed {
			r.Outcome = t.Outcome
		}
	}
	return r
}

// Busy reports whether the run is untried only because Overrule responded that it is
// overloaded: it is available and admits no write without evaluation.
func (r Result) Busy() bool {
	if r.Outcome != Untried {
		return false
	}
	for _, t := range r.Attempts {
		if t.Outcome == Untried && !t.overloaded {
			return false
		}
	}
	return true
}

// Message returns why the run did not pass, "" if it passed.
func (r Result) Message() string {
	var out []string
	for _, t := range r.Attempts {
		if t.Outcome != Passed {
			out = append(out, t.Sent+": "+t.Response)
		}
	}
	return strings.Join(out, "; ")
}

// Text returns the result as text, with a line and its response for each attempt.
func (r Result) Text() string {
	var out strings.Builder
	for _, t := range r.Attempts {
		fmt.Fprintf(&out, "%-8s %s (%d ms)\n         %s\n", t.Outcome, t.Sent, t.Milliseconds, t.Response)
	}
	if r.Note != "" {
		fmt.Fprintf(&out, "note     %s\n", r.Note)
	}
	fmt.Fprintf(&out, "the canary %s\n", map[Outcome]string{Passed: "passed", Failed: "failed", Untried: "could not be tried"}[r.Outcome])
	return out.String()
}
