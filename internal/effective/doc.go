// Package effective computes effective policies: for each path of a view and each policy
// kind it folds the stack of policies on the path. From these it computes the outcomes
// of policies and the differences between two views.
package effective
