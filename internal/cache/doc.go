// Package cache feeds the snapshot store from a cluster. A Watcher keeps the store up
// to date while the server runs; List reads a cluster once, for the CLI.
//
// A Watcher runs one client-go reflector per kind and no informer cache: objects are
// converted to the store's own types when they are read, so that no object is held
// twice and one watch event is one event of the store. The kinds come from the
// CustomResourceDefinitions, which are watched as well: kinds can be installed, changed
// and removed while the server runs.
package cache
