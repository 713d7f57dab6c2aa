// Package flight lays writes that were admitted and not seen yet over the view for the next decision.
package flight
