// Package ratelimit implements the limits of Kuadrant's RFC "RateLimitPolicy v2": it
// reads and validates them, binds them to rules of a route, determines which limit
// shadows another, and renders the actions of the gateway and the limits of the rate
// limit service. Values in, values out: it does not depend on policies or paths.
//
// No file calls one that is listed after it:
//
//   - schema, regex: the values of fields; limit.yaml has their schema
//   - limit, detect, selector, route: what a limit is
//   - bind, nearestmatch: how one binds
//   - renderrule, renderlimit, render: what is rendered
//   - read: what is read
package ratelimit
