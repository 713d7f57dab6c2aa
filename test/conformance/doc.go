// Package conformance runs Gateway API's conformance tests against the router of
// internal/gateway. It is a separate module, so that no other module depends on them.
package conformance
