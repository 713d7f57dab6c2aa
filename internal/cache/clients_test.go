package cache

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// If an API server cannot convert a resource, it asks the client to retry after 30 s;
// client-go would not return the error for five minutes.
func TestRejectedWatchIsNotRetriedByClient(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "30")
		http.Error(w, "storage is (re)initializing", http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	c, err := newClients(&rest.Config{Host: server.URL}, 0)
	require.NoError(t, err)

	_, err = c.definitionsListWatch().WatchWithContext(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	assert.True(t, apierrors.IsTooManyRequests(err), err)
	_, err = c.definitionsListWatch().ListWithContext(t.Context(), metav1.ListOptions{})
	assert.True(t, apierrors.IsTooManyRequests(err), err)
	assert.EqualValues(t, 2, asked.Load())
}
