package certs

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// PathFileOptions is what a PathFile needs to know. File is required.
type PathFileOptions struct {
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
type PathFile struct {
	opts   PathFileOptions
	folder folder
	tokens atomic.Pointer[[]string] // nil until the first that are good
	fault  atomic.Pointer[error]    // of the file as it is now
}

// NewPathFile returns a PathFile that reads nothing until Start, or why opts
// cannot be used.
func NewPathFile(opts PathFileOptions) (*PathFile, error) {
	poll := cmp.Or(opts.PollInterval, DefaultFilePoll)
	switch {
	case opts.File == "":
		return nil, errors.New("path tokens: no file given")
	case poll < 0:
		return nil, errors.New("path tokens: poll interval must not be negative")
	}
	return &PathFile{opts: opts, folder: folder{path: filepath.Dir(opts.File), poll: poll, log: opts.Log}}, nil
}

// Start follows the file until ctx ends, and then returns nil. Call it once.
func (f *PathFile) Start(ctx context.Context) error {
	f.folder.follow(ctx, f.look)
	return nil
}

// NeedLeaderElection tells controller-runtime to run a PathFile on every replica.
func (f *PathFile) NeedLeaderElection() bool { return false }

func (f *PathFile) look() {
	tokens, err := f.read()
	before := f.fault.Swap(&err)
	if err != nil {
		if before == nil || *before == nil || (*before).Error() != err.Error() {
			f.opts.Log.Error(err, "the tokens of the webhook path cannot be read")
		}
		return
	}
	if was := f.tokens.Swap(&tokens); was == nil || !slices.Equal(*was, tokens) {
		f.opts.Log.Info("the webhook path ends with a token", "file", f.opts.File, "tokens", len(tokens))
	}
}

func (f *PathFile) read() ([]string, error) {
	const remedy = `put tokens there, one a line, such as "openssl rand -hex 32" makes`
	name := filepath.Base(f.opts.File)
	files, err := f.folder.read(name)
	if err != nil {
		return nil, err
	}
	data, there := files[name]
	if !there {
		return nil, &FileError{f.opts.File, ErrMissing, remedy}
	}
	tokens := strings.Fields(string(data))
	for i, token := range tokens {
		if !tokenPattern.MatchString(token) {
			return nil, &FileError{f.opts.File, fmt.Errorf("number %d is %w", i+1, ErrNoToken), remedy}
		}
	}
	if len(tokens) == 0 {
		return nil, &FileError{f.opts.File, ErrNoToken, remedy}
	}
	return tokens, nil
}

// Accepts reports whether a path that ends with a token may be called. known is
// false as long as no token is known.
func (f *PathFile) Accepts(token string) (ok, known bool) {
	tokens := f.tokens.Load()
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
func (f *PathFile) Healthy(*http.Request) error {
	if f.tokens.Load() != nil {
		return nil
	}
	if fault := f.fault.Load(); fault != nil && *fault != nil {
		return fmt.Errorf("%w: %w", ErrNoTokenYet, *fault)
	}
	return ErrNoTokenYet
}

// Problem returns what is wrong with the file though tokens are known.
func (f *PathFile) Problem() error {
	if fault := f.fault.Load(); fault != nil && *fault != nil && f.tokens.Load() != nil {
		return fmt.Errorf("%w; accepting the tokens before them", *fault)
	}
	return nil
}
