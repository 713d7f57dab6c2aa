// Package status writes the status conditions of PolicyProfiles and constraints.
package status
