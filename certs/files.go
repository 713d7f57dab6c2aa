package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// filePoll is how often files are read without a file system event.
const filePoll = 10 * time.Second

// Names of certificate files, as in a Secret of type kubernetes.io/tls.
const (
	CertFile = "tls.crt"
	KeyFile  = "tls.key"
	CAFile   = "ca.crt"
)

// InjectAnnotation on a webhook configuration has cert-manager's cainjector
// write its caBundles; its value is the namespace/name of a Certificate.
const InjectAnnotation = certmanager.WantInjectAnnotation

// Files is a Source that reads CertFile, KeyFile and, if it exists, CAFile: the CA bundle.
// A certificate is served as soon as it is valid; while the files are invalid, the last
// valid one is. certwatcher reads the pair; it needs one to start with, and does not know
// CAFile, names and expiry.
type Files struct {
	held[filePair] // what is served
	*publisher
	dir, name string
	watcher   *certwatcher.CertWatcher // nil before the first readable pair; only used by the loop
	now       func() time.Time
}

// filePair is a valid certificate. It is immutable.
type filePair struct {
	tls          *tls.Certificate
	ca           []byte    // in PEM; nil without a CAFile
	trustedUntil time.Time // the expiry of its authority; zero without one
}

var _ Source = (*Files)(nil)

// NewFiles returns Files of a directory, which read nothing until Start. name is the
// server name that clients verify: the first of ServiceNames.
func NewFiles(dir, name string, log logr.Logger) *Files {
	return &Files{held: newHeld[filePair](log, "certificate files", ErrNotReady), publisher: newPublisher(), dir: dir, name: name, now: time.Now}
}

// Start watches the files until ctx ends, and then returns nil. Call it once. After
// it returned the last certificate is still served.
func (f *Files) Start(ctx context.Context) error {
	return f.run(ctx, clock.RealClock{}, func(ctx context.Context) (time.Duration, error) { return filePoll, f.reload(ctx) })
}

// reload reads the files, and serves their certificate if it is valid. The bundle is
// published first.
func (f *Files) reload(ctx context.Context) error {
	pair, err := f.readPair(ctx)
	if err != nil {
		return fmt.Errorf("certificate files in %s: %w", f.dir, err)
	}
	valid, err := f.validate(pair)
	if err != nil {
		return err
	}
	f.publish(valid.ca)
	if previous := f.value.Swap(valid); previous == nil || !previous.tls.Leaf.Equal(pair.Leaf) {
		f.log.Info("serving a new certificate", "file", f.path(CertFile), "notAfter", formatTime(pair.Leaf.NotAfter))
	}
	return nil
}

// readPair returns the pair that certwatcher read last, which it reads again if possible.
func (f *Files) readPair(ctx context.Context) (*tls.Certificate, error) {
	if f.watcher != nil {
		if err := f.watcher.ReadCertificate(); err != nil {
			return nil, err
		}
		return f.watcher.GetCertificate(nil)
	}
	watcher, err := certwatcher.New(f.path(CertFile), f.path(KeyFile))
	if err != nil {
		return nil, err
	}
	f.watcher = watcher.WithWatchInterval(time.Hour) // reload polls
	watcher.RegisterCallback(func(tls.Certificate) { f.wakeUp() })
	go func() {
		if err := watcher.Start(ctx); err != nil {
			f.log.Error(err, "no events of certificate files", "polling", filePoll.String())
		}
	}()
	return watcher.GetCertificate(nil)
}

// validate returns why a client would reject a certificate that trusts the CAFile, or any
// authority if there is none.
func (f *Files) validate(pair *tls.Certificate) (*filePair, error) {
	leaf, now := pair.Leaf, f.now()
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return nil, fmt.Errorf("%s is valid from %s to %s: renew it, or correct the clock of this node", f.path(CertFile), formatTime(leaf.NotBefore), formatTime(leaf.NotAfter))
	}
	if err := leaf.VerifyHostname(f.name); err != nil {
		return nil, fmt.Errorf("%s: %w: issue it for %s", f.path(CertFile), err, f.name)
	}
	authorities, err := readCertificates(f.path(CAFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &filePair{tls: pair}, nil
	case err != nil:
		return nil, fmt.Errorf("%w: provide the CA that signed %s", err, CertFile)
	}
	chain, err := x509.ParseCertificates(slices.Concat(pair.Certificate...))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: provide certificates only", f.path(CertFile), err)
	}
	chains, err := verifyChain(chain, poolOf(authorities), f.name, x509.ExtKeyUsageServerAuth, now)
	if err != nil {
		return nil, fmt.Errorf("%s does not verify %s: %w: provide the CA that signed it", f.path(CAFile), CertFile, err)
	}
	valid := &filePair{tls: pair, ca: encodeCertificates(authorities...)}
	for _, c := range chains {
		valid.trustedUntil = later(valid.trustedUntil, c[len(c)-1].NotAfter)
	}
	return valid, nil
}

func (f *Files) path(name string) string { return filepath.Join(f.dir, name) }

// GetCertificate implements Source.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if p := f.value.Load(); p != nil {
		return p.tls, nil
	}
	return nil, f.withCause(ErrNotReady)
}

// CABundle implements Source: the content of CAFile, nil without one.
func (f *Files) CABundle() []byte { return f.get() }

// Published implements Source: nothing depends on it.
func (f *Files) Published([]byte) {}

// Healthy implements Source. It ignores invalid files while the previous certificate
// is valid: see Problem.
func (f *Files) Healthy(*http.Request) error {
	if err := f.held.Healthy(nil); err != nil {
		return err
	}
	return f.expired(f.current().tls.Leaf, f.now())
}

// Expiries implements Source.
func (f *Files) Expiries() map[string]time.Time {
	p := f.value.Load()
	if p == nil {
		return nil
	}
	out := map[string]time.Time{NameServing: p.tls.Leaf.NotAfter}
	if !p.trustedUntil.IsZero() {
		out[NameAuthority] = p.trustedUntil
	}
	return out
}
