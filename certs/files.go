package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// DefaultFilePoll is the default of FilesOptions.PollInterval.
const DefaultFilePoll = 10 * time.Second

// FilesOptions configures Files. Dir and Name are required.
type FilesOptions struct {
	// Dir has CertFile, KeyFile and, to publish a CA bundle, CAFile.
	Dir string
	// Name is the server name that clients verify: the first of ServiceNames.
	Name string
	// RequireCA makes a missing CAFile an error.
	RequireCA bool
	// PollInterval is how often the files are read without a file system event
	// (default DefaultFilePoll).
	PollInterval time.Duration
	// TrustedBundle, if set, reads the published bundles that clients verify the
	// server with. A certificate of a new authority is then pending until they
	// contain the authority, and CABundle keeps the previous authorities of the
	// files for one hour. It must honour ctx.
	TrustedBundle func(ctx context.Context) ([]TrustedBundle, error)
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
	// Log gets one line for each certificate and for each new error.
	Log logr.Logger
}

// Files is a Source that reads files. It serves the last certificate that was valid
// and trusted by clients, also while the files are invalid.
type Files struct {
	*bundleOverlap
	opts           FilesOptions
	watcher        fileWatcher
	serving        atomic.Pointer[certPair]    // nil until the first valid one
	pending        atomic.Pointer[pendingCert] // nil if none is pending
	lastErr        lastError                   // of the last read of the files
	loadTrustedErr atomic.Pointer[error]       // of LoadTrusted
}

var _ Source = (*Files)(nil)

// NewFiles returns a Files that reads nothing until Start, or all errors of opts.
func NewFiles(opts FilesOptions) (*Files, error) {
	opts.PollInterval = cmp.Or(opts.PollInterval, DefaultFilePoll)
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	var errs []error
	if opts.Dir == "" {
		errs = append(errs, errors.New("certificates: no directory of files given"))
	}
	if opts.Name == "" {
		errs = append(errs, errors.New("certificates: no name to serve given"))
	}
	if opts.PollInterval < 0 {
		errs = append(errs, errors.New("certificates: poll interval must not be negative"))
	}
	f := &Files{opts: opts, bundleOverlap: newBundleOverlap(0)}
	if opts.TrustedBundle != nil {
		f.bundleOverlap = newBundleOverlap(overlapDuration)
	}
	f.watcher = fileWatcher{path: opts.Dir, poll: opts.PollInterval, log: opts.Log, fastPoll: func() bool { return f.pending.Load() != nil }}
	return f, errors.Join(errs...)
}

// Start watches the files until ctx ends, and then returns nil. Call it once. After
// it returned the last certificate is still served.
func (f *Files) Start(ctx context.Context) error {
	f.watcher.watch(ctx, func() { f.reload(ctx) })
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves
// a certificate.
func (f *Files) NeedLeaderElection() bool { return false }

// reload reads the files, and serves their certificate if it is valid and trusted.
func (f *Files) reload(ctx context.Context) {
	now := f.opts.Clock.Now()
	p := f.usablePair(now)
	if p == nil {
		f.dropExpired(now)
		return
	}
	pending := f.pendingFor(ctx, p, now)
	f.setAuthorities(p.ca, now) // before clients can get a certificate that it verifies
	f.pending.Store(pending)
	if pending != nil || p.equal(f.serving.Load()) {
		return
	}
	f.serving.Store(p)
	f.opts.Log.Info("serving a new certificate", "file", f.path(CertFile), "notAfter", formatTime(p.tls.Leaf.NotAfter))
}

// usablePair returns the pair of the files or, while they are invalid, the valid one
// that is pending; nil for none.
func (f *Files) usablePair(now time.Time) *certPair {
	p, err := f.read()
	f.recordError(err)
	if err == nil {
		return p
	}
	if pending := f.pending.Load(); pending != nil && pending.pair.validate(f.opts.Name, now) == nil {
		return pending.pair
	}
	f.pending.Store(nil)
	return nil
}

func (f *Files) read() (*certPair, error) {
	files, err := f.watcher.read(CertFile, KeyFile, CAFile)
	if err != nil {
		return nil, err
	}
	p, err := readCertPair(files)
	switch {
	case err != nil:
	case len(p.ca) == 0 && (f.opts.RequireCA || f.CABundle() != nil):
		err = &FileError{CAFile, ErrMissing, "provide the CA that signed " + CertFile}
	default:
		err = p.validate(f.opts.Name, f.opts.Clock.Now())
	}
	if fileErr, ok := errors.AsType[*FileError](err); ok {
		fileErr.Path = f.path(fileErr.Path)
	}
	return p, err
}

func (f *Files) path(name string) string { return filepath.Join(f.opts.Dir, name) }

// recordError stores the result of a read of the files, and logs changes.
func (f *Files) recordError(err error) {
	previous := f.lastErr.get()
	changed := f.lastErr.set(err)
	switch {
	case err == nil && previous != nil:
		f.opts.Log.Info("certificate files are valid again", "directory", f.opts.Dir)
	case err != nil && changed:
		f.opts.Log.Error(err, "invalid certificate files", "serving", f.describeServed())
	}
}

// describeServed describes the serving certificate for messages.
func (f *Files) describeServed() string {
	if p := f.serving.Load(); p != nil {
		return "the previous certificate, which expires at " + formatTime(p.tls.Leaf.NotAfter)
	}
	return "nothing"
}

// Problem returns the error of the files, or what a pending certificate waits for,
// while a certificate is served; else nil.
func (f *Files) Problem() error {
	fileErr, p, pending, loadErr := f.lastErr.get(), f.serving.Load(), f.pending.Load(), f.loadTrustedErr.Load()
	switch {
	case p == nil:
		return nil
	case loadErr != nil && *loadErr != nil:
		return fmt.Errorf("the webhook configurations are not written: %w", *loadErr)
	case fileErr != nil:
		return fmt.Errorf("%w; serving %s", fileErr, f.describeServed())
	case pending != nil:
		return fmt.Errorf("%w; serving %s", pending.reason(f.path(CertFile)), f.describeServed())
	case nearExpiry(p.tls, f.opts.Clock.Now()):
		return &FileError{f.path(CertFile), fmt.Errorf("expires at %s", formatTime(p.tls.Leaf.NotAfter)), "renew it"}
	}
	return nil
}

// nearExpiry reports whether less than a tenth of the lifetime of a certificate is
// left.
func nearExpiry(c *tls.Certificate, now time.Time) bool {
	return c.Leaf.NotAfter.Sub(now) < c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)/10
}

// GetCertificate implements Source.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p := f.serving.Load()
	if p == nil {
		return nil, f.withCause(ErrNotReady)
	}
	return p.tls, nil
}

// Healthy implements Source. It ignores invalid files while the previous certificate
// is valid: see Problem.
func (f *Files) Healthy(*http.Request) error {
	p := f.serving.Load()
	if p == nil {
		return f.withCause(ErrNotReady)
	}
	if end := p.tls.Leaf.NotAfter; f.opts.Clock.Now().After(end) {
		return f.withCause(fmt.Errorf("serving certificate expired at %s", formatTime(end)))
	}
	return nil
}

// withCause adds to err the error of the files, or what a pending certificate waits
// for.
func (f *Files) withCause(err error) error {
	if pending := f.pending.Load(); pending != nil && f.lastErr.get() == nil && f.serving.Load() == nil {
		return fmt.Errorf("%w: %w", err, pending.reason(f.path(CertFile)))
	}
	return f.lastErr.wrap(err)
}
