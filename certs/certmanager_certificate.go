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
	// certificateTimeout bounds one read of a Certificate.
	certificateTimeout = 10 * time.Second
	// settledPoll is how often a Certificate is read that is Ready.
	readyPoll = time.Minute
)

// CertificateError says what is missing for a Certificate of cert-manager's to
// be issued, and what to do about it.
type CertificateError struct {
	Namespace, Name string
	Err             error
	Remedy          string
}

// Error names the Certificate, what is missing and the remedy.
func (e *CertificateError) Error() string {
	return fmt.Sprintf("certificate %s/%s: %v: %s", e.Namespace, e.Name, e.Err, e.Remedy)
}

// Unwrap returns what is missing.
func (e *CertificateError) Unwrap() error { return e.Err }

var (
	// ErrNoCertManager is in a CertificateError where the API server does not
	// know of Certificates.
	ErrNoCertManager = errors.New("API cert-manager.io/v1 is not served")

	// ErrNoCertificate is in a CertificateError where there is none.
	ErrNoCertificate = errors.New("not found")

	// ErrNotIssued is in a CertificateError for one that is not Ready.
	ErrNotIssued = errors.New("not Ready")
)

// order is a Certificate that was asked for.
type certificateMonitor struct {
	reader client.Reader
	key    types.NamespacedName
	poll   time.Duration // while it is not Ready
	log    logr.Logger

	lastErr    atomic.Pointer[error] // nil before the first look
	secretName atomic.Pointer[string]
}

// follow looks after the Certificate until ctx ends.
func (o *certificateMonitor) run(ctx context.Context) {
	for {
		pause := readyPoll
		if err := o.check(ctx); err != nil {
			pause = o.poll
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

// look reads the Certificate, and books and logs what is missing.
func (o *certificateMonitor) check(ctx context.Context) error {
	err := o.read(ctx)
	if ctx.Err() != nil {
		return err
	}
	previous := o.lastErr.Swap(&err)
	switch {
	case err == nil && (previous == nil || *previous != nil):
		o.log.Info("certificate is issued", "certificate", o.key.String())
	case err != nil && (previous == nil || *previous == nil || (*previous).Error() != err.Error()):
		o.log.Error(err, "certificate is not issued")
	}
	return err
}

func (o *certificateMonitor) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, certificateTimeout)
	defer cancel()
	var c certmanager.Certificate
	err := o.reader.Get(ctx, o.key, &c)
	switch {
	case err == nil:
		o.secretName.Store(&c.Spec.SecretName)
		return o.checkReady(&c)
	case meta.IsNoMatchError(err):
		return o.newError(ErrNoCertManager, "install cert-manager, or set --certificates to another source")
	case apierrors.IsNotFound(err):
		return o.newError(ErrNoCertificate, "apply it, or set --certificate-name")
	case apierrors.IsForbidden(err):
		return o.newError(err, "allow the server to get it")
	}
	return o.newError(err, "retrying")
}

// ready returns why a Certificate cannot be used yet.
func (o *certificateMonitor) checkReady(c *certmanager.Certificate) error {
	var says []string
	for _, condition := range c.Status.Conditions {
		if condition.Type == certmanager.CertificateConditionReady && condition.Status == cmmeta.ConditionTrue {
			return nil
		}
		says = append(says, fmt.Sprintf("%s is %s (%s): %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	if len(says) == 0 {
		return o.newError(ErrNotIssued, "it has no conditions yet; check that cert-manager runs")
	}
	return o.newError(fmt.Errorf("%w: %s", ErrNotIssued, strings.Join(says, "; ")), "check its issuer and its CertificateRequests")
}

func (o *certificateMonitor) newError(err error, remedy string) error {
	return &CertificateError{Namespace: o.key.Namespace, Name: o.key.Name, Err: err, Remedy: remedy}
}

// problem returns what is missing; nil also before the first look.
func (o *certificateMonitor) problem() error {
	if missing := o.lastErr.Load(); missing != nil {
		return *missing
	}
	return nil
}

// delivery says where an issued certificate is to come from.
func (o *certificateMonitor) mountHint(dir string) error {
	if secret := o.secretName.Load(); secret != nil {
		return fmt.Errorf("certificate %s is issued: mount its Secret %s at %s; the kubelet takes up to two minutes", o.key, *secret, dir)
	}
	return fmt.Errorf("certificate %s was not read yet", o.key)
}
