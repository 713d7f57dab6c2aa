package commands

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// apiServer answers for a cluster that has AuthPolicies, two on two pages.
func apiServer(t *testing.T, broken string) string {
	t.Helper()
	answers := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"kuadrant.io","versions":[{"groupVersion":"kuadrant.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"kuadrant.io/v1","version":"v1"}}]}`,
		"/apis/kuadrant.io/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"kuadrant.io/v1","resources":[
			{"name":"authpolicies","singularName":"authpolicy","namespaced":true,"kind":"AuthPolicy","verbs":["list"]}]}`,
		"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[]}`,
		"/apis/kuadrant.io/v1/authpolicies": `{"kind":"AuthPolicyList","apiVersion":"kuadrant.io/v1","metadata":{"continue":"more"},"items":[
			{"apiVersion":"kuadrant.io/v1","kind":"AuthPolicy","metadata":{"namespace":"app","name":"a"}}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if r.URL.Query().Get("continue") != "" {
			answer = strings.NewReplacer(`"continue":"more"`, "", `"a"}`, `"b"}`).Replace(answer)
		}
		if !ok || r.URL.Path == broken {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return strings.Replace(kubeconfig, "https://127.0.0.1:1", server.URL, 1)
}

// storedFuncs are the stored objects of a test.
type storedFuncs struct {
	getFunc  func(api.Ref) (map[string]any, error)
	listFunc func(api.PolicyKind) ([]map[string]any, error)
}

func (s storedFuncs) get(_ context.Context, ref api.Ref) (map[string]any, error) {
	return s.getFunc(ref)
}

func (s storedFuncs) list(_ context.Context, kind api.PolicyKind, _ string) ([]map[string]any, error) {
	return s.listFunc(kind)
}

func listed(t *testing.T, broken string, kind api.PolicyKind) ([]map[string]any, error) {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // no cache of another server's kinds
	a := &app{}
	a.root()
	*a.config.KubeConfig = write(t, "config", apiServer(t, broken))
	stored, err := a.storedObjects()
	require.NoError(t, err)
	return stored.list(t.Context(), kind, "")
}

func TestListRawObjects(t *testing.T) {
	auth := api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}
	objects, err := listed(t, "", auth)
	require.NoError(t, err)
	require.Len(t, objects, 2)
	assert.Equal(t, "b", objects[1]["metadata"].(map[string]any)["name"])
	objects, err = listed(t, "", api.PolicyKind{Group: "example.com", Kind: "Absent"})
	require.NoError(t, err)
	assert.Empty(t, objects, "a kind that the cluster does not have")
	_, err = listed(t, "/apis/kuadrant.io/v1/authpolicies", auth)
	assert.True(t, apierrors.IsForbidden(err), err)
	a := &app{}
	a.root()
	*a.config.KubeConfig = "nowhere"
	_, err = a.storedObjects()
	require.ErrorContains(t, err, "read the kubeconfig")
}
