// Package rfc tries the policies and routes of examples/ratelimitpolicy, and the
// CRD that they are of, on a real API server: the schema alone, and with the
// real server and kubectl beside it.
package rfc
