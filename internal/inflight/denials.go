package inflight

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

// dependsOnPending denies a write whose decision depends on whether others are stored.
func dependsOnPending(alone, with *guard.Decision, others []*entry) Result {
	relation, denials := "together with", with.Denials
	if alone.Denied() {
		relation, denials = "without", alone.Denials
	}
	return retry(alone, explain(relation, denials, others)...)
}

// retry returns a decision with denials that the client retries.
func retry(d *guard.Decision, denials ...guard.Finding) Result {
	out := *d
	out.Denials = denials
	return Result{Decision: &out, Retry: true}
}

// explain adds to denials the writes on which they depend.
func explain(relation string, denials []guard.Finding, others []*entry) []guard.Finding {
	cause := fmt.Sprintf(" (%s %s, not yet in the cache; retry in 1s)", relation, describeWrites(others))
	out := make([]guard.Finding, len(denials))
	for i, f := range denials {
		f.What += cause
		if f.Short != "" {
			f.Short += " (" + relation + " a pending write)"
		}
		out[i] = f
	}
	return out
}

// maxNamed is the number of writes that a message names.
const maxNamed = 3

func describeWrites(others []*entry) string {
	var names []string
	for _, e := range others[:min(len(others), maxNamed)] {
		names = append(names, e.ref.String())
	}
	if len(names) == 1 {
		return "the pending write of " + names[0]
	}
	return "the pending writes of " + strings.Join(names, ", ") + api.More(" and ", len(others)-maxNamed, "")
}

func tooMuch(what string) guard.Finding {
	return guard.Finding{Code: api.ReasonTooMuch, Action: api.Deny, What: what, Advice: "retry in 1s"}
}

// contended denies a write that was not evaluated in time, because writes that affect the
// same paths kept being admitted.
func (e *evaluation) contended() Result {
	return retry(&guard.Decision{Change: e.write.Change},
		tooMuch("writes that affect the same paths were admitted faster than this one could be evaluated"))
}

// overQuota denies a write whose user, or namespace, has used up its share of the writes
// in flight.
func (e *evaluation) overQuota(d *guard.Decision) Result {
	where := "to cluster-scoped objects"
	if ns := e.ref.Namespace; ns != "" {
		where = "in namespace " + ns
	}
	return retry(d, tooMuch("too many admitted writes not yet observed, by this user or "+where))
}

// kindChanged denies a write for errKindChanged or errPoliciesInFlight.
func (e *evaluation) kindChanged(err error) Result {
	return retry(&guard.Decision{Change: e.write.Change}, tooMuch(err.Error()))
}
