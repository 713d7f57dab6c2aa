package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestRefreshHasAccountAndRateLimitOfItsOwn(t *testing.T) {
	var users []string
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		users = append(users, r.Header.Get("Impersonate-User"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`))
	}))
	t.Cleanup(cluster.Close)
	made, err := newRefreshClient(&rest.Config{Host: cluster.URL}, options{namespace: "here", refresh: refreshOptions{qps: 0.001}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	get := func() error {
		_, err := made.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
		return err
	}
	require.NoError(t, get())
	assert.ErrorContains(t, get(), "would exceed context deadline", "the next request has to wait for 1000 seconds")
	assert.Equal(t, []string{"system:serviceaccount:here:overrule-refresher"}, users)
}
