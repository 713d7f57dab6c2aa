package certs

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	require.EqualError(t, f.Healthy(nil), "no token of the webhook path yet: "+name+`: not found: provide one token per line, such as the output of "openssl rand -hex 32"`)
	require.NoError(t, f.Problem())

	write(tokA + "\n")
	require.NoError(t, f.Healthy(nil))
	assert.True(t, accepts(tokA))
	assert.False(t, accepts(tokA+"\n"))
	assert.False(t, accepts(""))

	write(tokA + "\r\n\n " + tokB)
	assert.True(t, accepts(tokA) && accepts(tokB))

	for invalid, want := range map[string]string{
		"":                   "invalid token: must be 32 to 128 lower-case letters and digits",
		tokC + "\nX":         "token 2: invalid token: must be 32 to 128 lower-case letters and digits",
		"ghp_" + tokC:        "token 1: invalid token: must be 32 to 128 lower-case letters and digits",
		tokC + "/../" + tokC: "token 1: invalid token: must be 32 to 128 lower-case letters and digits",
	} {
		write(invalid)
		require.ErrorIs(t, f.Problem(), ErrNoToken)
		require.EqualError(t, f.Problem(), name+": "+want+`: provide one token per line, such as the output of "openssl rand -hex 32"; still accepting the previous tokens`)
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
	require.EqualError(t, err, "path tokens: no file given")
	_, err = NewPathTokenFile(PathTokenFileOptions{File: "x", PollInterval: -1})
	require.EqualError(t, err, "path tokens: poll interval must not be negative")
	_, err = NewPathTokens(PathTokensOptions{})
	require.EqualError(t, err, "path tokens: no client for secrets given")
}
