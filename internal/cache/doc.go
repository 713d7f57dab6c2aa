// Package cache feeds the snapshot store from a cluster. A Watcher keeps the store up
// to date while the server runs; List reads a cluster once, for the CLI.
//
// A Watcher runs one client-go reflector per kind and no informer cache: objects are
// converted to the store's own types when they are read, so that no object is held
// twice and one watch event is one event of the store. The kinds come from the
// CustomResourceDefinitions, which are watched as well: kinds can be installed, changed
// and removed while the server runs.
//
// The files, by the question that they answer:
//
//   - watcher, health: a Watcher, and the state of each watch
//   - registry, kind: which kinds are read, and how long a start waits for one that cannot be
//     listed (initialListTimeout, in kind)
//   - source, constraint, profile, scheme, objectstate: what of each kind is read, and how it
//     is decoded
//   - clients, reflector, sink: a list and a watch, when they are tried again, and how their
//     objects get into the store
//   - staleness: for how long a resource may be without a watch until writes are not
//     evaluated (StaleAfter), and a watch without an event until it is opened again
//   - reopening: when a review waits for a watch that is being reopened
//   - restore: how a restore of etcd is found out, and how long all writes wait for a kind
//     after it (restoredListTimeout)
//   - catchup: when a new leader has all that was stored before; broadcast: wakes what waits
//   - served, problem, status: whose writes are evaluated, what cannot be read, and the
//     status of profiles and constraints
//   - get: one object as it is stored now
//   - list, discovery: a cluster that is read once, for the CLI
package cache
