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
//
// No file calls one that is listed after it:
//
//   - limits, tally, change, text: what all need
//   - finding, readlive, systemdeletion, permissions, write: a write, and what is found of it
//   - readings, rerouted, stake, requests: where requests go, type requests
//   - paths, unreadparent, candidates, successor, formerpaths: the paths that they are on,
//     type successors
//   - outcome, rulesinforce, gained, blastradius: what became of rules, and on how many paths
//   - terminating, overrideweakened, overridelosses, overridecheck, overridereport,
//     otherpaths, awaited: type overrides
//   - policy, object, deletedparents, detached, toomany, unreached, overriddentally, overridden,
//     ruleslosttext, ruleslost, movedrules, leftlisteners, constraintinputs, graceperiod,
//     constraintcheck, requirementunmet, schema, ratelimitchange, ratelimitown, ratelimits: one
//     file or more for each other reason
//   - evaluation, nopath, pair: the evaluation of the paths, type evaluation
//   - constraintwrite, kindwrite, newowner, unlisted, violations: writes of constraints and of
//     kinds, new owners, kinds that are not listed, and no write at all
//   - toomuch, guard: Guard
//
// A new reason is a file of the seventh group, called by evaluatePair (pair.go) where it is
// about paths, and by summarize (guard.go); its place among others is in finding.go.
package guard
