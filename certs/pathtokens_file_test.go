package certs

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
)

func TestTokensOfAFileAreAccepted(t *testing.T) {
	var log logBuffer
	name := filepath.Join(t.TempDir(), "tokens")
	f, err := NewPathTokenFile(PathTokenFileOptions{File: name, Log: funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})})
	require.NoError(t, err)
	write := func(content string) {
		t.Helper()
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
		f.reload()
	}
	accepts := func(token string) bool {
		ok, known := f.Accepts(token)
		assert.True(t, known)
		return ok
	}
	require.ErrorIs(t, f.Healthy(nil), ErrNoTokenYet)
	_, known := f.Accepts("")
	assert.False(t, known)
	f.reload()
	require.ErrorIs(t, f.Healthy(nil), ErrNoTokenYet)
	assertFileError(t, f.Healthy(nil), filepath.Dir(name), filepath.Base(name), ErrMissing)
	require.NoError(t, f.Problem())

	write(tokA + "\n")
	require.NoError(t, f.Healthy(nil))
	assert.True(t, accepts(tokA))
	assert.False(t, accepts(tokA+"\n"))
	assert.False(t, accepts(""))

	write(tokA + "\r\n\n " + tokB)
	assert.True(t, accepts(tokA) && accepts(tokB))

	for _, invalid := range []struct {
		text string
		is   error
		line string // of the invalid token
	}{
		{"", ErrNoToken, ""},
		{tokC + "\nX", ErrNoToken, "token 2: "},
		{"ghp_" + tokC, ErrNoToken, "token 1: "},
		{tokC + "/../" + tokC, ErrNoToken, "token 1: "},
		{strings.Repeat(tokC+"\n", fileLimit/len(tokC)), ErrTooLarge, ""},
	} {
		write(invalid.text)
		assertFileError(t, f.Problem(), filepath.Dir(name), filepath.Base(name), invalid.is)
		require.ErrorContains(t, f.Problem(), invalid.line)
		require.NoError(t, f.Healthy(nil))
		assert.True(t, accepts(tokA) && accepts(tokB))
		assert.False(t, accepts(tokC))
	}

	write(tokB)
	require.NoError(t, f.Problem())
	assert.False(t, accepts(tokA), "removed tokens are not accepted any more")
	assert.True(t, accepts(tokB))
	for _, token := range []string{tokA, tokB, tokC} {
		assert.NotContains(t, log.String(), token)
	}
}

func TestTokenFileIsReloaded(t *testing.T) {
	name := filepath.Join(t.TempDir(), "tokens")
	f, err := NewPathTokenFile(PathTokenFileOptions{File: name})
	require.NoError(t, err)
	assert.False(t, f.NeedLeaderElection(), "every replica needs the tokens")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Start(ctx) }()
	require.NoError(t, os.WriteFile(name, []byte(tokA), 0o600))
	require.Eventually(t, func() bool { return f.Healthy(nil) == nil }, time.Minute, time.Millisecond)
	cancel()
	assert.NoError(t, <-done)
}

func TestInvalidPathTokenOptions(t *testing.T) {
	_, err := NewPathTokenFile(PathTokenFileOptions{})
	require.ErrorContains(t, err, "file")
	messages.Golden(t, err.Error())
	_, err = NewPathTokenFile(PathTokenFileOptions{File: "x", PollInterval: -1})
	require.ErrorContains(t, err, "poll interval")
	messages.Golden(t, err.Error())
	_, err = NewPathTokens(PathTokensOptions{})
	require.ErrorContains(t, err, "client for secrets")
	messages.Golden(t, err.Error())
}
