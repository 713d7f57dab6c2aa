//go:build integration

package webhookconfig_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/cert"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/webhook"
)

const ownNamespace = "overrule-system"

// service is a server in this process, registered at a real API server.
type service struct {
	plane     *env.Env
	authority *recordingAuthority
	changed   chan struct{}

	mu        sync.Mutex
	resources webhookconfig.PolicyResources
}

// recordingAuthority is an Authority that records the published bundles.
type recordingAuthority struct {
	*certs.Authority
	mu      sync.Mutex
	bundles []string
}

func (a *recordingAuthority) Published(bundle []byte) {
	a.mu.Lock()
	a.bundles = append(a.bundles, string(bundle))
	a.mu.Unlock()
	a.Authority.Published(bundle)
}

func (a *recordingAuthority) last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.bundles) == 0 {
		return ""
	}
	return a.bundles[len(a.bundles)-1]
}

func serve(t *testing.T) *service {
	t.Helper()
	s := &service{plane: env.Start(t), changed: make(chan struct{}, 1), resources: webhookconfig.PolicyResources{Policies: []webhookconfig.Resource{
		{Group: "kuadrant.io", Version: "v1", Resource: "authpolicies", Namespaced: true},
	}}}
	client, err := kubernetes.NewForConfig(s.plane.Config)
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := int32(listener.Addr().(*net.TCPAddr).Port)
	require.NoError(t, s.plane.RouteService(t.Context(), ownNamespace, "overrule", port))
	authority := certs.New(certs.Options{
		Secrets: client.CoreV1(), Namespace: ownNamespace, SecretName: "overrule-ca",
		Names:      certs.ServiceNames("overrule", ownNamespace),
		CAValidity: 18 * time.Second, LeafValidity: 6 * time.Second, Log: testr.New(t),
	})
	s.authority = &recordingAuthority{Authority: authority}
	tokens := certs.NewPathTokens(client.CoreV1(), ownNamespace, "overrule-path", testr.New(t))
	registrar := &webhookconfig.Reconciler{
		Client: client, Authority: s.authority, Tokens: tokens, Changed: s.changed, Log: testr.New(t),
		Configuration: webhookconfig.Configuration{
			Name: "overrule", Namespace: ownNamespace, Service: "overrule", Port: port, FailurePolicy: admissionregistrationv1.Fail,
		},
		PolicyResources: func() (webhookconfig.PolicyResources, bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.resources, true
		},
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	t.Cleanup(broadcaster.Shutdown)
	server := &http.Server{Handler: hooks(t, broadcaster.NewRecorder(runtime.NewScheme(), "overrule"), tokens).Handler(), ReadHeaderTimeout: time.Minute}
	process.Run(t, authority.Start, tokens.Start, registrar.Start)
	process.Run(t, func(context.Context) error {
		assert.ErrorIs(t, server.Serve(tls.NewListener(listener, certs.TLSConfig(authority))), http.ErrServerClosed)
		return nil
	})
	t.Cleanup(func() { _ = server.Close() })
	return s
}

// hooks returns a server with an empty store: it denies policies that cannot be decoded.
func hooks(t *testing.T, recorder webhook.EventRecorder, tokens webhook.Tokens) *webhook.Server {
	t.Helper()
	s := snapshot.New()
	kinds := policykind.BuiltinKinds()
	for _, k := range kinds {
		s.AddKind(k)
		s.KindListed(k.Ref())
	}
	return webhook.New(webhook.Options{Store: s, Guard: &guard.Guard{Engine: effective.NewEngine()}, Events: recorder, Tokens: tokens, Log: testr.New(t)})
}

// configured is a field of both configurations.
func (s *service) configured(field string) (validating, mutating string) {
	get := func(kind string) string {
		return s.plane.Kubectl("get", kind+"webhookconfiguration/overrule", "-o", "jsonpath={.webhooks[0]."+field+"}").Stdout
	}
	return get("validating"), get("mutating")
}

// eventually waits until both configurations have a value in a field.
func (s *service) eventually(t *testing.T, field, want string) {
	t.Helper()
	env.Soon(t, func() bool {
		v, m := s.configured(field)
		return v == want && m == want
	}, "%s is not %s", field, want)
}

// broken is a policy of which the webhook, and not the schema, knows that it
// cannot be read.
func broken(kind, namespace string) string {
	return `{apiVersion: kuadrant.io/v1, kind: ` + kind + `, metadata: {name: broken, namespace: ` + namespace + `}, spec: {
		targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge},
		overrides: {strategy: merge, when: "1 +", ` + map[string]string{"AuthPolicy": "rules: {authentication: {a: 1}}", "RateLimitPolicy": "limits: {a: {}}"}[kind] + `}}}`
}

func (s *service) denies(kind, namespace string) bool {
	got := s.plane.Apply(broken(kind, namespace), "--dry-run=server")
	return got.Code == 1 && strings.Contains(got.Stderr, `admission webhook "validate.overrule.dev" denied the request: Invalid: `+kind)
}

// TestReconcilerOnAPIServer boots one control plane for all that is asked
// of it here.
func TestReconcilerOnAPIServer(t *testing.T) {
	s := serve(t)
	policies := `["authpolicies"]`
	s.eventually(t, `rules[?(@.apiGroups[0]=="kuadrant.io")].resources`, policies)
	env.Soon(t, func() bool { return s.denies("AuthPolicy", "default") }, "the API server does not call")

	t.Run("leads the API server to the Service, and trusts its authority", func(t *testing.T) {
		v, m := s.configured("clientConfig.caBundle")
		assert.Equal(t, v, m)
		bundle, err := base64.StdEncoding.DecodeString(v)
		require.NoError(t, err)
		certificates, err := cert.ParseCertsPEM(bundle)
		require.NoError(t, err)
		assert.True(t, certificates[0].IsCA)
		assert.NotEmpty(t, s.authority.last())
	})

	t.Run("leaves out its own namespace", func(t *testing.T) {
		got := s.plane.Apply(broken("AuthPolicy", ownNamespace), "--dry-run=server")
		assert.Zero(t, got.Code, got.Stderr)
	})

	t.Run("removes what server-side apply keeps and switches it off", func(t *testing.T) {
		before, _ := s.configured("matchConditions")
		service, _ := s.configured("clientConfig.service")
		got := s.plane.Kubectl("patch", "validatingwebhookconfiguration/overrule", "--type=json", "-p",
			`[{"op":"replace","path":"/webhooks/0/clientConfig","value":{"url":"https://localhost:1/"}},
			  {"op":"add","path":"/webhooks/0/matchConditions/-","value":{"name":"never","expression":"false"}}]`)
		require.Zero(t, got.Code, got.Stderr)
		env.Soon(t, func() bool {
			conditions, _ := s.configured("matchConditions")
			now, _ := s.configured("clientConfig.service")
			return conditions == before && now == service
		}, "it is not reverted")
	})

	t.Run("leaves the namespaceSelector to a cloud that writes it", func(t *testing.T) {
		got := s.plane.Kubectl("patch", "validatingwebhookconfiguration/overrule", "--type=json", "--field-manager=cloud", "-p",
			`[{"op":"add","path":"/webhooks/0/namespaceSelector/matchExpressions/-","value":{"key":"control-plane","operator":"DoesNotExist"}},
			  {"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}]`)
		require.Zero(t, got.Code, got.Stderr)
		s.eventually(t, "failurePolicy", "Fail")
		selector, _ := s.configured("namespaceSelector")
		assert.Contains(t, selector, "control-plane")
		assert.Contains(t, selector, ownNamespace)
		for range 3 { // the third is sent when the first one is handled
			s.changed <- struct{}{}
		}
		again, _ := s.configured("namespaceSelector")
		assert.Equal(t, selector, again, "it stays as the cloud wrote it")
	})

	t.Run("records an Event for a denial, and none for a dry run", func(t *testing.T) {
		require.True(t, s.denies("AuthPolicy", "default"), "a dry run, as those above")
		got := s.plane.Apply(strings.Replace(broken("AuthPolicy", "default"), "name: broken", "name: loud", 1))
		require.Equal(t, 1, got.Code)
		recorded := func() string {
			return s.plane.Kubectl("get", "events.events.k8s.io", "-A", "-o",
				`jsonpath={range .items[?(@.action=="Admit")]}{.type} {.reason} {.regarding.kind} {.regarding.namespace}/{.regarding.name}{"\n"}{end}`).Stdout
		}
		env.Soon(t, func() bool { return strings.Contains(recorded(), "loud") }, "there is no Event")
		assert.Equal(t, "Warning Invalid AuthPolicy default/loud\n", recorded())
	})

	t.Run("trusts the old authority and the new one", func(t *testing.T) {
		env.Soon(t, func() bool {
			v, m := s.configured("clientConfig.caBundle")
			bundle, err := base64.StdEncoding.DecodeString(v)
			require.NoError(t, err)
			certificates, err := cert.ParseCertsPEM(bundle)
			return err == nil && v == m && len(certificates) == 2 && s.authority.last() == string(bundle)
		}, "the bundle does not hold both")
		assert.True(t, s.denies("AuthPolicy", "default"))
	})
}
