package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of "go test -json" (see "go doc test2json").
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds
	// ImportPath is the package of build-output; FailedBuild is that of the build that
	// failed for a test.
	ImportPath, FailedBuild string
}

// slow is the time, in seconds, from which on a test that passed is listed.
const slow = 10

// results collects the events of one "go test -json", which are written to it.
type results struct {
	out      io.Writer
	line     bytes.Buffer // an incomplete one
	output   map[[2]string]*strings.Builder
	other    strings.Builder // what is no event, and output of builds
	passed   int
	failures []failure
}

func newResults(out io.Writer) *results {
	return &results{out: out, output: make(map[[2]string]*strings.Builder)}
}

// Write implements io.Writer.
func (r *results) Write(p []byte) (int, error) {
	for _, b := range p {
		r.line.WriteByte(b)
		if b == '\n' {
			r.add(r.line.Bytes())
			r.line.Reset()
		}
	}
	return len(p), nil
}

func (r *results) add(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		_, _ = r.out.Write(line)
		r.other.Write(line)
		return
	}
	root, _, _ := strings.Cut(e.Test, "/") // its subtests run again with it
	switch e.Action {
	case "build-output":
		r.other.WriteString(e.Output)
	case "output":
		r.outputOf(e.Package, root).WriteString(e.Output)
		if e.Test == "" && (strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "FAIL\t")) {
			_, _ = io.WriteString(r.out, e.Output)
		}
	case "pass", "skip":
		if e.Test == "" && e.Action == "pass" {
			r.passed++
		}
		if e.Test != "" && e.Test == root && e.Elapsed >= slow {
			_, _ = fmt.Fprintf(r.out, "     %6.1f s for %s.%s\n", e.Elapsed, e.Package, e.Test)
		}
		if e.Test == root {
			delete(r.output, [2]string{e.Package, root})
		}
	case "fail":
		r.fail(e)
	}
}

func (r *results) outputOf(pkg, test string) *strings.Builder {
	key := [2]string{pkg, test}
	if r.output[key] == nil {
		r.output[key] = &strings.Builder{}
	}
	return r.output[key]
}

// fail records a failed test, or a failed package without one.
func (r *results) fail(e event) {
	if strings.Contains(e.Test, "/") {
		return
	}
	if e.Test == "" && slices.ContainsFunc(r.failures, func(f failure) bool { return f.pkg == e.Package }) {
		return
	}
	f := failure{pkg: e.Package, test: e.Test}
	switch {
	case e.FailedBuild != "":
		f.output = r.other.String()
	case e.Test == "": // it exited, and its tests have not ended
		f.output = r.remaining(e.Package)
	default:
		f.output = r.outputOf(e.Package, e.Test).String()
	}
	r.failures = append(r.failures, f)
	_, _ = fmt.Fprintf(r.out, "--- FAIL: %s\n", f)
}

// remaining returns the output of the tests of a package that have not ended, and its own.
func (r *results) remaining(pkg string) string {
	var out strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(r.output), func(a, b [2]string) int { return strings.Compare(b[1], a[1]) }) {
		if key[0] == pkg {
			out.WriteString(r.output[key].String())
		}
	}
	return out.String()
}
