// Package replicas runs several servers behind a Service, with a proxy on each of their
// connections, under writes whose verdicts are known.
//
// The tests of an ordinary run (tag e2e) are a few conflicting pairs of writes with two
// replicas, one graceful handover and one kill of the leader. The long ones (tags e2e and
// long) are many pairs, and all kinds of faults: they show that the parts fit together.
// Which orders of events are safe is tested by test/explore and test/model.
//
// All writes that the API server stores are recorded, and evaluated again one after
// another (test/replay): none may be denied then.
package replicas
