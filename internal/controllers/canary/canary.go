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

// DefaultTimeout of a run: the three seconds of each of two webhooks, and what
// a busy API server takes.
const DefaultTimeout = 10 * time.Second

// Options of a Canary.
type Options struct {
	// Does is what the installation does about a denial: Deny, Warn or Audit.
	Enforcement api.Action
	// Namespace, if set, is where a route is tried, too.
	Namespace string
	// Configuration is the name of the webhook configurations, to tell what is
	// wrong with them.
	Configuration string
	// Timeout of a run; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Canary sends writes to an API server. Make it with New.
type Canary struct {
	Options
	client kubernetes.Interface
	// api sends what no typed client does: it shows warnings, and waits for no
	// answer that asks to come again.
	api rest.Interface
}

// New returns a canary that acts as the user of cfg.
func New(cfg *rest.Config, o Options) (*Canary, error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.RateLimiter = -1, nil // a queue in here would look like a slow API server
	own.WarningHandlerWithContext, own.WarningHandler = rest.NoWarnings{}, nil
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	own = rest.CopyConfig(own)
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	own.ContentType, own.AcceptContentTypes = "application/json", "application/json"
	raw, err := rest.UnversionedRESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Canary{Options: o, client: client, api: raw}, nil
}

// Run tries all writes at once and returns what came of them, within Timeout.
func (c *Canary) Run(ctx context.Context) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	begun := time.Now()
	writes := c.writes()
	trials := make([]Attempt, len(writes))
	var all sync.WaitGroup
	for i, w := range writes {
		all.Go(func() { trials[i] = c.attempt(ctx, w) })
	}
	all.Wait()
	r := newResult(c.Enforcement, trials)
	r.Note = c.limitation()
	r.At = time.Now()
	r.Took = r.At.Sub(begun)
	return r
}

// note tells what a run under audit does not prove.
func (c *Canary) limitation() string {
	switch {
	case c.Enforcement != api.Audit:
		return ""
	case c.Namespace == "":
		return "with --enforcement=audit responses do not show denials: this run verifies that writes are not blocked, but not that they are evaluated"
	default:
		return "with --enforcement=audit responses do not show denials: this run verifies that writes are not blocked and that " + mutating + " is called, but not that writes are evaluated"
	}
}

func (c *Canary) attempt(ctx context.Context, w write) Attempt {
	begun := time.Now()
	a := c.send(ctx, w)
	t := Attempt{Sent: w.description, Milliseconds: time.Since(begun).Milliseconds()}
	v := w.check(c.Enforcement, a)
	t.Outcome, t.Response, t.overloaded = v.outcome, v.response, v.overloaded
	if v.notEvaluated {
		t.Response += ": " + c.diagnose(ctx)
	}
	t.Response = api.RedactToken(t.Response)
	return t
}
