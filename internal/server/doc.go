// Package server is the process of the admission server: its flags, the HTTPS
// server, graceful shutdown, probes, metrics, tracing, and the wiring of all
// other packages.
package server
