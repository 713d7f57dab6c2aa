package editdistance

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClosest(t *testing.T) {
	for name, c := range map[string]struct {
		word string
		of   []string
		want string
	}{
		"the word itself":                     {"host", []string{"hosts", "host"}, "host"},
		"another case":                        {"HOST", []string{"path", "host"}, "host"},
		"letters swapped count once":          {"hots", []string{"path", "host"}, "host"},
		"a letter more":                       {"hosst", []string{"path", "host"}, "host"},
		"a letter less":                       {"hst", []string{"path", "host"}, "host"},
		"two letters of six":                  {"mexxod", []string{"method"}, "method"},
		"the nearer of two":                   {"abcdef", []string{"abxdxf", "abcdeg"}, "abcdeg"},
		"the first of two that are as near":   {"hosa", []string{"host", "hose"}, "host"},
		"two letters of four are another":     {"hoxx", []string{"host"}, ""},
		"three letters of twelve are another": {"abcdefghixxx", []string{"abcdefghijkl"}, ""},
		"a short word has no slip":            {"ip", []string{"id"}, ""},
		"nothing":                             {"", []string{"id"}, ""},
		"none":                                {"id", nil, ""},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, Closest(c.word, c.of)) })
	}
}
