package bench

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
	"overrule.dev/overrule/webhook"
)

// heavyTimeout is the timeout in the webhook configurations.
const heavyTimeout = "?timeout=3s"

// BenchmarkHeavy sends each large input at its full size to the validating webhook,
// wired as in production, with empty caches. It measures the time of the response and
// its allocations, the peak growth of the heap (peak-MiB), and whether the response was
// that the write is too large (too-much: 1).
func BenchmarkHeavy(b *testing.B) {
	for _, c := range worlds.HeavyCases() {
		b.Run(c.What, func(b *testing.B) {
			cluster, write := c.Build(b, c.Full)
			objects := cluster.Store
			review := write.Review(b, "heavy")
			var sum heavyFigures
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				server := heavyServer(objects, c.BlastRadius)
				runtime.GC()
				stop := watchHeap()
				b.StartTimer()
				answer := postHeavy(b, server, review)
				b.StopTimer()
				sum.peak = max(sum.peak, stop())
				sum.tooMuch += tooMuch(answer)
				if answer.Result != nil {
					b.Logf("denied: %.300s", answer.Result.Message)
				}
				b.StartTimer()
			}
			b.StopTimer()
			sum.report(b)
		})
	}
}

type heavyFigures struct {
	peak    uint64 // bytes above the heap before
	tooMuch int
}

func (f *heavyFigures) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(float64(f.peak)/(1<<20), "peak-MiB")
	b.ReportMetric(float64(f.tooMuch)/float64(b.N), "too-much")
}

// heavyServer is the handler as in production, with one evaluation slot.
func heavyServer(objects *snapshot.Store, blastRadius int) http.Handler {
	return webhook.New(webhook.Options{
		Store: objects, Guard: &guard.Guard{Engine: effective.NewEngine(), Permissions: rightsOf(false), BlastRadius: blastRadius, MatchLimit: guard.DefaultMatchLimit},
		InFlight: inflight.New(objects, inflight.Options{}), MaxObject: webhook.DefaultBodyLimit, MaxConcurrent: 1, Log: logr.Discard(),
	}).Handler()
}

func postHeavy(b *testing.B, h http.Handler, review []byte) *admissionv1.AdmissionResponse {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, webhook.PathValidate+heavyTimeout, bytes.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(b, http.StatusOK, w.Code, w.Body)
	var answer admissionv1.AdmissionReview
	require.NoError(b, json.Unmarshal(w.Body.Bytes(), &answer))
	require.NotNil(b, answer.Response)
	return answer.Response
}

func tooMuch(a *admissionv1.AdmissionResponse) int {
	if a.Result != nil && strings.HasPrefix(a.Result.Message, string(api.ReasonTooMuch)+":") {
		return 1
	}
	return 0
}

// watchHeap measures the growth of the heap until stop is called.
func watchHeap() (stop func() uint64) {
	before := heapBytes()
	most := before
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			most = max(most, heapBytes())
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(done)
		<-ended
		return most - before
	}
}

func heapBytes() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
