package report

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// junitElement is what the schema of Jenkins (junit-4.xsd) allows in an element: required
// attributes, optional ones, and children in their order.
type junitElement struct{ required, optional, children string }

var junitElements = map[string]junitElement{
	"testsuites": {"", "name time tests failures disabled errors", "testsuite"},
	"testsuite":  {"name tests", "failures errors time disabled skipped timestamp hostname id package", "properties testcase system-out system-err"},
	"properties": {"", "", "property"},
	"property":   {"name value", "", ""},
	"testcase":   {"name", "assertions time classname status", "skipped error failure system-out system-err"},
	"failure":    {"", "type message", ""},
	"error":      {"", "type message", ""},
	"system-out": {},
	"system-err": {},
	"skipped":    {},
}

// requireJUnit fails if a document does not match the schema of Jenkins.
func requireJUnit(t *testing.T, data []byte) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(data)))
	type open struct {
		junitElement
		name string
		last int // index of the last child in the order of children
	}
	var stack []open
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			rule, known := junitElements[name]
			require.True(t, known, "element %s", name)
			if len(stack) == 0 {
				require.Contains(t, []string{"testsuites", "testsuite"}, name)
			} else {
				parent := &stack[len(stack)-1]
				at := slices.Index(strings.Fields(parent.children), name)
				require.GreaterOrEqual(t, at, parent.last, "%s in %s", name, parent.name)
				parent.last = at
			}
			var attributes []string
			for _, a := range e.Attr {
				attributes = append(attributes, a.Name.Local)
			}
			assert.Subset(t, attributes, strings.Fields(rule.required), name)
			assert.Subset(t, strings.Fields(rule.required+" "+rule.optional), attributes, name)
			stack = append(stack, open{junitElement: rule, name: name})
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	assert.Empty(t, stack)
}
