// Package cache feeds the store from a cluster: a Watcher keeps it up to date
// for as long as the server runs, and List reads it once, for the CLI.
//
// A Watcher runs one client-go reflector for each kind, and no cache: what a
// reflector reads becomes the store's own types at once, so that one event is
// one event of the store and nothing is held twice. Which kinds there are is
// read from the CustomResourceDefinitions, which are watched like the rest:
// kinds come, change and go while the server runs.
package cache
