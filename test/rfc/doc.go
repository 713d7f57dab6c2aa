// Package rfc tests the policies and routes of examples/ratelimitpolicy, and the
// CRD of the policies, with a real API server: the schema alone, and together
// with the real server and kubectl.
package rfc
