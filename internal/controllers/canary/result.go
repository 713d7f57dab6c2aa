package canary

import (
	"fmt"
	"strings"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Outcome is what became of a trial, or of a run.
type Outcome string

// The outcomes. A run has failed if one of its trials has; else it is untried
// if one of them is.
const (
	// Untried: what Overrule does with the write could not be found out.
	Untried Outcome = "untried"
	Failed  Outcome = "failed"
	Passed  Outcome = "passed"
)

// Outcomes are all of them, in the order in which they are listed.
var Outcomes = []Outcome{Passed, Failed, Untried}

// Attempt is one write and what came of it.
type Attempt struct {
	// Sent says which write was sent, Came what came back.
	Sent     string  `json:"sent"`
	Response string  `json:"came"`
	Outcome  Outcome `json:"outcome"`
	// Milliseconds until it came.
	Milliseconds int64 `json:"milliseconds"`

	// busy: Overrule itself said that it has too much to do.
	overloaded bool
}

// Result is what came of one run of the canary.
type Result struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Outcome    Outcome `json:"outcome"`
	// Enforcement is what the run expected of the installation.
	Enforcement string    `json:"enforcement"`
	Attempts    []Attempt `json:"trials"`
	// Note tells what the run does not prove.
	Note string `json:"note,omitempty"`

	// Took is the time of the whole run; At is when it ended.
	Took time.Duration `json:"-"`
	At   time.Time     `json:"-"`
}

func newResult(does api.Action, trials []Attempt) Result {
	r := Result{
		APIVersion: api.APIVersion, Kind: "CanaryResult",
		Outcome: Passed, Enforcement: strings.ToLower(string(does)), Attempts: trials,
	}
	for _, t := range trials {
		if t.Outcome == Failed || t.Outcome == Untried && r.Outcome == Passed {
			r.Outcome = t.Outcome
		}
	}
	return r
}

// Busy reports whether the run came to nothing only because Overrule answered
// that it has too much to do: it is there, and lets nothing pass.
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

// Why tells what kept the run from passing, "" if it passed.
func (r Result) Message() string {
	var out []string
	for _, t := range r.Attempts {
		if t.Outcome != Passed {
			out = append(out, t.Sent+": "+t.Response)
		}
	}
	return strings.Join(out, "; ")
}

// Text tells a result to people, a line for each trial.
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
