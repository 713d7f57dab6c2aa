//go:build integration

package cache

import (
	"context"
	_ "embed"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/logbuffer"
	"overrule.dev/overrule/test/process"
)

// things are one object of each kind that is read.
//
//go:embed testdata/things.yaml
var things string

// tint is a cluster-scoped policy kind that has only a label.
const tint = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tintpolicies.policies.example.com, labels: {gateway.networking.k8s.io/policy: direct}}
spec:
  group: policies.example.com
  scope: Cluster
  names: {kind: TintPolicy, plural: tintpolicies, singular: tintpolicy}
  versions:
  - name: v1alpha1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const tintPolicy = `
apiVersion: policies.example.com/v1alpha1
kind: TintPolicy
metadata: {name: tint}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: demo}, tint: 3}
`

var (
	classRef   = api.Ref{Group: api.GatewayGroup, Kind: "GatewayClass", Name: "demo"}
	gatewayRef = api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "app", Name: "edge"}
	webRef     = api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app", Name: "web"}
	rpcRef     = api.Ref{Group: api.GatewayGroup, Kind: "GRPCRoute", Namespace: "app", Name: "rpc"}
	tlsRef     = api.Ref{Group: api.GatewayGroup, Kind: "TLSRoute", Namespace: "app", Name: "tls"}
	appRef     = api.Ref{Kind: "Namespace", Name: "app"}
	authRef    = api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: "app", Name: "auth"}
	colourRef  = api.Ref{Group: "policies.example.com", Kind: "ColorPolicy", Namespace: "app", Name: "color"}
	tintRef    = api.Ref{Group: "policies.example.com", Kind: "TintPolicy", Name: "tint"}
)

// hierarchyRefs are the objects of Gateway API, and the Service.
var hierarchyRefs = []api.Ref{
	classRef, gatewayRef, webRef, rpcRef, tlsRef,
	{Group: api.GatewayGroup, Kind: "TCPRoute", Namespace: "app", Name: "tcp"},
	{Group: api.GatewayGroup, Kind: "UDPRoute", Namespace: "app", Name: "udp"},
	{Group: api.GatewayGroup, Kind: "ListenerSet", Namespace: "app", Name: "more"},
	{Group: api.GatewayGroup, Kind: "ReferenceGrant", Namespace: "app", Name: "grant"},
	{Kind: "Service", Namespace: "app", Name: "shop"},
}

var all = append([]api.Ref{appRef, authRef, colourRef}, hierarchyRefs...)

// soon polls until condition holds.
func soon(t *testing.T, condition func() bool, msg string) {
	t.Helper()
	env.Soon(t, condition, msg)
}

// must fails the test if a kubectl command failed.
func must(t *testing.T, got env.Result) {
	t.Helper()
	require.Zero(t, got.Code, got.Stderr)
}

// running is a started Watcher.
type running struct {
	*Watcher
	store *snapshot.Store
	lines *logbuffer.Buffer
}

// startWatcher starts a Watcher, which stops at the end of the test.
func startWatcher(t *testing.T, cfg *rest.Config) *running {
	t.Helper()
	r := &running{store: snapshot.New(Sources...), lines: &logbuffer.Buffer{}}
	var err error
	r.Watcher, err = New(cfg, r.store, Options{Log: r.lines.At(0), EventTimeout: time.Minute})
	require.NoError(t, err)
	process.Run(t, r.Start)
	return r
}

func (r *running) ready(t *testing.T) {
	t.Helper()
	soon(t, func() bool { _, ready := r.store.View(); return ready }, "the store is not ready")
}

func (r *running) has(ref api.Ref) bool {
	v, _ := r.store.View()
	return v.Get(ref) != nil
}

func (r *running) kinds() []string {
	v, _ := r.store.View()
	return kindNames(v)
}

func kindNames(v *snapshot.View) []string {
	var out []string
	for _, k := range v.Kinds() {
		out = append(out, k.Kind)
	}
	return out
}

func (r *running) knows(kind string) bool { return slices.Contains(r.kinds(), kind) }

// failingSources are the sources that cannot be watched.
func (r *running) failingSources() []string {
	var out []string
	for _, h := range r.Health() {
		if h.Err != nil {
			out = append(out, h.Source)
		}
	}
	return out
}

// rules allow to read resources of groups.
func rules(groups map[string][]string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for group, resources := range groups {
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "list", "watch"}})
	}
	return out
}

// without deletes a CustomResourceDefinition, and returns a function that restores it.
func without(t *testing.T, e *env.Env, name string) (restore func()) {
	t.Helper()
	client, err := clientset.NewForConfig(e.Config)
	require.NoError(t, err)
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	old, err := crds.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	must(t, e.Kubectl("delete", "crd", name))
	return sync.OnceFunc(func() {
		fresh := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: old.Labels, Annotations: old.Annotations}, Spec: old.Spec,
		}
		_, err := crds.Create(context.Background(), fresh, metav1.CreateOptions{})
		require.NoError(t, err)
		must(t, e.Kubectl("wait", "--for=condition=Established", "--timeout=2m", "crd", name))
	})
}

// faultyProxy is a proxy to the API server whose connections can be cut.
type faultyProxy struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	// held is closed when connections need not outlive those to the API server any more,
	// nil if they do not.
	held chan struct{}
}

// newFaultyProxy returns a configuration whose connections pass through the proxy.
func newFaultyProxy(t *testing.T, cfg *rest.Config) (*faultyProxy, *rest.Config) {
	t.Helper()
	to, err := url.Parse(cfg.Host)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := &faultyProxy{listener: listener, to: to.Host}
	go l.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		l.set(true)
	})
	out := rest.CopyConfig(cfg)
	to.Host = listener.Addr().String()
	out.Host = to.String()
	return l, out
}

func (l *faultyProxy) serve() {
	for {
		in, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		out, err := net.Dial("tcp", l.to)
		if err != nil || !l.keep(in, out) {
			_ = in.Close()
			continue
		}
		go l.pipe(in, out)
		go l.pipe(out, in)
	}
}

func (l *faultyProxy) pipe(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if held != nil {
		<-held
	}
	_ = to.Close()
}

// hold keeps connections open although the API server closes them, until the returned
// function resets them.
func (l *faultyProxy) hold() (reset func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = make(chan struct{})
	return func() {
		l.mu.Lock()
		close(l.held)
		l.held = nil
		l.mu.Unlock()
		l.set(true)
		l.set(false)
	}
}

func (l *faultyProxy) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return false
	}
	l.conns = append(l.conns, conns...)
	return true
}

// set cuts or restores the connections.
func (l *faultyProxy) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func isForbidden(problems []Problem, resource string) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool {
		return p.Resource == resource && apierrors.IsForbidden(p.Err)
	})
}
