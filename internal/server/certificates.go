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

// The values of --certificates.
const (
	certificatesSelf        = "self"
	certificatesFiles       = "files"
	certificatesCertManager = "cert-manager"
)

// certProvider is the source of the serving certificate, and of its CA bundle for
// the webhook configurations.
type certProvider struct {
	source    certs.Source
	runnable  manager.Runnable
	authority webhook.Authority
	// The rest is for the registrar. externalBundle reports whether another client
	// writes the caBundle; missingBundleRemedy is the advice if it is empty then.
	externalBundle      func() bool
	missingBundleRemedy string
	annotations         map[string]string
	loadTrusted         func(context.Context) // loads the published bundles before a new leader writes; may be nil
	warnings            map[string]func() error
}

// newCertProvider returns the provider that --certificates selects.
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

// newFilesProvider returns a provider that reads mounted files. Without a ca.crt
// the caBundle is not written.
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
		missingBundleRemedy: "add ca.crt beside tls.crt in " + o.certDir + ", or set the caBundle yourself",
		loadTrusted:         files.LoadTrusted,
		warnings:            map[string]func() error{"certificate": files.Problem},
	}, nil
}

// newCertManagerProvider returns a provider whose certificate cert-manager issues;
// its cainjector writes the caBundle.
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
		// Only once there is a bundle to inject: with a configuration that has no
		// caBundle every call fails.
		externalBundle:      func() bool { return source.Healthy(nil) == nil },
		missingBundleRemedy: "cert-manager's cainjector has not set it; check that it runs, and its log",
		annotations:         map[string]string{certs.InjectAnnotation: o.namespace + "/" + o.certificateName},
		warnings:            map[string]func() error{"certificate": source.Problem},
	}, nil
}

func filesOptions(o options, log logr.Logger) certs.FilesOptions {
	return certs.FilesOptions{Dir: o.certDir, Name: certs.ServiceNames(o.service, o.namespace)[0], Log: log}
}

// unconfirmedSource is a source that does not wait for its bundle to be published.
type unconfirmedSource struct{ certs.Source }

// Published implements webhook.Authority.
func (unconfirmedSource) Published([]byte) {}

// addClientAuth makes the server require client certificates if --client-ca-file
// is set.
func addClientAuth(server *httpsServer, probes *probeServer, o options, log logr.Logger) error {
	if o.clientCA == "" {
		return nil
	}
	clientAuth, err := certs.NewClientAuth(certs.ClientAuthOptions{File: o.clientCA, Subjects: o.clientSubjects, Log: log})
	if err != nil {
		return fmt.Errorf("set up client authentication: %w", err)
	}
	server.clientAuth, server.runnables = clientAuth, append(server.runnables, clientAuth)
	probes.checks["callers"] = clientAuth.Healthy
	probes.addCallerWarning(clientAuth.Problem)
	return nil
}
