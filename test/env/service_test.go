//go:build integration

package env_test

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"overrule.dev/overrule/test/env"
)

type call struct{ proto, sni, host string }

// callsByService routes a Service to a webhook in this process and checks that it
// receives the same as behind a Service in a cluster.
func callsByService(t *testing.T, e *env.Env) {
	t.Helper()
	var last atomic.Pointer[call]
	hook := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last.Store(&call{r.Proto, r.TLS.ServerName, r.Host})
		answer(t, w, r)
	}))
	certificate, key, err := cert.GenerateSelfSignedCertKey("hook.elsewhere.svc", nil, nil)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	hook.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	hook.StartTLS()
	t.Cleanup(hook.Close)
	port := int32(hook.Listener.Addr().(*net.TCPAddr).Port)

	require.NoError(t, e.RouteService(t.Context(), "elsewhere", "hook", 1))
	require.NoError(t, e.RouteService(t.Context(), "elsewhere", "hook", port), "a Service can be routed again")
	register(t, e, port, authority(t, certificate))

	soon(t, func() bool {
		got := e.Kubectl("create", "configmap", "probe", "--dry-run=server")
		return got.Code == 0 && got.Stderr == "Warning: the webhook was here\n"
	}, "the webhook is not called")
	assert.Equal(t, &call{"HTTP/1.1", "hook.elsewhere.svc", "hook.elsewhere.svc:443"}, withoutPort(last.Load()))
}

// withoutPort replaces the port in a call's host, which differs in each run.
func withoutPort(c *call) *call {
	host, _, err := net.SplitHostPort(c.host)
	if err != nil {
		return c
	}
	return &call{c.proto, c.sni, net.JoinHostPort(host, "443")}
}

// authority returns the last certificate of a chain, in PEM.
func authority(t *testing.T, chain []byte) []byte {
	t.Helper()
	certificates, err := cert.ParseCertsPEM(chain)
	require.NoError(t, err)
	ca := certificates[len(certificates)-1]
	require.True(t, ca.IsCA)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: ca.Raw})
}

func register(t *testing.T, e *env.Env, port int32, ca []byte) {
	t.Helper()
	client, err := kubernetes.NewForConfig(e.Config)
	require.NoError(t, err)
	none, path, fail := admissionregistrationv1.SideEffectClassNone, "/", admissionregistrationv1.Fail
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "hook"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "hook.example.com", SideEffects: &none, FailurePolicy: &fail, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca,
					Service: &admissionregistrationv1.ServiceReference{Namespace: "elsewhere", Name: "hook", Path: &path, Port: &port}},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				}},
			}},
		}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func answer(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&review)) {
		return
	}
	review.Response = &admissionv1.AdmissionResponse{
		UID: review.Request.UID, Allowed: true, Warnings: []string{"the webhook was here"},
	}
	assert.NoError(t, json.NewEncoder(w).Encode(review))
}
