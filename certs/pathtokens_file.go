package certs

import (
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
)

// PathTokenFileOptions configures a PathTokenFile. File is required.
type PathTokenFileOptions struct {
	// File has one token per line. Each is accepted, so that tokens can be rotated.
	File string
	// PollInterval is how often the file is read without a file system event
	// (default DefaultFilePoll).
	PollInterval time.Duration
	// Log gets one line for each new content of the file and for each new error.
	// Tokens are never logged.
	Log logr.Logger
}

// PathTokenFile reads path tokens from a file, if the server does not write the webhook
// configurations. While the file is invalid it accepts the last valid tokens.
type PathTokenFile struct{ *reloadedFile[[]string] }

// NewPathTokenFile returns a PathTokenFile that reads nothing until Start, or the error
// of opts.
func NewPathTokenFile(opts PathTokenFileOptions) (*PathTokenFile, error) {
	file, err := newReloadedFile(reloadedFileOptions[[]string]{
		subject: "path tokens", file: opts.File, poll: opts.PollInterval,
		read:  readTokens,
		equal: func(a, b *[]string) bool { return slices.Equal(*a, *b) },
		logLoaded: func(loaded *[]string) {
			opts.Log.Info("path tokens loaded", "file", opts.File, "tokens", len(*loaded))
		},
		errorMessage: "cannot load path tokens", log: opts.Log,
	})
	if err != nil {
		return nil, err
	}
	return &PathTokenFile{file}, nil
}

func readTokens(files map[string][]byte, name string) (*[]string, error) {
	const remedy = `provide one token per line, such as the output of "openssl rand -hex 32"`
	data, ok := files[name]
	if !ok {
		return nil, &FileError{name, ErrMissing, remedy}
	}
	tokens := strings.Fields(string(data))
	for i, token := range tokens {
		if !tokenPattern.MatchString(token) {
			return nil, &FileError{name, fmt.Errorf("token %d: %w", i+1, ErrNoToken), remedy}
		}
	}
	if len(tokens) == 0 {
		return nil, &FileError{name, ErrNoToken, remedy}
	}
	return &tokens, nil
}

// Accepts reports whether a path with this token is accepted. known is false before
// any token is known.
func (f *PathTokenFile) Accepts(token string) (ok, known bool) {
	tokens := f.current.Load()
	if tokens == nil {
		return false, false
	}
	for _, t := range *tokens {
		same := subtle.ConstantTimeCompare([]byte(t), []byte(token)) == 1
		ok = ok || same
	}
	return ok, true
}

// Healthy is a readiness check: nil once a token is known.
func (f *PathTokenFile) Healthy(*http.Request) error { return f.healthy(ErrNoTokenYet) }

// Problem returns the error of the file while previous tokens are accepted.
func (f *PathTokenFile) Problem() error { return f.problem("still accepting the previous tokens") }
