package webhook

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Reserves are the parts of the timeout of a call in which nothing is evaluated. A response
// that arrives after the timeout is ignored.
const (
	// minResponseReserve is what a call takes besides its evaluation. The timeout of the
	// API server begins before that of this server, with a TCP and a TLS handshake, and
	// ends with the last byte of the response: two round trips of some milliseconds
	// between zones, and CPU at both ends. A container with a CPU limit can stand still
	// for 100 ms in each of the two, and an API server under load is as slow. An
	// evaluation notices its deadline within grace, and competes for the CPU until then.
	// Beyond that a late denial is an error at the client, and the write is not stored.
	minResponseReserve = 500 * time.Millisecond
	// minLateReserve is the same for writes that the API server admits if the response
	// is late: what is an error elsewhere bypasses the evaluation. It is twice as much,
	// which is the time of several throttled periods, of a slow garbage collection, or
	// of a packet that is sent again.
	minLateReserve = time.Second
	// forwardReserve is what a forwarded review takes besides its evaluation: grace, a
	// round trip between zones, and a pause of a container with a CPU limit. If the
	// response of the leader is later, this replica answers with NoLeader: no write
	// escapes, but the client retries one that may take as long again, and the leader
	// has an admitted write in flight that is never stored.
	forwardReserve = grace + 100*time.Millisecond
)

// Users who increase the timeout have a slow cluster, in which the rest of a call is slow,
// too: the reserves are at least these parts of it, and at most half.
const (
	responsePart = 6
	latePart     = 3
)

// responseReserve returns the reserve for a response.
func (o *Options) responseReserve(timeout time.Duration) time.Duration {
	return min(cmp.Or(o.ResponseReserve, max(minResponseReserve, timeout/responsePart)), timeout/2)
}

// lateReserve returns the reserve for a response to a write that is admitted if it is late.
func (o *Options) lateReserve(timeout time.Duration) time.Duration {
	return min(cmp.Or(o.LateReserve, max(minLateReserve, timeout/latePart)), timeout/2)
}

// callTimeout returns how long the API server waits for the response of a request: its
// timeout parameter, which the API server rounds up to a second, but at most MaxTimeout.
func (s *Server) callTimeout(r *http.Request) time.Duration {
	d, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || d <= 0 {
		d = s.opts.Timeout
	}
	if d <= s.opts.MaxTimeout {
		return d
	}
	s.longTimeout.Store(&longTimeout{d, s.opts.Now()})
	return s.opts.MaxTimeout
}

// longTimeout is a timeout above MaxTimeout, and when it was last seen.
type longTimeout struct {
	timeout time.Duration
	seen    time.Time
}

// longTimeoutReported is how long after the last call TimeoutProblem reports a timeout:
// the webhooks of rare writes may have it alone.
const longTimeoutReported = 10 * time.Minute

// TimeoutProblem returns an error if the API server waits longer than MaxTimeout.
func (s *Server) TimeoutProblem() error {
	last := s.longTimeout.Load()
	if last == nil || s.opts.Now().Sub(last.seen) > longTimeoutReported {
		return nil
	}
	//nolint:err113 // the text is shown by /readyz only
	return fmt.Errorf("timeoutSeconds of a webhook is %s, of which only %s fit into --lease-duration and are used; set timeoutSeconds to --webhook-timeout (%s), or increase --webhook-timeout",
		last.timeout, s.opts.MaxTimeout, s.opts.Timeout)
}

// remaining returns the time that a request may take: the timeout of the API server less
// the reserve, or what is left of that if another replica forwarded it.
func (c *call) remaining(r *http.Request) time.Duration {
	d := c.timeout - c.opts.responseReserve(c.timeout)
	if !c.forwarded {
		return d
	}
	left, err := strconv.ParseInt(r.Header.Get(coordination.HeaderRemaining), 10, 64)
	if err != nil {
		return d
	}
	return min(d, max(time.Duration(left)*time.Millisecond-forwardReserve, 0))
}

// ignoredKinds are those whose webhooks always have failurePolicy Ignore, besides that of
// system writes, which are never denied.
var ignoredKinds = []api.PolicyKind{{Kind: gateway.KindService}, {Kind: gateway.KindNamespace}, policykind.KindDefinition}

// withLateReserve returns a context with the late reserve in place of the other one, if the
// API server admits the write of the call when the response is late.
func (c *call) withLateReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	late := c.name == webhookValidate && (c.opts.IgnoreFailures || slices.Contains(ignoredKinds, kindOf(c.request)))
	if !late || c.forwarded {
		return ctx, func() {}
	}
	end, _ := ctx.Deadline()
	return context.WithDeadline(ctx, end.Add(c.opts.responseReserve(c.timeout)-c.opts.lateReserve(c.timeout)))
}

// withFraction returns a context with the remaining time divided by a divisor.
func withFraction(ctx context.Context, divisor time.Duration) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	return context.WithTimeout(ctx, time.Until(end)/divisor)
}
