//go:build e2e

package bench_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
)

// variant is one of the three variants of a write: without a webhook, with a
// webhook that does nothing, with Overrule. Each has its own namespace, which the
// webhook configurations select.
type variant struct {
	name, namespace string
	// answered returns how many reviews the server of the variant has answered; nil
	// without a server.
	answered func(testing.TB) float64
}

func newVariant(name string) *variant { return &variant{name: name, namespace: "bench-" + name} }

// perWrite returns the number of reviews per write: a mutating and a validating
// one.
func (w *variant) perWrite() float64 {
	if w.answered == nil {
		return 0
	}
	return 2
}

// reviews returns the number of reviews answered so far.
func (w *variant) reviews(tb testing.TB) float64 {
	tb.Helper()
	if w.answered == nil {
		return 0
	}
	return w.answered(tb)
}

// variants are the three variants. They do not differ before serve is called.
type variants struct{ none, nothing, overrule *variant }

func newVariants() variants {
	return variants{newVariant(none), newVariant("nothing"), newVariant("overrule")}
}

func (w variants) all() []*variant { return []*variant{w.none, w.nothing, w.overrule} }

// serve runs the server that does nothing, and Overrule. Overrule is called for
// all namespaces except those of the other variants. Its rules are those of
// deploy/components/static-webhooks, since the ones that it writes itself do not
// distinguish namespaces.
func (c *cluster) serve(tb testing.TB, w variants) {
	tb.Helper()
	w.nothing.answered = c.runNothing(tb, w.nothing.namespace)
	w.overrule.answered = c.runOverrule(tb, server.Namespace, w.none.namespace, w.nothing.namespace)
}

func (c *cluster) namespace(tb testing.TB, name string) {
	tb.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(tb, err)
	_, err = client.CoreV1().Namespaces().Create(tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(tb, err)
}

// runOverrule has the API server call Overrule for all namespaces except some.
func (c *cluster) runOverrule(tb testing.TB, except ...string) func(testing.TB) float64 {
	tb.Helper()
	s, err := c.site.Boot(tb.Context(), server.Options{Unprobed: true, Args: []string{"--manage-webhooks=false"}})
	require.NoError(tb, err)
	stopAtEnd(tb, s.Process)
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(tb, err)
	secret, err := client.CoreV1().Secrets(server.Namespace).Get(tb.Context(), "overrule-ca", metav1.GetOptions{})
	require.NoError(tb, err)
	c.register(tb, registration{
		name: server.Name, namespace: server.Namespace, service: server.Name, port: portOf(tb, s.Webhook),
		ca: secret.Data["ca-bundle.crt"], except: except,
	})
	return func(tb testing.TB) float64 { tb.Helper(); return metric(tb, s, "overrule_decisions_total") }
}

// runNothing has the API server call controller-runtime's webhook that allows everything,
// in this process, for one namespace.
func (c *cluster) runNothing(tb testing.TB, only string) func(testing.TB) float64 {
	tb.Helper()
	var answered atomic.Int64
	hook := &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		answered.Add(1)
		return admission.Allowed("")
	})}
	c.serveHooks(tb, hook, registration{name: "nothing", only: []string{only}})
	return func(testing.TB) float64 { return float64(answered.Load()) }
}

// serveHooks serves a handler in this process, and has the API server call it.
func (c *cluster) serveHooks(tb testing.TB, h http.Handler, r registration) {
	tb.Helper()
	r.namespace, r.service = benchServer, r.name
	bundle, key, err := cert.GenerateSelfSignedCertKey(r.name+"."+r.namespace+".svc", nil, nil)
	require.NoError(tb, err)
	pair, err := tls.X509KeyPair(bundle, key)
	require.NoError(tb, err)
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	tb.Cleanup(s.Close)
	r.ca, r.port = bundle, portOf(tb, s.Listener.Addr().String())
	require.NoError(tb, c.RouteService(tb.Context(), r.namespace, r.service, r.port))
	c.register(tb, r)
}

// benchServer is the namespace of the Services of this process.
const benchServer = "bench-server"

func stopAtEnd(tb testing.TB, p *process.Process) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := p.Stop(); err != nil {
			tb.Errorf("stop it: %v; its log:\n%s", err, p.Tail())
		}
	})
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	port, err := env.FreePort(tb.Context())
	require.NoError(tb, err)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
}

func portOf(tb testing.TB, address string) int32 {
	tb.Helper()
	_, text, err := net.SplitHostPort(address)
	require.NoError(tb, err)
	port, err := strconv.ParseInt(text, 10, 32)
	require.NoError(tb, err)
	return int32(port)
}
