package replay

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWatchReportsGaps(t *testing.T) {
	const put = `{"result":{"events":[{"kv":{"key":"YQ==","mod_revision":"7"}}]}}`
	for name, c := range map[string]struct{ stream, says string }{
		"the connection ends":     {put, "EOF"},
		"a message is cut":        {put + `{"result":{"ev`, "EOF"},
		"revisions are compacted": {put + `{"result":{"canceled":true,"compact_revision":"9","cancel_reason":"required revision has been compacted"}}`, "compacted"},
		"etcd returns an error":   {put + `{"error":{"message":"etcdserver: no leader"}}`, "no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.stream)) }))
			defer gateway.Close()
			var seen []int64
			err := etcd{gateway.URL}.watch(t.Context(), 7, func(c change) bool {
				seen = append(seen, c.KeyValue.Revision)
				return true
			})
			assert.ErrorIs(t, err, ErrGap)
			assert.ErrorContains(t, err, c.says)
			assert.Equal(t, []int64{7}, seen)
		})
	}
}
