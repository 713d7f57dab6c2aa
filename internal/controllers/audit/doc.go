// Package audit looks at the effective policies of the paths that an observed
// change touches, and reports what is wrong with them however it came to be: two
// writes passed two servers at once, something was written while nobody judged,
// or was there before a constraint was.
//
// It judges nobody's write and holds no lock while it looks: a sweep works on one
// view, in one goroutine.
package audit
