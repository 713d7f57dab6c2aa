package ratelimit

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Limit is one limit definition: spec.limits.<name> of the RFC.
type Limit struct {
	// Name is that of the definition in the policy: limits are in the order of
	// their names, since a map has no other.
	Name string
	// Rates that hold together, at least one.
	Rates []Rate
	// Counters are the selectors that requests are counted apart by.
	Counters []string
	// When are the conditions that the service asks of each request, all of
	// which must hold.
	When []Condition
	// Triggers choose the rules of a route that the limit binds to, any of them
	// does; none: it binds to every rule.
	Triggers []Trigger
}

// Rate is so many requests in a span of time.
type Rate struct {
	// Limit is the most requests, at least 1.
	Limit int64
	// Duration is the span in units, at least 1.
	Duration int64
	Unit     Unit
}

// Seconds returns the span. A Rate that Read has let pass fits.
func (r Rate) Seconds() int64 { return r.Duration * secondsOf[r.Unit] }

// Unit of time.
type Unit string

// The units.
const (
	Second Unit = "second"
	Minute Unit = "minute"
	Hour   Unit = "hour"
	Day    Unit = "day"
)

// Units are all of them, the shortest first.
var Units = []Unit{Second, Minute, Hour, Day}

var secondsOf = map[Unit]int64{Second: 1, Minute: 60, Hour: 60 * 60, Day: 24 * 60 * 60}

// Condition is a "soft" condition: one that is not about the route.
type Condition struct {
	// Selector is a path into the well-known data structure.
	Selector string
	Operator Operator
	// Value is compared with; none for exists and nexists.
	Value string
}

// Operator of a condition.
type Operator string

// The operators.
const (
	Equals     Operator = "eq"
	NotEquals  Operator = "neq"
	Exists     Operator = "exists"
	NotExists  Operator = "nexists"
	MatchesRE  Operator = "matches"
	Includes   Operator = "incl"
	NotInclude Operator = "excl"
)

// Operators are all of them.
var Operators = []Operator{Equals, NotEquals, Exists, NotExists, MatchesRE, Includes, NotInclude}

// Trigger chooses rules of a route.
type Trigger struct {
	// Matches, any of which chooses a rule that has one equal to it in every
	// field that it states; none: every rule.
	Matches []Match
	// Hostnames that requests must be for, in lower case; none: those of the
	// route.
	Hostnames []string
}

// Match is what a trigger states of a match of a rule.
type Match struct{ gatewayv1.HTTPRouteMatch }
