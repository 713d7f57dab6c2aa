// Package ui serves a page on a loopback address that shows effective policies, and
// what a change would do to them. Nothing is written to the cluster.
//
// The files, by the question that they answer:
//
//   - source: what the page asks; model, follow, events: when it is told of a change
//   - handler, search: the answers, and how many of each
//   - server, session, security: connections, and who may open the page
//   - page, a folder: its HTML, modules and styles
package ui
