package report

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
)

// noDuration is the time of test suites: nothing is measured.
const noDuration = "0.000"

// junitText returns the report as a JUnit test suite with the name of the command.
//
// The test cases of check and diff are the objects: a denied object fails, whatever the
// exit code of the command is. With WarningsFail, an object with warnings fails as well;
// otherwise its warnings are in the output of the test case. The test cases of violations
// are the findings; without any, one test case passes.
func junitText(r *Report) ([]byte, error) {
	suite := junit.Testsuite{Name: xmlText("overrule " + r.Command), Time: noDuration}
	if r.Version != "" {
		suite.AddProperty("version", xmlText(r.Version))
	}
	for _, c := range r.testcases() {
		suite.AddTestcase(c)
	}
	var suites junit.Testsuites
	suites.AddSuite(suite)
	out := bytes.NewBufferString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	err := suites.WriteXML(out)
	return out.Bytes(), err
}

func (r *Report) testcases() []junit.Testcase {
	var out []junit.Testcase
	none, rows := "no changed objects", r.rows()
	if r.Command == "violations" {
		none = "no violations"
		for _, w := range rows {
			name := string(w.Code) + " " + w.Object.Key()
			if w.on != "" {
				name += " on " + w.on
			}
			if w.Rule != "" {
				name += " " + w.Rule
			}
			out = append(out, r.testcase(Object{Ref: w.Object, Allowed: true}, name, w))
		}
	} else {
		for _, o := range r.tested(rows) {
			name := o.Ref.Key()
			if o.Operation != "" {
				name += " (" + o.Operation + ")"
			}
			out = append(out, r.testcase(o.Object, name, o.rows...))
		}
	}
	if len(out) == 0 {
		out = append(out, r.testcase(Object{Ref: api.Ref{Kind: r.Command}, Allowed: true}, none))
	}
	return out
}

// testedObject is an object with its findings, the most severe first.
type testedObject struct {
	Object
	rows []row
}

// tested returns the objects in their order, followed by those that only a finding names.
func (r *Report) tested(rows []row) []testedObject {
	type key struct{ object, operation string }
	at := make(map[key]int)
	var out []testedObject
	for _, o := range r.Objects {
		k := key{o.Ref.Group + "/" + o.Ref.String(), o.Operation}
		if _, ok := at[k]; !ok {
			at[k] = len(out)
		}
		out = append(out, testedObject{Object: o})
	}
	for _, w := range rows {
		k := key{w.Object.Group + "/" + w.Object.String(), w.Operation}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, testedObject{Object: Object{Ref: w.Object, Operation: w.Operation, Allowed: w.Severity != Error, At: w.At}})
		}
		out[i].rows = append(out[i].rows, w)
	}
	return out
}

func (r *Report) testcase(o Object, name string, rows ...row) junit.Testcase {
	out := junit.Testcase{Classname: xmlText(o.Ref.Kind), Name: xmlText(printers.OneLine(name)), Time: noDuration}
	var lines []string
	if r.Command == "diff" && o.Operation != "" {
		lines = append(lines, r.changesOf(o))
	}
	for _, w := range rows {
		lines = append(lines, w.line)
	}
	text := xmlText(strings.Join(lines, "\n"))
	switch {
	case len(rows) > 0 && (rows[0].Severity == Error || r.WarningsFail && rows[0].Severity == Warning):
		message := rows[0].Message
		if end := strings.IndexAny(message, "\r\n"); end >= 0 {
			message = message[:end]
		}
		out.Failure = &junit.Result{Message: xmlText(message), Type: xmlText(string(rows[0].Code)), Data: text}
	case !o.Allowed:
		out.Failure = &junit.Result{Message: "denied", Type: "Denied", Data: text}
	case text != "":
		out.SystemOut = &junit.Output{Data: text}
	}
	return out
}

func (r *Report) changesOf(o Object) string {
	n := 0
	for _, c := range r.Changes {
		if c.Object == o.Ref && c.Operation == o.Operation {
			n++
		}
	}
	return api.ChangesSummary(n, "", o.Moved)
}

// xmlText replaces what XML 1.0 cannot contain: control characters, and bytes that are
// not UTF-8.
func xmlText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t', r == '\n':
			return r
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0xfffe, r == 0xffff:
			return utf8.RuneError
		}
		return r
	}, s)
}
