// Package effective computes effective policies: for each path of a view and each policy
// kind it folds the stack of policies on the path. From these it computes the
// differences between two views.
//
// No file calls one that is listed after it:
//
//   - limits, set, effective, budget: what all need; budget has what a walk may cost, and when
//     the API server took the time
//   - root, waypoint, plan, scope: a scope, and the objects that its paths go through
//   - section, sharing, attachment, targets: policies on an object, and whether they are accepted
//   - route_field, shape, engine, unread, memo, stack, walk, mesh, paths: the walk of the paths,
//     each with its stack and its fold
//   - weaken, override, attached, binding, reach: what is asked of a path
//   - pair, compare, compare_walk: two walks, before and after a change
//   - targethint, unattached, nopath_above, nopath: why a policy is on no path
//   - states: paths by state
//   - footprint: what a write depends on
package effective
