package webhook

import (
	"context"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/snapshot"
)

// BenchmarkAdmit measures an admission without its evaluation: memory, slot, goroutine
// and channel. A pool of workers would save one allocation and, with 9 KiB of stack to
// grow, about a microsecond of the two; growing stacks take less than 1 % of a write's CPU
// (BenchmarkLoad).
func BenchmarkAdmit(b *testing.B) {
	s := New(Options{Store: snapshot.New(), Log: logr.Discard()})
	v, _ := s.opts.Store.View()
	r := &admissionv1.AdmissionRequest{UID: uid}
	e := endpoint{webhookValidate, spanEvaluate, func(context.Context, *call, *snapshot.View) response { return allow() }, s.denyFailed, s.denyOverloaded}
	b.ReportAllocs()
	for b.Loop() {
		l, ok := s.limiter.reserve(b.Context(), minWeight)
		require.True(b, ok)
		if a := (&call{Server: s, endpoint: e, request: r, reserved: l, slots: s.limiter.slots}).admit(b.Context(), v); !a.Allowed {
			b.Fatal(a.reason)
		}
		l.release()
	}
}
