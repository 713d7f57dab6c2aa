package main

import (
	"errors"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResultsOfAllFilesAreRead(t *testing.T) {
	got, err := readAll([]string{"testdata/growth.txt", "testdata/growth.txt"}, nil)
	require.NoError(t, err)
	assert.Len(t, got, 30)
	assert.Equal(t, "Growth/route-write/routes=1000-2", got[0].Name.String())
	assert.Equal(t, "Event/route-2", got[29].Name.String())
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		in   io.Reader
		want string
	}{
		"a flag that is not there": {[]string{"-nothing"}, nil, "flag provided but not defined: -nothing"},
		"a file that is not there": {[]string{"testdata/nothing.txt"}, nil, "read the results: open testdata/nothing.txt: no such file or directory"},
		"a line that breaks off":   {nil, strings.NewReader("BenchmarkEvent 1 20 ns/op 3\n"), "read the results: standard input:1: missing units"},
		"an input that breaks off": {nil, iotest.ErrReader(errors.New("the pipe is closed")), "read the results: standard input:0: the pipe is closed"},
		"a folder that is not there": {
			[]string{"-svg", filepath.Join("testdata", "nowhere", "curves.svg"), "testdata/growth.txt"}, nil,
			"write the curves: open testdata/nowhere/curves.svg: no such file or directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.EqualError(t, run(test.args, test.in, io.Discard), test.want)
		})
	}
	assert.ErrorIs(t, run([]string{"-h"}, nil, io.Discard), flag.ErrHelp)
}
