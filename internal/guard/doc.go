// Package guard judges a change: it compares the effective policies of the
// paths that the change touches, before and after, and says what is denied,
// what is told and how far the change reaches (SEMANTICS section 8).
//
// It is the one judge behind every door. A verdict must not depend on the
// door, so nothing here knows of admission reviews or of files.
package guard
