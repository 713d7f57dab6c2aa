// Package status writes into each PolicyProfile what became of it, for
// whoever looks at it with kubectl.
package status
