// Package env runs a real etcd and kube-apiserver on free loopback ports, with
// the CRDs of Gateway API and of examples/crds, for tests and the demo. Packages of
// tests share a few control planes, each used by one test at a time (pool.go).
//
// The files, by the question that they answer:
//
//   - env, options: Start, and what a test may ask for
//   - pool, reset: which tests share a control plane, and how it is cleaned between them;
//     boots: a record of boots
//   - plane, assets, certificates, crds: how a control plane boots
//   - apiserver, etcd: how a test stops, pauses or restores it
//   - user, kubectl, plugin: who writes, and with what
//   - service, repository, wait: ports, folders of modules, and how long a test waits
//     (Patience)
package env
