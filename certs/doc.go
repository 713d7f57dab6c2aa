// Package certs gives a TLS server its serving certificate and the CA bundle
// that its clients are to trust.
//
// Files reads both from files that others write, and holds a certificate until
// clients trust it, CertManager reads those that cert-manager writes. An
// Authority manages both by itself. Its certificate authority lives in a
// Secret that all replicas share; each replica signs a serving certificate of
// its own, whose key never leaves its memory. Nothing here elects a leader:
// every change is one update of the Secret under its resourceVersion, planned
// anew from what is stored whenever another replica was faster.
//
// # Rotation
//
// A new authority goes through phases, each one recorded in the Secret before
// anybody acts on it, so that a crash between any two loses nothing:
//
//	phase    signs   trusted (ca-bundle.crt)  ends when
//	stable   old     old                      two thirds of old's life are over
//	staged   old     old, new                 the bundle is published (Published), or long enough has passed
//	retiring new     new, old                 the last leaf that old can have signed has expired
//	stable   new     new
//
// Two invariants make this lossless. A leaf is signed only with the signer of
// a Secret that was read after the leaf's own start of life, so whatever old
// signs is expired one leaf lifetime after new was promoted. And a leaf is
// served only if the bundle that this replica tells holds its issuer.
//
// # The Secret
//
//	tls.crt, tls.key    the authority that signs
//	next.crt, next.key  the staged one
//	ca-bundle.crt       every authority to trust: signing, staged, retired
//
// with the moments of the phases in annotations. A Secret that is deleted or
// unreadable is written again: by a replica that still holds the authority in
// memory with that one, and a new one staged to follow it (deleting the Secret
// is thus how to force a rotation); by any other with a new authority.
//
// The server needs get, list, watch and update on that one Secret, and create
// on secrets in its namespace.
package certs
