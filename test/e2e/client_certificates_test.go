//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/webhook"
)

// The API server's configuration of docs/running.md, except for the paths and
// the user name: the server's port is not known in advance here.
const (
	admission = `
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: DIR/kubeconfig}
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: DIR/kubeconfig}
`
	admissionKubeconfig = `
apiVersion: v1
kind: Config
users:
- name: '*'
  user: {client-certificate: DIR/tls.crt, client-key: DIR/tls.key}
`
)

// admissionFiles writes the configuration of an API server whose client
// certificate is of an issuer, and returns the file for its flag.
func admissionFiles(t *testing.T, by *issuer, dir string) string {
	t.Helper()
	files := by.client(t, "kube-apiserver")
	files["admission"], files["kubeconfig"] = strings.ReplaceAll(admission, "DIR", dir), strings.ReplaceAll(admissionKubeconfig, "DIR", dir)
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return filepath.Join(dir, "admission")
}

func (i *issuer) client(t *testing.T, name string) map[string]string {
	t.Helper()
	return i.files(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// The API server's certificate, which is in a folder, is accepted. The certs
// package has other certificates.
func requiresClientCertificate(t *testing.T, c *cluster, by *issuer, dir string) {
	s := server.Start(t, c.Env, server.Options{Args: []string{"--client-ca-file=" + filepath.Join(dir, "ca.crt"), "--client-subject=kube-apiserver"}})
	call := func(certificates ...tls.Certificate) error {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}}
		defer client.CloseIdleConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+s.Webhook+webhook.PathValidate, nil)
		require.NoError(t, err)
		response, err := client.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	pair := func(files map[string]string) tls.Certificate {
		p, err := tls.X509KeyPair([]byte(files["tls.crt"]), []byte(files["tls.key"]))
		require.NoError(t, err)
		return p
	}
	require.NoError(t, call(pair(by.client(t, "kube-apiserver"))))
	assert.ErrorContains(t, call(), "certificate required")
	assert.ErrorContains(t, call(pair(by.client(t, "other-user"))), "bad certificate")
}
