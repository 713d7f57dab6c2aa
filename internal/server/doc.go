// Package server is the process of the admission server: its flags, the HTTPS
// server, graceful shutdown, probes, metrics, tracing, and the wiring of all
// other packages.
//
// The files, by the question that they answer:
//
//   - run, app: the process, and the order in which its components start
//   - flags, validation: the flags, their defaults, and values that are refused
//   - httpsserver, conntracker: connections, their number and timeouts; shutdown: in which
//     order all ends
//   - certificates, pathtokens: what authenticates the server and its callers
//   - webhookconfig, policyresources, uninstall: which writes the API server sends here
//   - coordination, leaderwork: what replicas do for each other, and what the leader alone
//     does
//   - refresh, auditor: the background work: stale annotations, the audit
//   - probes, warningevents: /healthz and /readyz, and Events of their warnings
//   - metrics_build, metrics_cache, metrics_certificates, metrics_paths, metrics_store,
//     tracing, logging
//   - client, memory: connections to the API server, and the limit of memory
package server
