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
	NeedCA bool
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
	*overlap
	opts    FilesOptions
	folder  folder
	serving atomic.Pointer[pair]  // nil until the first that is good
	held    atomic.Pointer[hold]  // nil for nothing
	fault   fault                 // of the files as they are now
	forgot  atomic.Pointer[error] // why Recall has failed
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
	f := &Files{opts: opts, overlap: newOverlap(0)}
	if opts.TrustedBundle != nil {
		f.overlap = newOverlap(overlapping)
	}
	f.folder = folder{path: opts.Dir, poll: opts.PollInterval, log: opts.Log, hurry: func() bool { return f.held.Load() != nil }}
	return f, errors.Join(errs...)
}

// Start follows the files until ctx ends, and then returns nil. Call it once.
// The last certificate is still served after it has returned.
func (f *Files) Start(ctx context.Context) error {
	f.folder.follow(ctx, func() { f.look(ctx) })
	return nil
}

// NeedLeaderElection tells controller-runtime to run Files on every replica.
func (f *Files) NeedLeaderElection() bool { return false }

// look reads the files, and serves what they hold if that is good and trusted.
func (f *Files) look(ctx context.Context) {
	now := f.opts.Clock.Now()
	p := f.good(now)
	if p == nil {
		f.lapse(now)
		return
	}
	held := f.holding(ctx, p, now)
	f.trust(p.ca, now) // before anybody sees what it verifies
	f.held.Store(held)
	if held != nil || p.same(f.serving.Load()) {
		return
	}
	f.serving.Store(p)
	f.opts.Log.Info("serving a new certificate", "file", f.path(CertFile), "notAfter", stamp(p.tls.Leaf.NotAfter))
}

// good returns the pair to go by: that of the files or, while they are bad, the
// good one that is held; nil for none.
func (f *Files) good(now time.Time) *pair {
	p, err := f.read()
	f.book(err)
	if err == nil {
		return p
	}
	if h := f.held.Load(); h != nil && h.pair.check(f.opts.Name, now) == nil {
		return h.pair
	}
	f.held.Store(nil)
	return nil
}

func (f *Files) read() (*pair, error) {
	files, err := f.folder.read(CertFile, KeyFile, CAFile)
	if err != nil {
		return nil, err
	}
	p, err := readPair(files)
	switch {
	case err != nil:
	case len(p.ca) == 0 && (f.opts.NeedCA || f.CABundle() != nil):
		err = &FileError{CAFile, ErrMissing, "put the authority there that signed " + CertFile}
	default:
		err = p.check(f.opts.Name, f.opts.Clock.Now())
	}
	if fault, ok := errors.AsType[*FileError](err); ok {
		fault.Path = f.path(fault.Path)
	}
	return p, err
}

func (f *Files) path(name string) string { return filepath.Join(f.opts.Dir, name) }

// book keeps what is wrong with the files, and logs it where that is new.
func (f *Files) book(err error) {
	before := f.fault.now()
	fresh := f.fault.book(err)
	switch {
	case err == nil && before != nil:
		f.opts.Log.Info("the certificate files are good again", "directory", f.opts.Dir)
	case err != nil && fresh:
		f.opts.Log.Error(err, "the certificate files cannot be served", "serving", f.served())
	}
}

// served says for people what is served.
func (f *Files) served() string {
	if p := f.serving.Load(); p != nil {
		return "the certificate before them, until " + stamp(p.tls.Leaf.NotAfter)
	}
	return "nothing"
}

// Problem returns what is wrong with the files though a certificate is served,
// or what they wait for; nil if nothing is.
func (f *Files) Problem() error {
	fault, p, held, forgot := f.fault.now(), f.serving.Load(), f.held.Load(), f.forgot.Load()
	switch {
	case p == nil:
		return nil
	case forgot != nil && *forgot != nil:
		return fmt.Errorf("the webhook configurations are not written: %w", *forgot)
	case fault != nil:
		return fmt.Errorf("%w; serving %s", fault, f.served())
	case held != nil:
		return fmt.Errorf("%w; serving %s", held.note(f.path(CertFile)), f.served())
	case late(p.tls, f.opts.Clock.Now()):
		return &FileError{f.path(CertFile), fmt.Errorf("expires at %s", stamp(p.tls.Leaf.NotAfter)), "renew it"}
	}
	return nil
}

// late reports whether less than a tenth is left of the life of a certificate.
func late(c *tls.Certificate, now time.Time) bool {
	return c.Leaf.NotAfter.Sub(now) < c.Leaf.NotAfter.Sub(c.Leaf.NotBefore)/10
}

// GetCertificate implements Source.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p := f.serving.Load()
	if p == nil {
		return nil, f.because(ErrNotReady)
	}
	return p.tls, nil
}

// Healthy implements Source. Files that went bad are no fault while what they
// held before can be served: see Problem.
func (f *Files) Healthy(*http.Request) error {
	p := f.serving.Load()
	if p == nil {
		return f.because(ErrNotReady)
	}
	if end := p.tls.Leaf.NotAfter; f.opts.Clock.Now().After(end) {
		return f.because(fmt.Errorf("serving certificate expired at %s", stamp(end)))
	}
	return nil
}

// because adds to err what is wrong with the files, or what they wait for.
func (f *Files) because(err error) error {
	if h := f.held.Load(); h != nil && f.fault.now() == nil && f.serving.Load() == nil {
		return fmt.Errorf("%w: %w", err, h.note(f.path(CertFile)))
	}
	return f.fault.because(err)
}
