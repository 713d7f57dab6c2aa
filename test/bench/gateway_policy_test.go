package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/test/worlds"
	"overrule.dev/overrule/webhook"
)

// BenchmarkGatewayPolicyWrite is an UPDATE of the policy of a gateway with 10,000
// routes of one path each, which changes the value of a rule on all of them: from
// the review's bytes to those of the response. The routes have a policy of their
// own, or one that the gateway's condition is evaluated on, or none. Each op
// writes another value, which is stored before the next op. The user may change
// overrides.
//
// "mix" is the same in a cluster of the full size, on its busy gateway: 5,000
// routes with all their objects.
func BenchmarkGatewayPolicyWrite(b *testing.B) {
	const routes = 10_000
	b.Run("own-policy", uniformWrites(worlds.Uniform{Routes: routes, OwnPolicy: true}))
	b.Run("own-policy-when", uniformWrites(worlds.Uniform{Routes: routes, OwnPolicy: true, When: true}))
	b.Run("no-policy", uniformWrites(worlds.Uniform{Routes: routes}))
	b.Run("mix", func(b *testing.B) {
		c := worlds.Mix(b, worlds.Full)
		gatewayWrites(b, newProduction(b, c), func(n int) worlds.Write {
			w := c.Size.GatewayPolicyWrite(worlds.Busy)
			if n%2 == 1 {
				return w.Back()
			}
			return w
		})
	})
}

// uniformWrites returns the benchmark of writes of the gateway's policy in a
// uniform cluster with additional objects.
func uniformWrites(u worlds.Uniform, more ...map[string]any) func(*testing.B) {
	return func(b *testing.B) {
		c := u.Cluster(b)
		c.Put(b, more...)
		gatewayWrites(b, newProduction(b, c), func(n int) worlds.Write {
			return worlds.Write{Before: u.GatewayPolicy(n), After: u.GatewayPolicy(n + 1)}
		})
	}
}

// gatewayWrites evaluates one write after the other, each based on those before.
func gatewayWrites(b *testing.B, p *production, write func(n int) worlds.Write) {
	b.Helper()
	handler := p.hooks.Handler()
	n := 0
	one := func(before, after func()) {
		t := newReviewedWrite(b, write(n))
		n++
		before()
		err := validate(handler, t.review)
		after()
		require.NoError(b, err)
		require.NoError(b, p.event(t.watchEvent))
		p.audit(b, t.ref)
	}
	one(func() {}, func() {}) // fills the memo, as in a running server
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		one(b.StartTimer, b.StopTimer)
		b.StartTimer()
	}
}

// validate sends a review to the validating webhook's handler, without a
// connection.
func validate(handler http.Handler, review []byte) error {
	return postReview(handler, webhook.PathValidate, review)
}

// postReview sends a review to one of the handler's paths, and fails unless the
// write is allowed.
func postReview(handler http.Handler, path string, review []byte) error {
	r := httptest.NewRequest(http.MethodPost, path+timeout, bytes.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK || !bytes.Contains(answer.Body.Bytes(), allowed) {
		return fmt.Errorf("the write was not allowed: %d %s", answer.Code, answer.Body)
	}
	return nil
}

// BenchmarkEffective computes the effective policies of 5,000 paths, each of a
// route with its own policy, with an empty memo.
func BenchmarkEffective(b *testing.B) { b.Run("paths=5000", fromCold(5_000)) }

func fromCold(paths int) func(*testing.B) {
	return func(b *testing.B) {
		c := worlds.Uniform{Routes: paths, OwnPolicy: true}.Cluster(b)
		v, _ := c.Store.View()
		all := effective.Scope{All: true}
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			budget := effective.NewBudget(b.Context(), 1<<60)
			err := effective.NewEngine().Walk(v, all, false, budget, func(e *effective.Effective) error {
				n += len(e.Layers)
				return nil
			})
			if err != nil || n != 2*paths {
				b.Fatalf("%d policies on the paths in place of %d: %v", n, 2*paths, err)
			}
		}
	}
}
