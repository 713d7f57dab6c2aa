// Package monitoring holds what is under deploy/monitoring to Prometheus' own
// parser and engine: a module of its own, so that nothing else needs those.
package monitoring
