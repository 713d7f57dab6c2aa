// Package effective computes effective policies: for each path of a view and
// each policy kind the stack of policies that fall on it, folded, and from
// these the outcomes of policies and the differences between two views.
package effective
