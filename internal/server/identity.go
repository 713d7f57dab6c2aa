package server

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/webhookconfig"
)

// caSecret is the Secret that holds the certificate authority.
const caSecret = "overrule-ca"

// The ways to a serving certificate.
const (
	bySelf        = "self"
	byFiles       = "files"
	byCertManager = "cert-manager"
)

// identity is the serving certificate, and how clients come to trust it.
type identity struct {
	source    certs.Source
	feeder    manager.Runnable
	authority webhookconfig.Authority
	// foreign and annotations are the registrar's.
	foreign     func() bool
	untrusted   string // what to do about a caBundle that nobody wrote
	annotations map[string]string
	recall      func(context.Context) // runs before a new leader writes; nil for nothing
	notes       map[string]func() error
}

// newIdentity returns that of the way that the flags say.
func newIdentity(cfg *rest.Config, client kubernetes.Interface, o options, log logr.Logger) (*identity, error) {
	switch o.certificates {
	case byFiles:
		return ofFiles(client, o, log)
	case byCertManager:
		return ofCertManager(cfg, o, log)
	}
	authority, err := certs.New(certs.Options{
		Secrets: client.CoreV1(), Namespace: o.namespace, SecretName: caSecret,
		Names:      certs.ServiceNames(o.service, o.namespace),
		CAValidity: o.caValidity, LeafValidity: o.certValidity,
		Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &identity{source: authority, feeder: authority, authority: authority}, nil
}

// ofFiles is an identity that somebody mounts. Without a ca.crt it is theirs to
// have it trusted.
func ofFiles(client kubernetes.Interface, o options, log logr.Logger) (*identity, error) {
	opts := filesOptions(o, log)
	if o.manageWebhooks {
		opts.TrustedBundle = standing(client, o)
	}
	files, err := certs.NewFiles(opts)
	if err != nil {
		return nil, err
	}
	return &identity{
		source: files, feeder: files, authority: unconfirmed{files},
		foreign:   func() bool { return files.Healthy(nil) == nil && files.CABundle() == nil },
		untrusted: "put ca.crt beside tls.crt in " + o.certDir + ", or write the caBundle yourself",
		recall:    files.LoadTrusted,
		notes:     map[string]func() error{"certificate": files.Problem},
	}, nil
}

// ofCertManager is an identity that cert-manager issues, and tells clients of.
func ofCertManager(cfg *rest.Config, o options, log logr.Logger) (*identity, error) {
	reader, err := certs.NewCertificateReader(cfg)
	if err != nil {
		return nil, err
	}
	source, err := certs.NewCertManager(certs.CertManagerOptions{
		FilesOptions: filesOptions(o, log),
		Reader:       reader, Namespace: o.namespace, Certificate: o.certificateName,
	})
	if err != nil {
		return nil, err
	}
	return &identity{
		source: source, feeder: source, authority: unconfirmed{source},
		// Not before there is something to inject: a configuration without a
		// caBundle makes every call fail.
		foreign:     func() bool { return source.Healthy(nil) == nil },
		untrusted:   "cert-manager's cainjector has not written it: look whether it runs, and at its log",
		annotations: map[string]string{certs.InjectAnnotation: o.namespace + "/" + o.certificateName},
		notes:       map[string]func() error{"certificate": source.Problem},
	}, nil
}

func filesOptions(o options, log logr.Logger) certs.FilesOptions {
	return certs.FilesOptions{Dir: o.certDir, Name: certs.ServiceNames(o.service, o.namespace)[0], Log: log}
}

// unconfirmed is a source that does not wait for its bundle to be published.
type unconfirmed struct{ certs.Source }

// Published implements webhookconfig.Authority.
func (unconfirmed) Published([]byte) {}

// addCallers has the server require certificates, if the flags say so.
func addCallers(server *httpsServer, health *health, o options, log logr.Logger) error {
	if o.clientCA == "" {
		return nil
	}
	callers, err := certs.NewCallers(certs.CallersOptions{File: o.clientCA, Subjects: o.clientSubjects, Log: log})
	if err != nil {
		return fmt.Errorf("check callers: %w", err)
	}
	server.callers, server.feeders = callers, append(server.feeders, callers)
	health.checks["callers"] = callers.Healthy
	health.noteCallers(callers.Problem)
	return nil
}
