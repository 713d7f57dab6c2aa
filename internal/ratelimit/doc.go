// Package ratelimit implements the limits of Kuadrant's RFC "RateLimitPolicy v2": it
// reads and validates them, binds them to rules of a route, determines which limit
// shadows another, and renders the actions of the gateway and the limits of the rate
// limit service. Values in, values out: it does not depend on policies or paths.
//
// Each of these groups of files calls those before it alone: what a limit is (limit, detect,
// selector, route); how one binds (bind, nearestmatch); what is rendered (renderrule,
// renderlimit, render); what is read (regex, schema with limit.yaml, read).
package ratelimit
