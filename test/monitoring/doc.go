// Package monitoring tests deploy/monitoring with Prometheus' own parser and
// engine. It is a separate module, so that no other module depends on them.
package monitoring
