// Package manifest reads objects from YAML and JSON files, and makes of them
// what the store holds. What is wrong in any of the files is told at once,
// with the file, the document and the line.
package manifest
