package heavy

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// Size is the number of objects and of their parts in a case; 0 where not used.
type Size struct {
	// Gateways of a route, each with Listeners.
	Gateways, Listeners int
	// Routes on them, each with RouteRules of that many Matches.
	Routes, RouteRules, Matches int
	// Policies on the target, each with Rules.
	Policies, Rules int
}

// paths returns the number of paths of all routes.
func (s Size) paths() int { return s.Gateways * s.Listeners * s.Routes * s.RouteRules }

// Case is a write that is bad input because of its size.
type Case struct {
	// What is the name in benchmarks; Name is a sentence.
	What, Name string
	// Full is the size at which the write must be evaluated in time, or denied;
	// Small one at which it is evaluated at once.
	Full, Small Size
	// Representative cases run where there is no time for all.
	Representative bool
	// BlastRadius of the guard.
	BlastRadius int
	// Want is the result of an evaluation with enough time and memory.
	Want func(s Size) Want

	build func(w *World, s Size) Write
}

// Want is the expected result of an evaluation.
type Want struct {
	// Denied is the first reason code of a denial, "" if the write is allowed.
	Denied api.ReasonCode
	// Says is part of the denial's message, or of the warnings.
	Says string
}

// Build builds the cluster and the write of a case.
func (c *Case) Build(s Size) (*snapshot.Store, Write, error) {
	w := newWorld()
	write := c.build(w, s)
	w.Store.Apply(w.changes...)
	return w.Store, write, w.err
}

// Cases returns all cases.
func Cases() []Case {
	return slices.Concat(pathCases(), routeCases(), ruleCases(), conditionCases(), pairCases(), optionCases(), bindingCases())
}

// Trivial returns a write that any server evaluates at once.
func Trivial() Write {
	return Write{After: newObject(gatewayAPI+"/v1", "HTTPRoute", "app", "trifle", object{"rules": []any{routeRule(0, 0, 1)}})}
}
