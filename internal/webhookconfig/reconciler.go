package webhookconfig

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
)

// fieldManager is the field manager of a Reconciler.
const fieldManager = "overrule"

// Authority provides the CA bundle for the configurations.
type Authority interface {
	CABundle() []byte
	// Changed returns a channel that is closed when the bundle next changes.
	Changed() <-chan struct{}
	// Published is called when the bundle is in every configuration, and with nil when
	// that is not known any more.
	Published(bundle []byte)
}

// TokenSource provides the token of the paths in the webhook configurations.
type TokenSource interface {
	// Token is "" until it is known.
	Token() string
	// Changed returns a channel that is closed when Token next changes.
	Changed() <-chan struct{}
	// Published is called when a token is in every configuration, and with "" when that
	// is not known any more.
	Published(token string)
}

// Reconciler keeps the webhook configurations in the wanted state: their rules follow
// the policy kinds, their caBundle the authority, and edits by other clients are
// reverted. It runs on the leader, and can be started again after it ended.
type Reconciler struct {
	Client kubernetes.Interface
	// Configuration without its CABundle and PolicyResources.
	Configuration Configuration
	Authority     Authority
	// Tokens, if set, provides the token of the paths. Nothing is written until there
	// is one.
	Tokens TokenSource
	// ExternalCABundle reports whether another client, such as cert-manager's
	// cainjector, writes the caBundle: then the existing one is kept. nil means never.
	// If it is false and the authority has no bundle, nothing is written.
	ExternalCABundle func() bool
	// EmptyBundleAdvice says what to do if another client's caBundle is empty.
	EmptyBundleAdvice string
	// PolicyResources returns the resources of the policy kinds; known is false until
	// they are discovered: a new leader must not remove existing rules. Changed
	// receives a value when they change.
	PolicyResources func() (resources PolicyResources, known bool)
	Changed         <-chan struct{}
	// Arming, if set, decides the failurePolicy instead of the Configuration.
	Arming Arming
	// OnWrite, if set, is called with the resulting failurePolicy each time that both
	// configurations were written, or an edit was left in place for now, and when they
	// were disarmed.
	OnWrite func(admissionregistrationv1.FailurePolicyType)
	Log     logr.Logger
	// Events and Metrics, if set, report reverted edits.
	Events  events.EventRecorder
	Metrics *Metrics

	term    term // only used by the goroutine of Start
	mu      sync.Mutex
	problem error
}

// term is the state from one call of Start to its end. The next one begins without it:
// another leader may have written the configurations in between.
type term struct {
	adopted          bool                     // Arming.Adopt was called
	applied          map[string][]webhook     // by configuration type, as last written
	reverts          map[string]revertBackoff // by configuration type
	recheckAfter     time.Duration            // time until an edit that was left in place is due
	disarmedByOthers bool                     // an edit that was left in place removed failurePolicy Fail
	conflicts        int                      // in a row
}

// retryBackoff is the backoff after errors.
var retryBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Cap: 30 * time.Second, Steps: 10, Jitter: 0.2}

// Start implements manager.Runnable: it reconciles until ctx ends.
func (r *Reconciler) Start(ctx context.Context) error {
	edits := make(chan struct{}, 1)
	var watching sync.WaitGroup
	watching.Go(func() { r.watch(ctx, edits) })
	defer r.end()
	defer watching.Wait()
	backoff := retryBackoff
	for ctx.Err() == nil {
		triggers := r.triggers(edits)
		triggers.wait(ctx, r.reconcileOnce(ctx, &backoff))
	}
	return nil
}

// end discards the state of a term, and what this replica knows about the published
// bundle and token: it does not observe them any more.
func (r *Reconciler) end() {
	r.term = term{}
	r.setProblem(nil)
	r.Authority.Published(nil)
	if r.Tokens != nil {
		r.Tokens.Published("")
	}
}

// NeedLeaderElection makes controller-runtime run a Reconciler on the leader.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// reconcileOnce reconciles, reports errors, and returns when to reconcile again.
func (r *Reconciler) reconcileOnce(ctx context.Context, backoff *wait.Backoff) schedule {
	r.term.recheckAfter = resyncInterval
	if err := r.reconcile(ctx); err != nil {
		after := backoff.Step()
		r.handleError(ctx, err, after)
		return schedule{after: after, ignoreEdits: apierrors.IsConflict(err) || apierrors.IsInvalid(err)}
	}
	*backoff, r.term.conflicts = retryBackoff, 0
	r.setProblem(r.checkExternalCABundle(ctx))
	if r.term.recheckAfter < resyncInterval {
		return schedule{after: min(r.term.recheckAfter, recheckInterval), ignoreEdits: true}
	}
	return schedule{after: resyncInterval}
}

// reconcile writes both configurations. If it cannot, it disarms the existing ones if
// that is due.
func (r *Reconciler) reconcile(ctx context.Context) error {
	err := r.writeAll(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if disarmErr := r.disarm(ctx, err); disarmErr != nil {
		return fmt.Errorf("%w (also: %s)", disarmErr, err.Error())
	}
	return err
}

// writeAll writes both configurations as a whole.
func (r *Reconciler) writeAll(ctx context.Context) error {
	c, err := r.wanted()
	if err != nil {
		return err
	}
	if err := r.checkOwnership(ctx, &c); err != nil {
		return err
	}
	external := r.externalCABundle()
	switch {
	case external:
		c.CABundle = nil
	case len(c.CABundle) == 0:
		return fmt.Errorf("no CA bundle: %w", errNotReady)
	}
	if c.FailurePolicy, err = r.failurePolicy(ctx); err != nil {
		return err
	}
	if err := r.apply(ctx, c, external); err != nil {
		return err
	}
	r.notifyWritten(c, external)
	return nil
}

// wanted returns the configuration with the current policy kinds, CA bundle and token.
func (r *Reconciler) wanted() (Configuration, error) {
	c := r.Configuration
	resources, known := r.PolicyResources()
	c.PolicyResources, c.CABundle = resources, r.Authority.CABundle()
	if r.Tokens != nil {
		c.Token = r.Tokens.Token()
	}
	switch {
	case !known:
		return c, fmt.Errorf("policy kinds are not discovered: %w", errNotReady)
	case r.Tokens != nil && c.Token == "":
		return c, fmt.Errorf("no path token: %w", errNotReady)
	}
	return c, nil
}

func (r *Reconciler) externalCABundle() bool {
	return r.ExternalCABundle != nil && r.ExternalCABundle()
}

// notifyWritten notifies all that depend on what has been written.
func (r *Reconciler) notifyWritten(c Configuration, external bool) {
	if r.Tokens != nil {
		r.Tokens.Published(c.Token)
	}
	if r.OnWrite != nil {
		policy := c.FailurePolicy
		if r.term.disarmedByOthers {
			policy = admissionregistrationv1.Ignore
		}
		r.OnWrite(policy)
	}
	if !external {
		r.Authority.Published(c.CABundle)
	}
}

// apply writes both configurations, after both were read.
func (r *Reconciler) apply(ctx context.Context, c Configuration, external bool) error {
	both, err := readConfigs(ctx, r.Client, c)
	if err != nil {
		return err
	}
	r.term.disarmedByOthers = false
	for _, config := range both {
		if err := r.applyOne(ctx, config, external); err != nil {
			return config.wrap(err)
		}
	}
	r.Log.V(1).Info("webhook configurations written", "name", c.Name)
	return nil
}
