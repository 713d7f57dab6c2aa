package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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
	// Static makes it write nothing, and check on every replica which writes the
	// configurations that users apply leave out, and whether they lack the CA.
	Static    bool
	Authority Authority
	// Tokens provides the token of the paths, unless Static is set. Nothing is written until
	// there is one.
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
	// Events and Repairs (NewRepairs), if set, report reverted edits.
	Events  events.EventRecorder
	Repairs *prometheus.CounterVec

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

// NewRepairs returns the metric of reverted edits, registered with r.
func NewRepairs(r prometheus.Registerer) *prometheus.CounterVec {
	repairs := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "overrule_webhook_repairs_total",
		Help: "Edits and deletions of the webhook configurations that were reverted.",
	}, []string{"configuration"})
	for _, configuration := range []string{typeMutating, typeValidating} {
		repairs.WithLabelValues(configuration) // at 0: the first one is an increase
	}
	r.MustRegister(repairs)
	return repairs
}

// resyncInterval is the time between two reconciliations without any trigger. So long an
// edit stays, and after an error it is tried again.
const resyncInterval = 5 * time.Second

// errNotReady is returned while it is not known yet what to write.
var errNotReady = errors.New("not ready")

// NeedLeaderElection makes controller-runtime run a Reconciler that writes on the leader.
func (r *Reconciler) NeedLeaderElection() bool { return !r.Static }

// Start implements manager.Runnable: it reconciles until ctx ends.
func (r *Reconciler) Start(ctx context.Context) error {
	defer r.end()
	for ctx.Err() == nil {
		// Taken before the state is read, so that no change is missed.
		bundle, token := r.Authority.Changed(), (<-chan struct{})(nil)
		if !r.Static {
			token = r.Tokens.Changed()
		}
		r.report(ctx, r.reconcile(ctx))
		select {
		case <-ctx.Done():
		case <-bundle:
		case <-token:
		case <-r.Changed:
		case <-time.After(resyncInterval):
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
	if !r.Static {
		r.Tokens.Published("")
	}
}

func (r *Reconciler) reached() bool {
	select {
	case <-r.Reached:
		return true
	default:
		return r.Reached == nil
	}
}

// Problem returns why the configurations are not as they should be, nil if no problem is
// known. If they are not static, only the leader knows.
func (r *Reconciler) Problem() error { return r.problem.get() }

// report makes the result of a reconciliation what Problem returns, unless it is an error
// that is expected: a conflict is a concurrent write, after which it is tried again.
func (r *Reconciler) report(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errNotReady), apierrors.IsConflict(err):
		r.Log.V(1).Info("webhook configurations not written yet", "cause", err.Error())
	default:
		r.problem.set(r.Log, err)
	}
}

// reconcile writes both configurations, or checks static ones.
func (r *Reconciler) reconcile(ctx context.Context) error {
	c, known := r.Configuration, false
	c.PolicyResources, known = r.PolicyResources()
	c.CABundle = r.Authority.CABundle()
	switch {
	case !known:
		return fmt.Errorf("policy kinds are not discovered: %w", errNotReady)
	case r.Static:
		return r.checkStatic(ctx, c)
	}
	c.Token = r.Tokens.Token()
	external := r.ExternalCABundle != nil && r.ExternalCABundle()
	switch {
	case c.Token == "":
		return fmt.Errorf("no path token: %w", errNotReady)
	case external:
		c.CABundle = nil
	case len(c.CABundle) == 0:
		return fmt.Errorf("no CA bundle: %w", errNotReady)
	}
	var err error
	if c.namespaceUID, err = r.owner(ctx); err != nil {
		return err
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
	r.Tokens.Published(c.Token)
	if external {
		return r.checkBundles(both)
	}
	r.Authority.Published(c.CABundle)
	return nil
}

// owner returns the uid of our namespace. If that is deleted, the configurations are too,
// as no server answers the calls any more.
func (r *Reconciler) owner(ctx context.Context) (types.UID, error) {
	name := r.Configuration.Namespace
	ns, err := r.Client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && ns.DeletionTimestamp != nil:
		return "", fmt.Errorf("namespace %s is deleted or terminating: %w", name, errNotReady)
	case err != nil:
		return "", fmt.Errorf("read namespace %s: %w", name, err)
	}
	return ns.UID, nil
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
func changes(before, after *WebhookConfig) string {
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
	if r.Repairs != nil {
		r.Repairs.WithLabelValues(one.configType).Inc()
	}
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
