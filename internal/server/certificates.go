package server

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/webhook"
)

// caSecret is the Secret that holds the certificate authority.
const caSecret = "overrule-ca"

// The ways to a serving certificate.
const (
	certificatesSelf        = "self"
	certificatesFiles       = "files"
	certificatesCertManager = "cert-manager"
)

// identity is the serving certificate, and how clients come to trust it.
type certProvider struct {
	source    certs.Source
	runnable  manager.Runnable
	authority webhook.Authority
	// foreign and annotations are the registrar's.
	externalBundle      func() bool
	missingBundleRemedy string // what to do about a caBundle that nobody wrote
	annotations         map[string]string
	loadTrusted         func(context.Context) // runs before a new leader writes; nil for nothing
	warnings            map[string]func() error
}

// newIdentity returns that of the way that the flags say.
func newCertProvider(cfg *rest.Config, client kubernetes.Interface, o options, log logr.Logger) (*certProvider, error) {
	switch o.certificates {
	case certificatesFiles:
		return newFilesProvider(client, o, log)
	case certificatesCertManager:
		return newCertManagerProvider(cfg, o, log)
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
	return &certProvider{source: authority, runnable: authority, authority: authority}, nil
}

// ofFiles is an identity that somebody mounts. Without a ca.crt it is theirs to
// have it trusted.
func newFilesProvider(client kubernetes.Interface, o options, log logr.Logger) (*certProvider, error) {
	opts := filesOptions(o, log)
	if o.manageWebhooks {
		opts.TrustedBundle = trustedBundles(client, o)
	}
	files, err := certs.NewFiles(opts)
	if err != nil {
		return nil, err
	}
	return &certProvider{
		source: files, runnable: files, authority: unconfirmedSource{files},
		externalBundle:      func() bool { return files.Healthy(nil) == nil && files.CABundle() == nil },
		missingBundleRemedy: "put ca.crt beside tls.crt in " + o.certDir + ", or write the caBundle yourself",
		loadTrusted:         files.LoadTrusted,
		warnings:            map[string]func() error{"certificate": files.Problem},
	}, nil
}

// ofCertManager is an identity that cert-manager issues, and tells clients of.
func newCertManagerProvider(cfg *rest.Config, o options, log logr.Logger) (*certProvider, error) {
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
	return &certProvider{
		source: source, runnable: source, authority: unconfirmedSource{source},
		// Not before there is something to inject: a configuration without a
		// caBundle makes every call fail.
		externalBundle:      func() bool { return source.Healthy(nil) == nil },
		missingBundleRemedy: "cert-manager's cainjector has not written it: look whether it runs, and at its log",
		annotations:         map[string]string{certs.InjectAnnotation: o.namespace + "/" + o.certificateName},
		warnings:            map[string]func() error{"certificate": source.Problem},
	}, nil
}

func filesOptions(o options, log logr.Logger) certs.FilesOptions {
	return certs.FilesOptions{Dir: o.certDir, Name: certs.ServiceNames(o.service, o.namespace)[0], Log: log}
}

// unconfirmed is a source that does not wait for its bundle to be published.
type unconfirmedSource struct{ certs.Source }

// Published implements webhook.Authority.
func (unconfirmedSource) Published([]byte) {}

// addCallers has the server require certificates, if the flags say so.
func addClientAuth(server *httpsServer, health *probeServer, o options, log logr.Logger) error {
	if o.clientCA == "" {
		return nil
	}
	callers, err := certs.NewClientAuth(certs.ClientAuthOptions{File: o.clientCA, Subjects: o.clientSubjects, Log: log})
	if err != nil {
		return fmt.Errorf("check callers: %w", err)
	}
	server.clientAuth, server.runnables = callers, append(server.runnables, callers)
	health.checks["callers"] = callers.Healthy
	health.addCallerWarning(callers.Problem)
	return nil
}
