package server

import (
	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
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
	source certs.Source
	// authority is the own one, for the certificates between replicas and with
	// --certificates=self; nil if it is not needed.
	authority *certs.Authority
	runnables []manager.Runnable
	// The rest is for the registrar. externalBundle reports whether another client
	// writes the caBundle; missingBundleRemedy is the advice if it is empty then.
	externalBundle      func() bool
	missingBundleRemedy string
	annotations         map[string]string
	warnings            map[string]func() error
}

// newCertProvider returns the provider that --certificates selects.
func newCertProvider(client kubernetes.Interface, o options, log logr.Logger) *certProvider {
	p := &certProvider{}
	self, names := o.certificates == certificatesSelf, certs.ServiceNames(o.service, o.namespace)
	if self || o.coordinated() {
		opts := certs.Options{
			Secrets: client.CoreV1(), Namespace: o.namespace, SecretName: caSecret,
			CAValidity: o.caValidity, LeafValidity: o.certValidity, Log: log,
		}
		if self {
			opts.Names = names
		}
		p.authority = certs.New(opts)
		p.source, p.runnables = p.authority, []manager.Runnable{p.authority}
	}
	if self {
		p.warnings = map[string]func() error{"certificate": p.authority.Problem}
	} else {
		p.useFiles(certs.NewFiles(o.certDir, names[0], log), o)
	}
	return p
}

// useFiles makes p read mounted files. Without a ca.crt the caBundle is not written, nor if
// cert-manager's cainjector writes it.
func (p *certProvider) useFiles(files *certs.Files, o options) {
	p.source, p.runnables = files, append(p.runnables, files)
	p.warnings = map[string]func() error{"certificate": files.Problem}
	p.externalBundle = func() bool { return files.Healthy(nil) == nil && files.CABundle() == nil }
	p.missingBundleRemedy = "add ca.crt beside tls.crt in " + o.certDir + ", or set the caBundle yourself"
	if o.certificates == certificatesCertManager {
		// Only once there is a certificate: with a configuration that has no
		// caBundle every call fails.
		p.externalBundle = func() bool { return files.Healthy(nil) == nil }
		p.missingBundleRemedy = "cert-manager's cainjector has not set it; check that it runs, and its log"
		p.annotations = map[string]string{certs.InjectAnnotation: o.namespace + "/" + o.certificateName}
	}
}

// addClientAuth makes the server require client certificates if --client-ca-file
// is set.
func addClientAuth(server *httpsServer, probes *probeServer, o options, log logr.Logger) {
	if o.clientCA == "" {
		return
	}
	clientAuth := certs.NewClientAuth(o.clientCA, o.clientSubjects, log)
	server.clientAuth, server.runnables = clientAuth, append(server.runnables, clientAuth)
	probes.checks["callers"] = clientAuth.Healthy
	probes.addWarning("callers", clientAuth.Problem)
}
