// Package commands implements the commands of the kubectl plugin.
//
// The files, by the question that they answer:
//
//   - run, root: exit codes, and the list of commands
//   - terminal: where a command reads and writes, and what it has said
//   - check, diff, effective, explain, graph, outcome, profiles, reach, render, ui,
//     violations: a command each
//   - source, cluster, unread: the objects, from manifests or a cluster, and what cannot be
//     read
//   - args, query, requestflags, find, kindname: what the arguments name
//   - answer, review: what holds, asked of the server if the user may not list the cluster
//   - evaluate, change, kindchange, rawobjects, creationtime: check and diff, step by step
//   - revision, applyorder: the steps from one revision to another, and in which order;
//     wholechange: what is true of all of them together
//   - authorization: who may remove overrides; clustercheck: a check by dry runs
//   - validate, validatechange, schemaviolations: what the API server would reject or prune
//   - netchange: what changes in the end; redact: values that are not shown
//   - reportflags, reportbuilder, reportpath, reportviolations: reports, and what --fail-on
//     counts
//   - renderedlimits, omittedlimits: what render writes, and what it leaves out
//   - uifeed, uistate: what the page gets
package commands
