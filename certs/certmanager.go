package certs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InjectAnnotation on a webhook configuration has cert-manager's cainjector
// write its caBundles; its value is the namespace/name of a Certificate.
const InjectAnnotation = certmanager.WantInjectAnnotation

// DefaultCertificatePoll is the default of CertManagerOptions.CertificatePoll.
const DefaultCertificatePoll = 5 * time.Second

// CertManagerOptions configures a CertManager. All but the poll is required;
// FilesOptions.RequireCA is implied.
type CertManagerOptions struct {
	FilesOptions
	// Reader reads Certificates: see NewCertificateReader.
	Reader client.Reader
	// Namespace and Certificate name the Certificate whose Secret is mounted.
	Namespace, Certificate string
	// CertificatePoll is how often the Certificate is read while it is not Ready.
	CertificatePoll time.Duration
}

// CertManager is a Source whose certificate cert-manager issues: its files are those
// of a mounted Secret. The Certificate is read only to explain why files are
// missing; valid files are served in any case.
type CertManager struct {
	*Files
	monitor *certificateMonitor
}

var _ Source = (*CertManager)(nil)

// NewCertificateReader returns a client for Certificates. It sends no request yet.
func NewCertificateReader(cfg *rest.Config) (client.Reader, error) {
	scheme := runtime.NewScheme()
	if err := certmanager.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the kinds of cert-manager: %w", err)
	}
	reader, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("create client for certificates: %w", err)
	}
	return reader, nil
}

// NewCertManager returns a CertManager that does nothing until Start, or all errors of
// opts.
func NewCertManager(opts CertManagerOptions) (*CertManager, error) {
	opts.RequireCA = true
	files, err := NewFiles(opts.FilesOptions)
	errs := []error{err}
	if opts.Reader == nil {
		errs = append(errs, errors.New("certificates: no client for certificates given"))
	}
	if opts.Namespace == "" || opts.Certificate == "" {
		errs = append(errs, fmt.Errorf("certificates: certificate %q/%q: namespace and name are required", opts.Namespace, opts.Certificate))
	}
	return &CertManager{Files: files, monitor: &certificateMonitor{
		reader: opts.Reader, key: types.NamespacedName{Namespace: opts.Namespace, Name: opts.Certificate},
		poll: cmp.Or(opts.CertificatePoll, DefaultCertificatePoll), log: opts.Log,
	}}, errors.Join(errs...)
}

// Start watches the files and the Certificate until ctx ends, and then returns nil.
// Call it once.
func (m *CertManager) Start(ctx context.Context) error {
	var monitoring sync.WaitGroup
	monitoring.Go(func() { m.monitor.run(ctx) })
	defer monitoring.Wait()
	return m.Files.Start(ctx)
}

// CABundle implements Source: it is nil, as cainjector writes the caBundle.
func (m *CertManager) CABundle() []byte { return nil }

// Healthy implements Source. Without a certificate the error has the state of the
// Certificate.
func (m *CertManager) Healthy(r *http.Request) error {
	err := m.Files.Healthy(r)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; %w", err, cmp.Or(m.monitor.problem(), m.monitor.mountHint(m.opts.Dir)))
}

// Problem returns the errors of the files and of the Certificate while a certificate
// is served; else nil.
func (m *CertManager) Problem() error {
	if m.Files.Healthy(nil) != nil {
		return nil // Healthy reports it
	}
	return errors.Join(m.Files.Problem(), m.monitor.problem())
}
