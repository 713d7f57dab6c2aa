// Package worlds builds snapshots of small clusters from YAML, for tests of the
// engine.
//
// The files: worlds, docs and schema (worlds in YAML), object, write and overlap (objects as
// an API server has them), mix, policies and cluster (a large cluster), shape, uniform, heavy
// and bindings (writes that are expensive).
package worlds
