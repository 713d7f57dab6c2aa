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

// PathFileOptions is what a PathFile needs to know. File is required.
type PathTokenFileOptions struct {
	// File holds tokens, one a line: each is accepted. So one can follow another.
	File string
	// PollInterval is how often the file is read even if no event of the file
	// system came (default DefaultFilePoll).
	PollInterval time.Duration
	// Log takes one line for each new content of the file, and for each new fault.
	// It is never given a token.
	Log logr.Logger
}

// PathFile is the tokens of a webhook's path where others keep the webhook
// configurations. It accepts the last tokens that were good, for as long as the
// file holds anything else.
type PathTokenFile struct{ *watchedFile[[]string] }

// NewPathFile returns a PathFile that reads nothing until Start, or why opts
// cannot be used.
func NewPathTokenFile(opts PathTokenFileOptions) (*PathTokenFile, error) {
	file, err := newWatchedFile(watchedFileOptions[[]string]{
		subject: "path tokens", file: opts.File, poll: opts.PollInterval,
		read:  readTokens,
		equal: func(was, now *[]string) bool { return slices.Equal(*was, *now) },
		logLoaded: func(now *[]string) {
			opts.Log.Info("path tokens loaded", "file", opts.File, "tokens", len(*now))
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
	data, there := files[name]
	if !there {
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

// Accepts reports whether a path that ends with a token may be called. known is
// false as long as no token is known.
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

// Healthy is a readiness check: nil once there is a token to accept.
func (f *PathTokenFile) Healthy(*http.Request) error { return f.healthy(ErrNoTokenYet) }

// Problem returns what is wrong with the file though tokens are known.
func (f *PathTokenFile) Problem() error { return f.problem("still accepting the previous tokens") }
