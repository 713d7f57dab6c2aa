package main

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func settings(pairs ...string) binary {
	out := binary{path: "bin/overrule", built: &debug.BuildInfo{}}
	for i := 0; i < len(pairs); i += 2 {
		out.built.Settings = append(out.built.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
	}
	return out
}

func TestTheTimeIsThatOfTheCommit(t *testing.T) {
	commit := settings("vcs.time", "2026-11-21T16:00:00Z")
	for name, c := range map[string]struct {
		of    binary
		epoch string
		want  time.Time
	}{
		"the commit's":            {commit, "", time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)},
		"SOURCE_DATE_EPOCH's":     {commit, "86400", time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)},
		"nobody knows the commit": {settings(), "", time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.of.moment(c.epoch)
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
	_, err := commit.moment("today")
	require.EqualError(t, err, "SOURCE_DATE_EPOCH=today is no number of seconds since 1970: correct it, or leave it out")
	_, err = settings("vcs.time", "noon").moment("")
	require.ErrorContains(t, err, "bin/overrule: the time of its commit: ")
}

func TestTheRevisionTellsOfFilesThatWereChanged(t *testing.T) {
	assert.Empty(t, settings().revision())
	assert.Equal(t, "abc", settings("vcs.revision", "abc", "vcs.modified", "false").revision())
	assert.Equal(t, "abc-dirty", settings("vcs.revision", "abc", "vcs.modified", "true").revision())
}
