// Package printers writes the results of the engine: as JSON and YAML, which are
// a contract (docs/json.md), and as tables and trees for people.
package printers
