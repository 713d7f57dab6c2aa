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

// DefaultFilePoll is FilesOptions.PollInterval if it does not say otherwise.
const DefaultFilePoll = 10 * time.Second

// FilesOptions is what Files needs to know. Dir and Name are required.
type FilesOptions struct {
	// Dir holds CertFile, KeyFile and, if clients are to be told, CAFile.
	Dir string
	// Name is the one that clients verify: the first of ServiceNames.
	Name string
	// NeedCA makes it a fault if there is no CAFile.
	RequireCA bool
	// PollInterval is how often the files are read even if no event of the file
	// system came (default DefaultFilePoll).
	PollInterval time.Duration
	// Standing, if set, reads the bundles that clients verify the server by, where
	// somebody writes CABundle to them. A certificate of a wholly new authority is
	// then held until it stands there, and CABundle has the authorities that the
	// files had before for an hour more. It must honour ctx.
	TrustedBundle func(ctx context.Context) ([]TrustedBundle, error)
	// Clock is the real one if nil.
	Clock clock.PassiveClock
	// Log takes one line for each certificate, and for each new fault.
	Log logr.Logger
}

// Files is a Source whose certificate others write into files. It serves the
// last pair that was good and that clients trust, for as long as the files hold
// anything else.
type Files struct {
	*bundleOverlap
	opts           FilesOptions
	dir            directory
	serving        atomic.Pointer[certPair]    // nil until the first that is good
	pending        atomic.Pointer[pendingCert] // nil for nothing
	lastErr        lastError                   // of the files as they are now
	loadTrustedErr atomic.Pointer[error]       // why Recall has failed
}

var _ Source = (*Files)(nil)

// NewFiles returns a Files that reads nothing until Start, or every reason why
// opts cannot be used.
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
	f.dir = directory{path: opts.Dir, poll: opts.PollInterval, log: opts.Log, fastPoll: func() bool { return f.pending.Load() != nil }}
	return f, errors.Join(errs...)
}

// Start follows the files until ctx ends, and then returns nil. Call it once.
// The last certificate is still served after it has returned.
func (f *Files) Start(ctx context.Context) error {
	f.dir.watch(ctx, func() { f.reload(ctx) })
	return nil
}

// NeedLeaderElection tells controller-runtime to run Files on every replica.
func (f *Files) NeedLeaderElection() bool { return false }

// look reads the files, and serves what they hold if that is good and trusted.
func (f *Files) reload(ctx context.Context) {
	now := f.opts.Clock.Now()
	p := f.usablePair(now)
	if p == nil {
		f.dropExpired(now)
		return
	}
	held := f.pendingFor(ctx, p, now)
	f.setAuthorities(p.ca, now) // before anybody sees what it verifies
	f.pending.Store(held)
	if held != nil || p.equal(f.serving.Load()) {
		return
	}
	f.serving.Store(p)
	f.opts.Log.Info("serving a new certificate", "file", f.path(CertFile), "notAfter", formatTime(p.tls.Leaf.NotAfter))
}

// good returns the pair to go by: that of the files or, while they are bad, the
// good one that is held; nil for none.
func (f *Files) usablePair(now time.Time) *certPair {
	p, err := f.read()
	f.recordError(err)
	if err == nil {
		return p
	}
	if h := f.pending.Load(); h != nil && h.pair.validate(f.opts.Name, now) == nil {
		return h.pair
	}
	f.pending.Store(nil)
	return nil
}

func (f *Files) read() (*certPair, error) {
	files, err := f.dir.read(CertFile, KeyFile, CAFile)
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
	if fault, ok := errors.AsType[*FileError](err); ok {
		fault.Path = f.path(fault.Path)
	}
	return p, err
}

func (f *Files) path(name string) string { return filepath.Join(f.opts.Dir, name) }

// book keeps what is wrong with the files, and logs it where that is new.
func (f *Files) recordError(err error) {
	previous := f.lastErr.get()
	fresh := f.lastErr.set(err)
	switch {
	case err == nil && previous != nil:
		f.opts.Log.Info("certificate files are valid again", "directory", f.opts.Dir)
	case err != nil && fresh:
		f.opts.Log.Error(err, "invalid certificate files", "serving", f.describeServed())
	}
}

// served says for people what is served.
func (f *Files) describeServed() string {
	if p := f.serving.Load(); p != nil {
		return "the previous certificate, which expires at " + formatTime(p.tls.Leaf.NotAfter)
	}
	return "nothing"
}

// Problem returns what is wrong with the files though a certificate is served,
// or what they wait for; nil if nothing is.
func (f *Files) Problem() error {
	fault, p, held, forgot := f.lastErr.get(), f.serving.Load(), f.pending.Load(), f.loadTrustedErr.Load()
	switch {
	case p == nil:
		return nil
	case forgot != nil && *forgot != nil:
		return fmt.Errorf("the webhook configurations are not written: %w", *forgot)
	case fault != nil:
		return fmt.Errorf("%w; serving %s", fault, f.describeServed())
	case held != nil:
		return fmt.Errorf("%w; serving %s", held.reason(f.path(CertFile)), f.describeServed())
	case nearExpiry(p.tls, f.opts.Clock.Now()):
		return &FileError{f.path(CertFile), fmt.Errorf("expires at %s", formatTime(p.tls.Leaf.NotAfter)), "renew it"}
	}
	return nil
}

// late reports whether less than a tenth is left of the life of a certificate.
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

// Healthy implements Source. Files that went bad are no fault while what they
// held before can be served: see Problem.
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

// because adds to err what is wrong with the files, or what they wait for.
func (f *Files) withCause(err error) error {
	if h := f.pending.Load(); h != nil && f.lastErr.get() == nil && f.serving.Load() == nil {
		return fmt.Errorf("%w: %w", err, h.reason(f.path(CertFile)))
	}
	return f.lastErr.wrap(err)
}
