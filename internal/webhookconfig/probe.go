package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
)

const (
	// ProbeName is the name of the EffectivePolicyReview of a Probe. It is never stored.
	ProbeName = "overrule-probe"
	// probeInterval is the time between two probes, probeRetry that after a failure.
	probeInterval = time.Minute
	probeRetry    = time.Second
	// probeFailures is how many failures in a row are a problem.
	probeFailures = 3
	// serverTime is what an API server may take for a write besides its webhooks.
	serverTime = 4 * time.Second
)

// Probe checks on the leader whether the API server reaches the webhooks. It asks for an
// EffectivePolicyReview that has no question, which the webhook for these denies, on any
// replica. The rules and failurePolicy of that webhook do not change.
type Probe struct {
	client    kubernetes.Interface
	namespace string
	timeout   time.Duration
	log       logr.Logger
	reached   chan struct{}
	problem   problem
}

// NewProbe returns a probe that creates its review in a namespace. timeout is that of the
// webhooks.
func NewProbe(client kubernetes.Interface, namespace string, timeout time.Duration, log logr.Logger) *Probe {
	return &Probe{client: client, namespace: namespace, timeout: timeout + serverTime, log: log, reached: make(chan struct{})}
}

// Reached returns a channel that is closed once the API server has reached the webhooks.
func (p *Probe) Reached() <-chan struct{} { return p.reached }

// Problem returns why the API server does not reach the webhooks, nil if it does. Only the
// leader knows.
func (p *Probe) Problem() error { return p.problem.get() }

// NeedLeaderElection makes controller-runtime run a Probe on the leader.
func (p *Probe) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it probes until ctx ends.
func (p *Probe) Start(ctx context.Context) error {
	defer p.problem.set(logr.Discard(), nil)
	for failures := 0; ; {
		err := p.probe(ctx)
		if ctx.Err() != nil {
			return nil
		}
		pause := probeInterval
		if err == nil {
			failures = 0
			p.succeed()
		} else if failures++; failures >= probeFailures {
			p.problem.set(p.log, err)
		}
		if err != nil {
			pause = probeRetry
		}
		if !background.Sleep(ctx, pause) {
			return nil
		}
	}
}

func (p *Probe) succeed() {
	p.problem.set(p.log, nil)
	select {
	case <-p.reached:
	default:
		p.log.Info("the API server reaches the webhooks")
		close(p.reached)
	}
}

// answered is in the error of a write that the webhook denied, and in no other.
const answered = `admission webhook "` + reviewWebhook + `" denied the request`

// probe returns why the API server did not reach the webhook.
func (p *Probe) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	review := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},"spec":{"object":{}}}`, api.APIVersion, api.KindEffectivePolicyReview, ProbeName)
	err := p.client.CoreV1().RESTClient().Post().
		AbsPath("apis", api.APIVersion, "namespaces", p.namespace, "effectivepolicyreviews").
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json").
		MaxRetries(0).
		Body([]byte(review)).Do(ctx).Error()
	switch {
	case err == nil:
		err = errors.New("it does not call webhook " + reviewWebhook)
	case strings.Contains(err.Error(), answered):
		return nil
	}
	return fmt.Errorf("the API server does not reach the webhooks: %s; open the port of --webhook-bind-address for it, or see docs/troubleshooting.md, OverruleNotCalled", api.RedactToken(err.Error()))
}
