package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jstemmer/go-junit-report/v2/junit"

	api "overrule.dev/overrule/api/v1alpha1"
)

// noDuration is the time of test suites: nothing is measured.
const noDuration = "0.000"

// JUnit returns the report as a JUnit test suite with the name of the command.
//
// The test cases of check and diff are the objects: a denied object fails, whatever the
// exit code of the command is. With warningsFail, an object with warnings fails as well;
// otherwise its warnings are in the output of the test case. The test cases of violations
// are the findings; without any, one test case passes.
func (r *Report) JUnit(warningsFail bool) ([]byte, error) {
	suite := junit.Testsuite{Name: xmlText("overrule " + r.Command), Time: noDuration}
	if r.Version != "" {
		suite.AddProperty("version", xmlText(r.Version))
	}
	for _, c := range r.testcases(warningsFail) {
		suite.AddTestcase(c)
	}
	var suites junit.Testsuites
	suites.AddSuite(suite)
	out := bytes.NewBufferString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n")
	if err := suites.WriteXML(out); err != nil {
		return nil, fmt.Errorf("JUnit report: %w", err)
	}
	return out.Bytes(), nil
}

func (r *Report) testcases(warningsFail bool) []junit.Testcase {
	var out []junit.Testcase
	if r.Command == "violations" {
		for _, f := range r.sorted() {
			out = append(out, violationCase(f, warningsFail))
		}
		if len(out) == 0 {
			out = append(out, passed("violations", "no violations"))
		}
		return out
	}
	for _, o := range r.tested() {
		out = append(out, r.objectCase(o, warningsFail))
	}
	if len(out) == 0 {
		out = append(out, passed(r.Command, "no changed objects"))
	}
	return out
}

// testedObject is an object with its findings, the most severe first.
type testedObject struct {
	Object
	findings []Finding
}

// tested returns the objects in their order, followed by those that only a finding names.
func (r *Report) tested() []testedObject {
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
	for _, f := range r.sorted() {
		k := key{f.Object.Group + "/" + f.Object.String(), f.Operation}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, testedObject{Object: Object{Ref: f.Object, Operation: f.Operation, Allowed: f.Severity != Error, At: f.At}})
		}
		out[i].findings = append(out[i].findings, f)
	}
	return out
}

func (r *Report) objectCase(o testedObject, warningsFail bool) junit.Testcase {
	name := o.Ref.Key()
	if o.Operation != "" {
		name += " (" + o.Operation + ")"
	}
	c := passed(o.Ref.Kind, name)
	var text []string
	if r.Command == "diff" {
		text = append(text, r.changesOf(o.Object))
	}
	for _, f := range o.findings {
		text = append(text, f.line())
	}
	all := xmlText(strings.Join(text, "\n"))
	switch {
	case len(o.findings) > 0 && fails(o.findings[0], warningsFail):
		c.Failure = failure(o.findings[0], all)
	case !o.Allowed:
		c.Failure = &junit.Result{Message: "denied", Type: "Denied", Data: all}
	case all != "":
		c.SystemOut = &junit.Output{Data: all}
	}
	return c
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

func violationCase(f Finding, warningsFail bool) junit.Testcase {
	name := string(f.Code) + " " + f.Object.Key()
	if len(f.Path) > 0 {
		name += " on " + api.PathText(f.Path)
	}
	if f.Rule != "" {
		name += " " + f.Rule
	}
	c := passed(f.Object.Kind, name)
	if fails(f, warningsFail) {
		c.Failure = failure(f, xmlText(f.line()))
	} else {
		c.SystemOut = &junit.Output{Data: xmlText(f.line())}
	}
	return c
}

func fails(f Finding, warningsFail bool) bool {
	return f.Severity == Error || warningsFail && f.Severity == Warning
}

func failure(f Finding, text string) *junit.Result {
	return &junit.Result{Message: xmlText(firstLine(f.Message)), Type: xmlText(string(f.Code)), Data: text}
}

func passed(class, name string) junit.Testcase {
	return junit.Testcase{Classname: xmlText(class), Name: xmlText(oneLine(name)), Time: noDuration}
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
