package certs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// certificateTimeout limits one read of a Certificate.
	certificateTimeout = 10 * time.Second
	// readyPoll is how often a Certificate is read that is Ready.
	readyPoll = time.Minute
)

// CertificateError is why a Certificate of cert-manager is not issued, with what to do
// about it.
type CertificateError struct {
	Namespace, Name string
	Err             error
	Remedy          string
}

// Error returns the Certificate, the error and the remedy.
func (e *CertificateError) Error() string {
	return fmt.Sprintf("certificate %s/%s: %v: %s", e.Namespace, e.Name, e.Err, e.Remedy)
}

// Unwrap implements errors.Is and errors.As.
func (e *CertificateError) Unwrap() error { return e.Err }

var (
	// ErrNoCertManager is in a CertificateError if the API server does not serve
	// Certificates.
	ErrNoCertManager = errors.New("API cert-manager.io/v1 is not served")

	// ErrNoCertificate is in a CertificateError if the Certificate does not exist.
	ErrNoCertificate = errors.New("not found")

	// ErrNotIssued is in a CertificateError if the Certificate is not Ready.
	ErrNotIssued = errors.New("not Ready")
)

// certificateMonitor reads a Certificate, and records why it is not issued.
type certificateMonitor struct {
	reader client.Reader
	key    types.NamespacedName
	poll   time.Duration // while it is not Ready
	log    logr.Logger

	lastErr    atomic.Pointer[error] // nil before the first read
	secretName atomic.Pointer[string]
}

// run reads the Certificate periodically until ctx ends.
func (m *certificateMonitor) run(ctx context.Context) {
	for {
		pause := readyPoll
		if err := m.check(ctx); err != nil {
			pause = m.poll
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// check reads the Certificate, and stores and logs its error.
func (m *certificateMonitor) check(ctx context.Context) error {
	err := m.read(ctx)
	if ctx.Err() != nil {
		return err
	}
	previous := m.lastErr.Swap(&err)
	switch {
	case err == nil && (previous == nil || *previous != nil):
		m.log.Info("certificate is issued", "certificate", m.key.String())
	case err != nil && (previous == nil || *previous == nil || (*previous).Error() != err.Error()):
		m.log.Error(err, "certificate is not issued")
	}
	return err
}

func (m *certificateMonitor) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	var c certmanager.Certificate
	err := m.reader.Get(ctx, m.key, &c)
	switch {
	case err == nil:
		m.secretName.Store(&c.Spec.SecretName)
		return m.checkReady(&c)
	case meta.IsNoMatchError(err):
		return m.newError(ErrNoCertManager, "install cert-manager, or set --certificates to another source")
	case apierrors.IsNotFound(err):
		return m.newError(ErrNoCertificate, "apply it, or set --certificate-name")
	case apierrors.IsForbidden(err):
		return m.newError(err, "allow the server to get it")
	}
	return m.newError(err, "retrying")
}

// checkReady returns an error unless the Certificate is Ready.
func (m *certificateMonitor) checkReady(c *certmanager.Certificate) error {
	var conditions []string
	for _, condition := range c.Status.Conditions {
		if condition.Type == certmanager.CertificateConditionReady && condition.Status == cmmeta.ConditionTrue {
			return nil
		}
		conditions = append(conditions, fmt.Sprintf("%s is %s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	if len(conditions) == 0 {
		return m.newError(ErrNotIssued, "it has no conditions yet; check that cert-manager runs")
	}
	return m.newError(fmt.Errorf("%w: %s", ErrNotIssued, strings.Join(conditions, "; ")), "check its issuer and its CertificateRequests")
}

func (m *certificateMonitor) newError(err error, remedy string) error {
	return &CertificateError{Namespace: m.key.Namespace, Name: m.key.Name, Err: err, Remedy: remedy}
}

// problem returns the last error; nil also before the first read.
func (m *certificateMonitor) problem() error {
	if err := m.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}

// mountHint returns how to mount the Secret of an issued Certificate.
func (m *certificateMonitor) mountHint(dir string) error {
	if secret := m.secretName.Load(); secret != nil {
		return fmt.Errorf("certificate %s is issued: mount its Secret %s at %s; the kubelet takes up to two minutes", m.key, *secret, dir)
	}
	return fmt.Errorf("certificate %s was not read yet", m.key)
}
