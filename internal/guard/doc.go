// Package guard evaluates a change: it compares the effective policies of the
// paths that the change touches, before and after, and returns denials, warnings and
// the number of paths that change (SEMANTICS section 8).
//
// The webhook, the plugin and the background audit share it. A verdict must not depend
// on which of them asks, so nothing here knows admission reviews or files.
package guard
