// Package certs provides the serving certificate of a TLS server, the CA bundle for
// its clients, and the authentication of its clients: client certificates and
// tokens in the path.
//
// There are two sources of certificates. Files reads files, whatever writes them, such as
// cert-manager. Authority has a certificate authority of its own, in a Secret that all
// replicas share; each replica signs its own certificates, whose keys stay in memory: one
// for the webhook, and one for calls between replicas, with another name and as a client,
// too. No leader is needed: each change is one update of the Secret with its
// resourceVersion, and is planned again after a conflict. An authority is replaced in phases,
// so that a crash at any time loses nothing (selfsigned_rotation.go).
//
// With other serving certificates, an Authority signs for calls between replicas only. Its
// clients then are the replicas, which read the bundle from the Secret, so it counts as
// published when one of them has read it.
//
// The server needs get and update on each of its Secrets, and create on secrets in its
// namespace.
//
// The files, by the question that they answer:
//
//   - source, files, selfsigned: a Source, and the two that there are, with their defaults
//   - selfsigned_state: which authorities there are; selfsigned_rotation: when one is
//     replaced, created or restored; selfsigned_renewal: when a certificate is
//   - selfsigned_sync, selfsigned_secret, secretstore: what is in the Secret, and how it is
//     written
//   - selfsigned_signer, selfsigned_leaf, pem: what is in a certificate
//   - peers, clientauth, pathtokens: how replicas, clients and callers are authenticated
//   - loop: when all of these read again
package certs
