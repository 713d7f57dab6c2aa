//go:build long

// Package peers compares effective policies with those of the implementations themselves:
// their own code translates worlds, and translates them again with the effective policies
// that Overrule computes in place of the policies, one for each rule of a route. If both
// results have the same settings, the effective policies are those of the implementation,
// whatever each field means to it. testdata has the reasons for what differs.
package peers
