//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

var (
	gatewayResource = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gateways"}
	routeResource   = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// unlimitedClient returns a client without rate limit that ignores warnings.
func unlimitedClient(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func newRoute(namespace, name, padding string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"hostnames": []any{"a.example.com"}, "rules": []any{map[string]any{"matches": []any{map[string]any{
			"path": map[string]any{"type": "PathPrefix", "value": "/" + padding},
		}}}}},
	}}
}

func newGateway(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{"gatewayClassName": "shop", "listeners": []any{
			map[string]any{"name": "http", "protocol": "HTTP", "port": int64(80)},
		}},
	}}
}

// concurrently calls a function n times, sixteen at a time.
func concurrently(n int, call func(i int)) {
	var group sync.WaitGroup
	for worker := range 16 {
		group.Go(func() {
			for i := worker; i < n; i += 16 {
				call(i)
			}
		})
	}
	group.Wait()
}

// Neither the in-flight writes of one tenant, nor reviews that are forged with
// the token, block writes of other tenants.
func TestTenantsDoNotBlockEachOther(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "flight")
	s := c.start(t)
	c.awaitCalled(t)
	tenant := unlimitedClient(t, c.MustAddUser(t, "flight-tenant", nil, rbacv1.PolicyRule{
		APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
	}).Config)
	admin := unlimitedClient(t, c.Config)
	for name, attack := range map[string]func(*testing.T){
		"ten objects that etcd rejects": func(t *testing.T) {
			for i := range 10 {
				large := newRoute(g.app, fmt.Sprintf("large-%d", i), "")
				large.SetAnnotations(map[string]string{"pad": strings.Repeat("x", 200<<10)})
				require.NoError(t, unstructured.SetNestedField(large.Object, largeRules(), "spec", "rules"))
				_, err := tenant.Resource(routeResource).Namespace(g.app).Create(t.Context(), large, metav1.CreateOptions{})
				require.Error(t, err)
				assert.Contains(t, err.Error(), "the limit is 1572864")
			}
		},
		"more creates of existing objects than the log can hold": func(t *testing.T) {
			var other sync.Map
			concurrently(writeCount(), func(int) {
				_, err := tenant.Resource(routeResource).Namespace(g.app).Create(context.Background(), newRoute(g.app, "toystore", "x"), metav1.CreateOptions{})
				if !apierrors.IsAlreadyExists(err) {
					other.Store(fmt.Sprint(err), true)
				}
			})
			other.Range(func(err, _ any) bool { return assert.Fail(t, "not a conflict", err) })
		},
		"forged reviews": func(t *testing.T) {
			where := c.path(t)
			client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
			t.Cleanup(client.CloseIdleConnections)
			var denied sync.Map
			concurrently(writeCount(), func(i int) {
				text, err := postForgedRoute(&client, s, where, g.app, i)
				assert.NoError(t, err)
				if strings.Contains(text, "too many writes of this user") {
					denied.Store(i, true)
				}
			})
			n := 0
			denied.Range(func(any, any) bool { n++; return true })
			t.Logf("of %d forged reviews %d were denied", writeCount(), n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			attack(t)
			for i := range 10 {
				written := strings.ReplaceAll(fmt.Sprintf("elsewhere-%d-%d", len(name), i), " ", "-")
				_, err := admin.Resource(gatewayResource).Namespace(g.infra).Create(t.Context(), newGateway(g.infra, written), metav1.CreateOptions{})
				require.NoError(t, err)
				_, err = admin.Resource(routeResource).Namespace(g.infra).Create(t.Context(), newRoute(g.infra, written, ""), metav1.CreateOptions{})
				require.NoError(t, err)
				_, err = admin.Resource(routeResource).Namespace(g.app).Create(t.Context(), newRoute(g.app, written, ""), metav1.CreateOptions{})
				if name != "forged reviews" { // with the name of this namespace
					require.NoError(t, err)
				}
			}
		})
	}
}

// writeCount is the number of writes: more than the in-flight log can hold or,
// with -short, enough to see that nothing is kept.
func writeCount() int {
	if testing.Short() {
		return 500
	}
	return 4200
}

// largeRules returns rules of about 1.4 MB.
func largeRules() []any {
	matches := make([]any, 64)
	for i := range matches {
		headers := make([]any, 16)
		for j := range headers {
			headers[j] = map[string]any{"type": "Exact", "name": fmt.Sprintf("h%d", j), "value": strings.Repeat("x", 1400)}
		}
		matches[i] = map[string]any{"headers": headers}
	}
	return []any{map[string]any{"matches": matches}}
}

// postForgedRoute posts a review of a small route with a name and user of its
// own.
func postForgedRoute(client *http.Client, s *server.Server, where, namespace string, i int) (string, error) {
	if i%2 == 0 {
		namespace = fmt.Sprintf("none-%d", i)
	}
	body := fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":%[1]q,"name":"r-%[2]d",
		"kind":{"group":"gateway.networking.k8s.io","version":"v1","kind":"HTTPRoute"},"userInfo":{"username":"user-%[2]d"},
		"object":{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"namespace":%[1]q,"name":"r-%[2]d","uid":"u-%[2]d"},"spec":{}}}}`, namespace, i)
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://"+s.Webhook+where, bytes.NewReader([]byte(body)))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
