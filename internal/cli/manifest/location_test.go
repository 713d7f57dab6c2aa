package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const located = `# a comment
apiVersion: example.com/v1
kind: Policy
metadata:
  name: p
  annotations: {a.b/c: x, "d é": y}
spec:
  base: &base
    when: [a, b]
  limits:
    a: {rates: []}
    a.b:
      rates:
      - limit: 5
        unit: s
      - {limit: 6}
  rules:
    <<: *base
    'it''s': 1
    copy: *base
  targetRefs:
    - kind: Gateway
      name: g
    -   "plain \" text"
    - *base
  ünïcode: {käy: 1, &anchor other: 2}
`

// readText reads the objects of a text.
func readText(t *testing.T, text string) *Set {
	t.Helper()
	set, err := Read([]string{"-"}, strings.NewReader(text))
	require.NoError(t, err)
	return set
}

func place(l Location) string { return fmt.Sprintf("%d:%d-%d", l.Line, l.Column, l.EndColumn) }

func TestLocate(t *testing.T) {
	o := readText(t, located).Objects[0]
	for field, want := range map[string]string{
		"":                                 "2:1-11",
		"kind":                             "3:1-5",
		"metadata.name":                    "5:3-7",
		"metadata.labels":                  "4:1-9",
		"metadata.annotations[a.b/c]":      "6:17-22",
		"metadata.annotations.a.b/c":       "6:17-22",
		"metadata.annotations.d é":         "6:27-32",
		"spec.limits.a":                    "11:5-6",
		"spec.limits.a.rates":              "11:9-14",
		"spec.limits.a.rates[0].limit":     "11:9-14",
		"spec.limits.a.b":                  "12:5-8",
		"spec.limits[a.b]":                 "12:5-8",
		`spec.limits["a.b"].rates`:         "13:7-12",
		"spec.limits['a.b'].rates[0]":      "14:9-14",
		"spec.limits.a.b.rates[0].unit":    "15:9-13",
		"spec.limits.a.b.rates[1]":         "16:9-10",
		"spec.limits.a.b.rates.1.limit":    "16:10-15",
		"spec.limits.a.b.rates[2].limit":   "13:7-12",
		"spec.limits.a.b.rates[x]":         "13:7-12",
		"spec.limits.a.b.rates[1":          "13:7-12",
		"spec.rules.when[1]":               "9:15-16",
		"spec.rules.it's":                  "19:5-12",
		"spec.rules.copy":                  "20:5-9",
		"spec.rules.copy.when":             "9:5-9",
		"spec.targetRefs":                  "21:3-13",
		"spec.targetRefs[0].name":          "23:7-11",
		"spec.targetRefs[1]":               "24:9-24",
		"spec.targetRefs[2]":               "25:7-12",
		"spec.targetRefs[2].when":          "9:5-9",
		"spec.ünïcode.käy":                 "26:13-16",
		"spec.ünïcode.other":               "26:29-34",
		"spec.unknown.below":               "7:1-5",
		"unknown":                          "2:1-11",
		"spec.limits[a.b].rates[0].limit.": "14:9-14",
	} {
		assert.Equal(t, want, place(o.Locate(field)), field)
		assert.Equal(t, "-", o.Locate(field).File)
	}
}

func TestLocateIsTheSameWithOtherLineEndsAndAByteOrderMark(t *testing.T) {
	o := readText(t, "\uFEFF"+strings.ReplaceAll(located, "\n", "\r\n")).Objects[0]
	assert.Equal(t, "15:9-13", place(o.Locate("spec.limits.a.b.rates[0].unit")))
	assert.Equal(t, "24:9-24", place(o.Locate("spec.targetRefs[1]")))
	assert.Equal(t, "2:1-11", place(o.Locate("")))
}

func TestLocateInListsAndDocuments(t *testing.T) {
	set := readText(t, `# first
---
kind: A
apiVersion: v1
--- # second

apiVersion: v1
kind: List
items:
- kind: A
  apiVersion: v1
  metadata: {name: a}
- kind: List
  apiVersion: v1
  items:
  - apiVersion: v1
    kind: A
    metadata:
      name: nested
---
apiVersion: v1
kind: AList
items:
- metadata: {name: typed}
`)
	require.Len(t, set.Objects, 4)
	assert.Equal(t, "3:1-5", place(set.Objects[0].Locate("")))
	assert.Equal(t, "12:14-18", place(set.Objects[1].Locate("metadata.name")))
	assert.Equal(t, "16:5-15", place(set.Objects[2].Locate("")))
	assert.Equal(t, "19:7-11", place(set.Objects[2].Locate("metadata.name")))
	assert.Equal(t, "24:14-18", place(set.Objects[3].Locate("metadata.name")))
	assert.Equal(t, "24:3-11", place(set.Objects[3].Locate("kind")), "an item of a typed list has no kind of its own")
	assert.Same(t, set.Objects[1].origin.text, set.Objects[2].origin.text)
}

func TestLocateInJSON(t *testing.T) {
	o := readText(t, "{\n\t\"apiVersion\": \"v1\", \"kind\": \"A\",\n\t\"spec\": {\"a\\\"b\": [1, {\"c\": 2}]}}").Objects[0]
	assert.Equal(t, "1:1-2", place(o.Locate("")))
	assert.Equal(t, "2:22-28", place(o.Locate("kind")))
	assert.Equal(t, "3:11-17", place(o.Locate(`spec.a"b`)))
	assert.Equal(t, "3:24-27", place(o.Locate(`spec.a"b[1].c`)))
	assert.Equal(t, "3:20-21", place(o.Locate(`spec["a\"b"][0]`)))
}

func TestLocateWithoutAFileNamesTheSource(t *testing.T) {
	set, err := FromObjects("the cluster", []map[string]any{{"kind": "A", "apiVersion": "v1"}})
	require.NoError(t, err)
	assert.Equal(t, Location{File: "the cluster"}, set.Objects[0].Locate("kind"))
}
