// Package cases is the table of verdicts that every door must give: changes on
// top of objects, and what SEMANTICS says of each. A door's test loads it, puts
// each case through the door and compares what comes out.
package cases
