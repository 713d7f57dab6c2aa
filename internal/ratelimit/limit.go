package ratelimit

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Limit is a limit definition: spec.limits.<name> of the RFC.
type Limit struct {
	// Name is the name of the definition in the policy. Limits are ordered by name.
	Name string `json:"-"`
	// Rates are the rates, at least one. All of them apply.
	Rates []Rate `json:"rates"`
	// Counters are the selectors by whose values requests are counted separately.
	Counters []string `json:"counters"`
	// When are the conditions that the rate limit service checks for each request. All
	// of them must be met.
	When []Condition `json:"when"`
	// Triggers select the rules of a route that the limit binds to: those that any
	// trigger selects. Without triggers it binds to every rule.
	Triggers []Trigger `json:"triggers"`
}

// Rate is a number of requests per duration.
type Rate struct {
	// Limit is the maximum number of requests, at least 1.
	Limit int64 `json:"limit"`
	// Duration is the number of units, at least 1.
	Duration int64 `json:"duration"`
	Unit     Unit  `json:"unit"`
}

// Seconds returns the duration in seconds. It does not overflow for a Rate that
// Validate accepts.
func (r Rate) Seconds() int64 { return r.Duration * secondsOf[r.Unit] }

// Unit is a unit of time.
type Unit string

var secondsOf = map[Unit]int64{"second": 1, "minute": 60, "hour": 60 * 60, "day": 24 * 60 * 60}

// Condition is a condition on requests that is not about the route.
type Condition struct {
	// Selector is a path in the well-known data structure.
	Selector string   `json:"selector"`
	Operator Operator `json:"operator"`
	// Value is the value to compare with, nil for exists and nexists.
	Value *string `json:"value"`
}

// Operator is the operator of a condition: one of those of the schema.
type Operator string

// The operators that are not treated alike.
const (
	Equals    Operator = "eq"
	NotEquals Operator = "neq"
	Exists    Operator = "exists"
	NotExists Operator = "nexists"
	MatchesRE Operator = "matches"
)

// Trigger selects rules of a route.
type Trigger struct {
	// Matches select a rule if any of them equals a match of the rule in every field
	// that it sets. Without matches the trigger selects every rule.
	Matches []Match `json:"matches"`
	// Hostnames of the requests, in lower case. Without hostnames they are those of the
	// route.
	Hostnames []string `json:"hostnames"`
}

// Match is a match of a trigger. Fields that are not set match everything.
type Match struct {
	gatewayv1.HTTPRouteMatch `json:",inline"`

	// Criteria are what it sets, as Bind compares them.
	Criteria []string `json:"-"`
}
