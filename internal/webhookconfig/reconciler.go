package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	informers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"overrule.dev/overrule/internal/guard"
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
// the policy kinds, their caBundle the authority, and edits by other clients of what it
// needs are reverted. It runs on the leader, and can be started again after it ended.
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
	// Reached, if set, is closed once the API server has reached the webhooks (Probe).
	// Until then they are not registered with failurePolicy Fail.
	Reached <-chan struct{}
	Log     logr.Logger
	// Events and Metrics, if set, report reverted edits.
	Events  events.EventRecorder
	Metrics *Metrics

	problem problem
	// written is what this replica wrote in this term, nil before. Another leader may have
	// written the configurations in between.
	written *written
}

// written is what the content of both configurations depends on besides fields of others.
type written struct {
	Configuration
	reached bool
}

const (
	// resyncInterval is the time between two reconciliations without any trigger.
	resyncInterval = 10 * time.Minute
	// editBurst edits are reverted at once, further ones after editInterval each: a client
	// that repeats its edit must not make us write all the time.
	editBurst    = 10
	editInterval = 5 * time.Second
)

// retryBackoff is the backoff after errors.
var retryBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Cap: 30 * time.Second, Steps: 10, Jitter: 0.2}

// errNotReady is returned while it is not known yet what to write.
var errNotReady = errors.New("not ready")

// NeedLeaderElection makes controller-runtime run a Reconciler on the leader.
func (r *Reconciler) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it reconciles until ctx ends.
func (r *Reconciler) Start(ctx context.Context) error {
	edits := make(chan struct{}, 1)
	var watching sync.WaitGroup
	r.watch(ctx, &watching, edits)
	defer r.end()
	defer watching.Wait()
	backoff, limit := retryBackoff, rate.NewLimiter(rate.Every(editInterval), editBurst)
	for ctx.Err() == nil {
		// Taken before the state is read, so that no change is missed.
		bundle, token, reached := r.Authority.Changed(), r.tokenChanged(), r.Reached
		if r.reached() {
			reached = nil
		}
		after := resyncInterval
		if err := r.reconcile(ctx); err != nil {
			after = backoff.Step()
			r.handleError(ctx, err)
		} else {
			backoff = retryBackoff
			r.problem.set(r.Log, nil)
		}
		watched := edits
		if limit.Tokens() < 1 {
			watched, after = nil, min(after, editInterval)
		}
		select {
		case <-ctx.Done():
		case <-bundle:
		case <-token:
		case <-r.Changed:
		case <-reached:
		case <-watched:
			limit.Allow()
		case <-time.After(after):
		}
	}
	return nil
}

// end discards what this replica knows about the configurations: it does not observe them
// any more.
func (r *Reconciler) end() {
	r.written = nil
	r.problem.set(logr.Discard(), nil)
	r.Authority.Published(nil)
	if r.Tokens != nil {
		r.Tokens.Published("")
	}
}

// watch signals edits of the configurations, our own writes included: reconciling after
// these changes nothing.
func (r *Reconciler) watch(ctx context.Context, group *sync.WaitGroup, edits chan<- struct{}) {
	signal := func(any) {
		select {
		case edits <- struct{}{}:
		default: // one is pending
		}
	}
	byName := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", r.Configuration.Name).String()
	}
	for _, informer := range []cache.SharedIndexInformer{
		informers.NewFilteredMutatingWebhookConfigurationInformer(r.Client, 0, nil, byName),
		informers.NewFilteredValidatingWebhookConfigurationInformer(r.Client, 0, nil, byName),
	} {
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // fails after the informer stopped
			AddFunc: signal, DeleteFunc: signal, UpdateFunc: func(any, any) { signal(nil) },
		})
		group.Go(func() { informer.RunWithContext(ctx) })
	}
}

func (r *Reconciler) tokenChanged() <-chan struct{} {
	if r.Tokens == nil {
		return nil
	}
	return r.Tokens.Changed()
}

func (r *Reconciler) reached() bool {
	if r.Reached == nil {
		return true
	}
	select {
	case <-r.Reached:
		return true
	default:
		return false
	}
}

// Problem returns why the configurations are not as they should be, nil if no problem is
// known. Only the leader knows.
func (r *Reconciler) Problem() error { return r.problem.get() }

// handleError makes an error of a reconciliation the problem that Problem returns, unless
// it is expected: a conflict is a concurrent write, after which it is tried again.
func (r *Reconciler) handleError(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errNotReady), apierrors.IsConflict(err):
		r.Log.V(1).Info("webhook configurations not written yet", "cause", err.Error())
	default:
		r.problem.set(r.Log, err)
	}
}

// reconcile writes both configurations.
func (r *Reconciler) reconcile(ctx context.Context) error {
	c, err := r.wanted(ctx)
	if err != nil {
		return err
	}
	external := r.ExternalCABundle != nil && r.ExternalCABundle()
	switch {
	case external:
		c.CABundle = nil
	case len(c.CABundle) == 0:
		return fmt.Errorf("no CA bundle: %w", errNotReady)
	}
	both, err := readBoth(ctx, r.Client, c)
	if err != nil {
		return err
	}
	if err := r.checkOwner(ctx, both); err != nil {
		return err
	}
	if err := r.write(ctx, both, written{c, r.reached()}, external); err != nil {
		return err
	}
	if r.Tokens != nil {
		r.Tokens.Published(c.Token)
	}
	if external {
		return r.checkBundles(both)
	}
	r.Authority.Published(c.CABundle)
	return nil
}

// wanted returns the configuration with the current policy kinds, CA bundle, token and
// owner: if our namespace is deleted, the configurations are too, as no server answers the
// calls any more.
func (r *Reconciler) wanted(ctx context.Context) (Configuration, error) {
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
	ns, err := r.Client.CoreV1().Namespaces().Get(ctx, c.Namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && ns.DeletionTimestamp != nil:
		return c, fmt.Errorf("namespace %s is deleted or terminating: %w", c.Namespace, errNotReady)
	case err != nil:
		return c, fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	c.namespaceUID = ns.UID
	return c, nil
}

// checkOwner returns an error if the configurations belong to another installation, whose
// Service exists: the two would overwrite each other for ever. The first configuration
// that exists decides.
func (r *Reconciler) checkOwner(ctx context.Context, both []*registration) error {
	i := slices.IndexFunc(both, func(one *registration) bool { return one.live != nil })
	if i < 0 {
		return nil
	}
	owner, self := both[i].live.Annotations[annotationInstallation], r.Configuration.installation()
	namespace, service, named := strings.Cut(owner, "/")
	if !named || namespace == r.Configuration.Namespace {
		return nil
	}
	_, err := r.Client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.Log.Info("taking over webhook configurations of a removed installation", "installation", owner)
		return nil
	case err != nil:
		return fmt.Errorf("read the Service of installation %s, which owns the webhook configurations: %w", owner, err)
	}
	return fmt.Errorf("webhook configurations %[1]s belong to installation %[2]s, whose Service exists; this installation (%[3]s) does not write them and evaluates no writes: "+
		"a cluster has one installation; uninstall this one, uninstall %[2]s, or assign the configurations to this one: "+
		"kubectl annotate --overwrite mutatingwebhookconfiguration/%[1]s validatingwebhookconfiguration/%[1]s %[4]s=%[3]s",
		r.Configuration.Name, owner, self, annotationInstallation)
}

// write applies both configurations, and reports the edits that it reverts. It keeps the
// results as live.
func (r *Reconciler) write(ctx context.Context, both []*registration, now written, external bool) error {
	same := r.written != nil && reflect.DeepEqual(*r.written, now)
	for _, one := range both {
		if !now.reached {
			one.withhold()
		}
		one.leaveOthers(external)
		before := one.live
		after, err := one.apply(ctx)
		if err != nil {
			return one.wrap(err)
		}
		if what := changes(before, after); same && what != "" {
			r.reportRepair(one, what)
		}
		one.live = after
	}
	r.written = &now
	return nil
}

// changes names the webhooks that a write changed, "" for none.
func changes(before, after *webhookConfig) string {
	if before == nil || before.UID != after.UID { // UID: deleted after it was read
		return "deleted"
	}
	var out []string
	for _, h := range after.Webhooks {
		if w := before.webhook(h.Name); w == nil || !equality.Semantic.DeepEqual(*w, h) {
			out = append(out, h.Name)
		}
	}
	return strings.Join(out, ", ")
}

// reportRepair reports edits that were reverted: they were made on purpose, or by mistake.
func (r *Reconciler) reportRepair(one *registration, what string) {
	r.Metrics.repaired(one.configType)
	r.Log.Info("reverted a change to a webhook configuration", "configuration", one.configType, "name", r.Configuration.Name, "what", what)
	if r.Events != nil {
		note := fmt.Sprintf("reverted by overrule: %s; the audit log of the API server has the client that changed it; to disable overrule see docs/install.md, Break-glass", what)
		r.Events.Eventf(one.reference(), nil, corev1.EventTypeWarning, "WebhooksRepaired", "Repair", "%s", guard.EventNote(note))
	}
}

// checkBundles returns an error if a caBundle that another client writes is empty: then
// the API server cannot verify the server, and every call fails.
func (r *Reconciler) checkBundles(both []*registration) error {
	for _, one := range both {
		for _, h := range one.live.Webhooks {
			if len(h.ClientConfig.CABundle) == 0 {
				return one.wrap(fmt.Errorf("caBundle of %s is empty, so calls to it fail: %s", h.Name, r.EmptyBundleAdvice))
			}
		}
	}
	return nil
}
