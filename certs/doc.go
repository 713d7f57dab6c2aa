// Package certs provides the serving certificate of a TLS server, the CA bundle for
// its clients, and the authentication of its clients: client certificates and
// tokens in the path.
//
// There are two sources of certificates. Files reads files, whatever writes them, such as
// cert-manager. Authority has a certificate authority of its own, in a Secret that all
// replicas share; each replica signs its own certificates, whose keys stay in memory: one
// for the webhook, and one for calls between replicas, with another name and as a client,
// too. No leader is needed: each change is one update of the Secret with its
// resourceVersion, and is planned again after a conflict.
//
// # Rotation
//
// A new authority goes through phases. Each is recorded in the Secret before it
// takes effect, so that a crash at any time loses nothing:
//
//	phase    signs   trusted (ca-bundle.crt)  ends when
//	stable   old     old                      two thirds of old's lifetime are over
//	staged   old     old, new                 the bundle is published (Published), or after a twelfth of its life
//	retiring new     new, old                 the last leaf that old may have signed has expired
//	stable   new     new
//
// Two invariants make this lossless. A leaf is signed only with the signer of a
// Secret that was read after the leaf's issue time, so the leaves of old expire at
// most one leaf lifetime after new was promoted. And a leaf is served only if the
// bundle of this replica contains its issuer.
//
// # The Secret
//
//	tls.crt, tls.key    the authority that signs
//	next.crt, next.key  the staged one
//	ca-bundle.crt       every authority to trust: signing, staged, retired
//
// The times of the phases are in annotations. A Secret that is deleted or invalid is
// written again. A replica that has the authority in memory restores it, and stages
// a new one (so deleting the Secret forces a rotation). Any other replica creates a
// new authority.
//
// With other serving certificates, an Authority signs for calls between replicas only. Its
// clients then are the replicas, which read the bundle from the Secret, so it counts as
// published when one of them has read it.
//
// The server needs get and update on each of its Secrets, and create on secrets in its
// namespace.
package certs
