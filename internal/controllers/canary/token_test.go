package canary

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestPathTokenIsRedacted(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	message := func(format string) string { return fmt.Sprintf(format, token) }
	for name, answer := range map[string]error{
		"no connection": apierrors.NewInternalError(fmt.Errorf("%s", message(
			`failed calling webhook "validate.overrule.dev": failed to call webhook: Post "https://overrule.overrule-system.svc:443/validate/%s?timeout=3s": dial tcp 127.0.0.2:443: connection refused`))),
		"of both webhooks": apierrors.NewInternalError(fmt.Errorf("%s", message(
			`failed calling webhook "mutate.overrule.dev": failed to call webhook: Post "https://x/mutate/%[1]s?timeout=3s": EOF; Post "https://x/validate/%[1]s": EOF`))),
		"unknown message":            statusError(http.StatusServiceUnavailable, "", message(`cannot reach https://x/validate/%s`)),
		"message of another webhook": denialError("others.example.com", message(`{\"url\":\"https://x/mutate/%s\"}`)),
	} {
		t.Run(name, func(t *testing.T) {
			apiServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				status := answer.(apierrors.APIStatus).Status() //nolint:forcetypeassert // made above
				status.APIVersion, status.Kind = "v1", "Status"
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(status.Code))
				assert.NoError(t, json.NewEncoder(w).Encode(status))
			}))
			t.Cleanup(apiServer.Close)
			c, err := New(&rest.Config{Host: apiServer.URL}, Options{Enforcement: api.Deny, Namespace: "app", Configuration: "overrule", Timeout: time.Minute})
			require.NoError(t, err)
			r := c.Run(t.Context())
			asJSON, err := json.Marshal(r)
			require.NoError(t, err)
			for _, text := range []string{r.Text(), string(asJSON), r.Message()} {
				assert.NotContains(t, text, token)
				assert.Regexp(t, `/(validate|mutate)/…`, text, "the rest of the path is kept")
			}
		})
	}
}
