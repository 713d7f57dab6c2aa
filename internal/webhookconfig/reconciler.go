package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
)

// fieldManager owns what a Registrar writes.
const fieldManager = "overrule"

// Authority gives the CA bundle for the configurations.
type Authority interface {
	CABundle() []byte
	// Changed returns a channel that is closed when the bundle next changes.
	Changed() <-chan struct{}
	// Published tells that the bundle stands in every configuration.
	Published(bundle []byte)
}

// TokenSource gives the token that the webhook configurations are to have.
type TokenSource interface {
	// Token is "" until it is known.
	Token() string
	// Changed returns a channel that is closed when Token next changes.
	Changed() <-chan struct{}
	// Published tells that a token stands in every configuration.
	Published(token string)
}

// Registrar keeps the webhook configurations as they should be: their rules in
// step with the policy kinds, their caBundle with the authority, and all of it
// against other hands. It runs on the leader.
type Reconciler struct {
	Client kubernetes.Interface
	// Configuration but for its CABundle and what the policy kinds want judged.
	Configuration Configuration
	Authority     Authority
	// Tokens, if set, gives the token of the paths. Before there is one nothing is
	// written.
	Tokens TokenSource
	// Foreign reports whether the caBundle is another's to write: then the one
	// that is there is left as it is. nil means never. While it is not, and the
	// authority has no bundle, nothing is written.
	ExternalCABundle func() bool
	// Untrusted says what to do about a caBundle that is another's and empty.
	EmptyBundleAdvice string
	// Evaluated returns what the policy kinds want judged; known is false before
	// the cluster was asked: rules that are there already must not be taken away
	// by a leader that has just begun. Changed tells that it changed.
	PolicyResources func() (judged PolicyResources, known bool)
	Changed         <-chan struct{}
	// Arming, if set, takes the place of the Configuration's FailurePolicy.
	Arming Arming
	// Wrote, if set, is called each time that both configurations were written, or an
	// edit of one was left for now, and when they were disarmed, with the failurePolicy
	// that they have by now.
	OnWrite func(admissionregistrationv1.FailurePolicyType)
	Log     logr.Logger
	// Events and Metrics, if set, tell of what others did and is undone.
	Events  events.EventRecorder
	Metrics *Metrics

	adopted          bool
	applied          map[string][]webhook     // what was last written, by sort
	reverts          map[string]revertBackoff // of what was undone, by sort
	recheckAfter     time.Duration            // until what others did is to be looked at again
	disarmedByOthers bool                     // what others did, and stays until then, has not Fail everywhere
	conflicts        int                      // writes in a row that met another's
	mu               sync.Mutex
	problem          error
}

// Start implements manager.Runnable: it writes until ctx ends.
func (r *Reconciler) Start(ctx context.Context) error {
	edited := make(chan struct{}, 1)
	go r.watch(ctx, edited)
	backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Cap: 30 * time.Second, Steps: 10, Jitter: 0.2}
	delay := backoff
	var armed <-chan struct{}
	if r.Arming != nil {
		armed = r.Arming.Changed()
	}
	for {
		renewed := r.Authority.Changed() // before the bundle is read
		var followed <-chan struct{}
		if r.Tokens != nil {
			followed = r.Tokens.Changed()
		}
		again, heeded := time.Hour, edited
		r.recheckAfter = again
		if err := r.reconcile(ctx); err != nil {
			again = delay.Step()
			if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
				heeded = nil // who writes all the time would have us do so, too
			}
			r.handleError(ctx, err, again)
		} else {
			delay, r.conflicts = backoff, 0
			r.setProblem(r.checkExternalCABundle(ctx))
			if r.recheckAfter < again {
				again, heeded = min(r.recheckAfter, recheckInterval), nil
			}
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-renewed:
		case <-followed:
		case <-r.Changed:
		case <-armed:
		case <-heeded:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// NeedLeaderElection tells controller-runtime to run a Registrar on the leader.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// errNotYet tells that what to write is not known yet.
var errNotReady = errors.New("not yet")

// fewClashes in a row are a matter of seconds, and of nobody's concern.
const maxQuietConflicts = 5

func (r *Reconciler) handleError(ctx context.Context, err error, retry time.Duration) {
	clash := apierrors.IsConflict(err)
	if clash {
		r.conflicts++
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errNotReady), clash && r.conflicts <= maxQuietConflicts: // someone wrote at the same moment
		r.Log.V(1).Info("webhook configurations wait", "for", err.Error())
	default:
		switch {
		case lacksRight(err):
			err = fmt.Errorf("%w: %s", err, restoreRight)
		case clash:
			err = fmt.Errorf("somebody else writes the webhook configurations all the time, and has to be stopped (the audit log of the API server says who): %w", err)
		}
		r.setProblem(err)
		r.Log.Error(err, "write webhook configurations", "retry", retry.String())
	}
}

// write writes both configurations. What cannot be written as a whole is
// disarmed all the same, if it is to be.
func (r *Reconciler) reconcile(ctx context.Context) error {
	err := r.writeAll(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if failed := r.disarm(ctx, err); failed != nil {
		return fmt.Errorf("%w (besides: %s)", failed, err.Error())
	}
	return err
}

func (r *Reconciler) writeAll(ctx context.Context) error {
	c := r.Configuration
	judged, known := r.PolicyResources()
	c.PolicyResources, c.CABundle = judged, r.Authority.CABundle()
	if r.Tokens != nil {
		c.Token = r.Tokens.Token()
	}
	switch {
	case !known:
		return fmt.Errorf("the policy kinds are not known: %w", errNotReady)
	case r.Tokens != nil && c.Token == "":
		return fmt.Errorf("there is no token of the path: %w", errNotReady)
	}
	if err := r.checkOwnership(ctx, &c); err != nil {
		return err
	}
	foreign := r.externalCABundle()
	switch {
	case foreign:
		c.CABundle = nil
	case len(c.CABundle) == 0:
		return fmt.Errorf("there is no CA bundle: %w", errNotReady)
	}
	policy, err := r.failurePolicy(ctx)
	if err != nil {
		return err
	}
	c.FailurePolicy = policy
	if err := r.apply(ctx, c, foreign); err != nil {
		return err
	}
	r.notifyWritten(c, foreign)
	return nil
}

func (r *Reconciler) externalCABundle() bool {
	return r.ExternalCABundle != nil && r.ExternalCABundle()
}

// published tells what has been written.
func (r *Reconciler) notifyWritten(c Configuration, foreign bool) {
	if r.Tokens != nil {
		r.Tokens.Published(c.Token)
	}
	if r.OnWrite != nil {
		policy := c.FailurePolicy
		if r.disarmedByOthers {
			policy = admissionregistrationv1.Ignore
		}
		r.OnWrite(policy)
	}
	if !foreign {
		r.Authority.Published(c.CABundle)
	}
}

// apply writes both configurations, once both could be looked at.
func (r *Reconciler) apply(ctx context.Context, c Configuration, foreign bool) error {
	both, err := readConfigs(ctx, r.Client, c)
	if err != nil {
		return err
	}
	r.disarmedByOthers = false
	for _, d := range both {
		if err := r.applyOne(ctx, d, foreign); err != nil {
			return d.wrap(err)
		}
	}
	r.Log.V(1).Info("webhook configurations are in place", "name", c.Name)
	return nil
}

// watch tells edited when somebody writes to a configuration, and whenever a
// watch begins: nobody saw what was deleted before it. Our own writes come
// along: applying the same again changes nothing, and so ends there.
func (r *Reconciler) watch(ctx context.Context, edited chan<- struct{}) {
	hooks := r.Client.AdmissionregistrationV1()
	one := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", r.Configuration.Name).String()}
	follow := func(open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
		wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
			w, err := open(ctx, one)
			if err != nil {
				r.Log.V(1).Info("watch webhook configurations", "error", err.Error())
				return
			}
			defer w.Stop()
			signal(edited)
			for range w.ResultChan() {
				signal(edited)
			}
		}, 5*time.Second, 0.2, true)
	}
	go follow(hooks.MutatingWebhookConfigurations().Watch)
	follow(hooks.ValidatingWebhookConfigurations().Watch)
}

// hint sends a token; one that waits already is enough.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
