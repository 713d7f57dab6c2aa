// Package manifest reads objects from YAML and JSON files, and converts them to
// snapshot objects. It reports all errors of all files together, each with its
// file, document and line.
//
// The files, by the question that they answer:
//
//   - read, document, alias: which files are read, how large they may be (MaxSize), and how
//     they are split
//   - object: one object, undecoded, with what the API server would set
//   - kinds, version, notread: which kinds and versions are known, and why an object is not
//     read
//   - fieldtypes, stored: what is wrong with an object, by its type or its definition
//   - view: all objects as a view
//   - location, fieldnode, errors: where in a file a field or an error is
//   - firstchange: which field differs; rendered: which file an object was rendered from
package manifest
