// Package guard evaluates a change: it compares the effective policies of the
// paths that the change touches, before and after, and returns denials, warnings and
// the number of paths that change (SEMANTICS section 8).
//
// A flow (requests.go) is a request with the rules that serve it before the change and after
// it. Flows are looked for where the change reroutes requests (rerouted.go), under each
// reading of what Gateway API leaves open (readings.go). The paths of both rules are compared:
// for the overrides of the first (overridecheck.go), for the constraints on the second
// (formerpaths.go), and for rules that are lost (movedrules.go). Where nothing serves a
// request any more at its own port, or a path has no requests, names decide (successor.go).
//
// The webhook, the plugin and the background audit share it. A verdict must not depend
// on which of them asks, so nothing here knows admission reviews or files.
package guard
