// Package replay records all that an API server stores, and replays it: each write, in
// the order of the resource versions, is evaluated by a server that has seen exactly
// the writes before it. A write that was stored and is denied in the replay is a
// finding: it was evaluated without one that was stored before it.
//
// The recording is a watch of etcd, and not of the API server: it is one stream of all
// resources, it survives a restart of the API server, and etcd reports if it cannot
// deliver all revisions.
//
// The files: recorder and etcd (what is recorded), history (what was stored), state, review
// and replay (how it is evaluated again).
package replay
