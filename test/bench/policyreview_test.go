package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/webhook"
)

// oneNamespace allows users to get the objects of one namespace.
type oneNamespace string

func (n oneNamespace) MayGet(_ context.Context, _ *authenticationv1.UserInfo, object api.Ref) (bool, error) {
	return object.Namespace == string(n), nil
}

// questionAbout returns the admission review of an EffectivePolicyReview about an object.
func questionAbout(t testing.TB, object map[string]any) []byte {
	t.Helper()
	meta := object["metadata"].(map[string]any) //nolint:forcetypeassert // of the fixture
	spec, err := json.Marshal(map[string]any{"spec": api.ReviewSpec{
		Object: api.ReviewObject{Group: api.GatewayGroup, Kind: object["kind"].(string), Name: meta["name"].(string)}, //nolint:forcetypeassert // of the fixture
	}})
	require.NoError(t, err)
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "question", Operation: admissionv1.Create, Namespace: meta["namespace"].(string), DryRun: new(true), //nolint:forcetypeassert // of the fixture
			Kind: metav1.GroupVersionKind{Group: api.Group, Version: "v1alpha1", Kind: api.KindEffectivePolicyReview}, Object: runtime.RawExtension{Raw: spec},
		},
	})
	require.NoError(t, err)
	return data
}

// BenchmarkPolicyReview answers EffectivePolicyReviews among 10,000 routes, and measures
// 100 writes per second without and with 100 reviews per second beside them.
func BenchmarkPolicyReview(b *testing.B) {
	w := newGrowthCluster(b, 10_000)
	route := w.Size.Route(7)
	namespace := route["metadata"].(map[string]any)["namespace"].(string) //nolint:forcetypeassert // of the fixture
	handler := webhook.New(webhook.Options{
		Store: w.Store, Guard: w.guard, InFlight: w.inFlight, Readers: oneNamespace(namespace), Enforcement: guard.EnforceDeny, Log: logr.Discard(),
	}).Handler()
	question := questionAbout(b, route)
	b.Run("route", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, postReview(handler, webhook.PathReview, question))
		}
	})
	var writes [][]byte
	for _, i := range w.spread() {
		write := w.Size.RouteWrite(i)
		w.Put(b, write.Before)
		writes = append(writes, dryRun(b, write))
	}
	for _, reviews := range []int{0, 100} {
		b.Run(fmt.Sprintf("writes/reviews=%d", reviews), func(b *testing.B) {
			for b.Loop() {
				reportQuantiles(b, "write", beside(b, handler, writes, question, reviews))
			}
		})
	}
}

// beside sends 100 writes per second for ten seconds, with a number of reviews per second
// beside them, and returns how long the writes took.
func beside(b *testing.B, handler http.Handler, writes [][]byte, question []byte, reviews int) []time.Duration {
	b.Helper()
	ctx, stop := context.WithTimeout(b.Context(), 10*time.Second)
	defer stop()
	var mu sync.Mutex
	var took []time.Duration
	var sending sync.WaitGroup
	sending.Go(func() {
		pace(ctx, &sending, 100, func(i int) {
			start := time.Now()
			if err := validate(handler, writes[i%len(writes)]); err != nil {
				b.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(start))
		})
	})
	if reviews > 0 {
		sending.Go(func() {
			pace(ctx, &sending, reviews, func(int) {
				if err := postReview(handler, webhook.PathReview, question); err != nil {
					b.Error(err)
				}
			})
		})
	}
	sending.Wait()
	return took
}

// pace calls a function a number of times per second until ctx ends, concurrently.
func pace(ctx context.Context, calls *sync.WaitGroup, perSecond int, call func(i int)) {
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
			calls.Go(func() { call(i) })
		case <-ctx.Done():
			return
		}
	}
}
