package inflight

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
)

// undecided denies a write that is allowed or denied by whether others are
// stored.
func dependsOnPending(alone, with *guard.Decision, others []*entry) Decision {
	because, denials := "together with", with.Denials
	if alone.Denied() {
		because, denials = "without", alone.Denials
	}
	return retry(alone, explain(because, denials, others)...)
}

func retry(j *guard.Decision, denials ...guard.Finding) Decision {
	out := *j
	out.Denials = denials
	return Decision{Decision: &out, Retry: true}
}

func explain(because string, denials []guard.Finding, others []*entry) []guard.Finding {
	hangsOn := fmt.Sprintf(" (%s %s, admitted a moment ago and not seen in the cache yet: try again in a second)", because, describeWrites(others))
	out := make([]guard.Finding, len(denials))
	for i, f := range denials {
		f.What += hangsOn
		if f.Short != "" {
			f.Short += " (" + because + " a write of a moment ago)"
		}
		out[i] = f
	}
	return out
}

// mostNamed is how many writes are named in a message.
const maxNamed = 3

func describeWrites(others []*entry) string {
	var names []string
	for i, e := range others {
		if i == maxNamed {
			return fmt.Sprintf("the writes of %s and %d more", strings.Join(names, ", "), len(others)-i)
		}
		names = append(names, e.ref.String())
	}
	if len(names) == 1 {
		return "the write of " + names[0]
	}
	return "the writes of " + strings.Join(names, ", ")
}

func tooMuch(what string) guard.Finding {
	return guard.Finding{Code: api.ReasonTooMuch, Action: api.Deny, What: what, Advice: "try again in a second"}
}

// contended denies a write that could not be judged in time, since others that
// matter to the same paths were admitted again and again.
func (t *evaluation) contended() Decision {
	return retry(&guard.Decision{Change: t.write.Change},
		tooMuch("writes that matter to the same paths were admitted faster than this one could be judged"))
}

// overloaded denies a write since its user, or its namespace, has a full share of
// what is in flight.
func (t *evaluation) overQuota(j *guard.Decision) Decision {
	where := "cluster-scoped objects"
	if ns := t.reader.ref.Namespace; ns != "" {
		where = "objects in namespace " + ns
	}
	return retry(j, tooMuch("too many writes of this user, or of "+where+", were admitted and are not observed yet"))
}

// reread denies a write since policies are being read in another way.
func (t *evaluation) kindChanged(err error) Decision {
	return retry(&guard.Decision{Change: t.write.Change}, tooMuch(err.Error()))
}
