// Package printers prints the results of the commands: as JSON and YAML, which are
// a contract (docs/json.md), and as human-readable tables and trees.
//
// The files, by the question that they answer:
//
//   - printer: what can be printed, and in which formats
//   - effective, routefield, explain, binding: effective policies and where their rules come
//     from
//   - outcome, reach, request, change, verdict, violation, profile, render: a result each
//   - group: how equal results are shown once
//   - tree, textwriter, value: lines, tables, colors and values
package printers
