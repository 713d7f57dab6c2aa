// Package status writes into each PolicyProfile and each constraint what became
// of it, for whoever looks at it with kubectl.
package status
