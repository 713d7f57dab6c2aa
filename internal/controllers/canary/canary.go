package canary

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
)

// serverTime is what an API server may take for a write besides its webhooks: when it is
// busy, a run that is cut off looks as if writes are not evaluated.
const serverTime = 4 * time.Second

// TimeoutFor returns the timeout of a run for a timeout of the webhooks: a write calls two
// of them, one after the other.
func TimeoutFor(webhook time.Duration) time.Duration { return 2*webhook + serverTime }

// Options of a Canary.
type Options struct {
	// Enforcement is what the installation does about a denial: Deny, Warn or Audit.
	Enforcement api.Action
	// Namespace enables a test with an HTTPRoute in this namespace; empty for none.
	Namespace string
	// Configuration is the name of the webhook configurations. They are read to
	// diagnose failures.
	Configuration string
	// Timeout of a run (TimeoutFor).
	Timeout time.Duration
}

// Canary sends dry-run writes to an API server. Create it with New.
type Canary struct {
	opts   Options
	client kubernetes.Interface
	// api is a raw client, because typed clients do not return warnings, and wait if
	// the response asks to retry.
	api rest.Interface
}

// New returns a canary that acts as the user of cfg.
func New(cfg *rest.Config, o Options) (*Canary, error) {
	config := rest.CopyConfig(cfg)
	config.QPS, config.RateLimiter = -1, nil // a client-side limit would look like a slow API server
	config.WarningHandlerWithContext, config.WarningHandler = rest.NoWarnings{}, nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	raw, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return &Canary{opts: o, client: client, api: raw}, nil
}

// Run sends all writes in parallel and returns their results, within Timeout.
func (c *Canary) Run(ctx context.Context) Result {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	start := time.Now()
	writes := c.writes()
	attempts := make([]Attempt, len(writes))
	var group sync.WaitGroup
	for i, w := range writes {
		group.Go(func() { attempts[i] = c.attempt(ctx, w) })
	}
	group.Wait()
	r := newResult(c.opts.Enforcement, attempts)
	r.Note = c.limitation()
	r.At = time.Now()
	r.Took = r.At.Sub(start)
	return r
}

// limitation returns what a run with --enforcement=audit does not verify.
func (c *Canary) limitation() string {
	switch {
	case c.opts.Enforcement != api.Audit:
		return ""
	case c.opts.Namespace == "":
		return "with --enforcement=audit responses do not show denials: this run verifies that writes are not blocked, but not that they are evaluated"
	default:
		return "with --enforcement=audit responses do not show denials: this run verifies that writes are not blocked and that " + mutating + " is called, but not that writes are evaluated"
	}
}

func (c *Canary) attempt(ctx context.Context, w write) Attempt {
	start := time.Now()
	a := c.send(ctx, w)
	result := Attempt{Sent: w.description, Milliseconds: time.Since(start).Milliseconds()}
	v := w.check(c.opts.Enforcement, a)
	result.Outcome, result.Response, result.overloaded = v.outcome, v.response, v.overloaded
	if v.notEvaluated {
		result.Response += ": " + c.diagnose(ctx)
	}
	result.Response = api.RedactToken(result.Response)
	return result
}
