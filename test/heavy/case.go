package heavy

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// Size says how much of everything there is in a case. What it does not need is
// 0.
type Size struct {
	// Gateways that a route is on, each with Listeners.
	Gateways, Listeners int
	// Routes on them, each with RouteRules of so many Matches.
	Routes, RouteRules, Matches int
	// Policies on the target, each with Rules.
	Policies, Rules int
}

// paths of all routes.
func (s Size) paths() int { return s.Gateways * s.Listeners * s.Routes * s.RouteRules }

// Case is a write that is bad input by its size.
type Case struct {
	// What it is, as part of a benchmark's name; Name as a sentence.
	What, Name string
	// Full is the size that it is to be judged at in time, or denied; Small one
	// at which it is judged in no time.
	Full, Small Size
	// Representative tells that it stands for all like it where there is no time for each.
	Representative bool
	// BlastRadius of the guard.
	BlastRadius int
	// Want is what a judgement comes to that was given the time and memory.
	Want func(s Size) Want

	build func(w *World, s Size) Write
}

// Want is what is expected of a judgement.
type Want struct {
	// Denied is the first reason of a denial, "" where the write is allowed.
	Denied api.ReasonCode
	// Says is part of the denial's message, or of the warnings.
	Says string
}

// Build makes the cluster and the write of a case.
func (c *Case) Build(s Size) (*snapshot.Store, Write, error) {
	w := newWorld()
	write := c.build(w, s)
	w.Store.Apply(w.changes...)
	return w.Store, write, w.err
}

// Cases returns all of them.
func Cases() []Case {
	return slices.Concat(pathCases(), routeCases(), ruleCases(), conditionCases(), pairCases(), optionCases(), bindingCases())
}

// Trivial is a write that any server judges in no time.
func Trivial() Write {
	return Write{After: newObject(gatewayAPI+"/v1", "HTTPRoute", "app", "trifle", object{"rules": []any{routeRule(0, 1)}})}
}
