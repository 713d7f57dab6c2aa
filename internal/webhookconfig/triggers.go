package webhookconfig

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// resyncInterval is the time between two reconciliations without any trigger.
const resyncInterval = time.Hour

// schedule is when to reconcile again.
type schedule struct {
	after time.Duration
	// ignoreEdits is set if an edit of the configurations is no reason to reconcile
	// earlier: a client that keeps editing would make us keep writing.
	ignoreEdits bool
}

// triggers are closed, or receive a value, if there is a reason to reconcile. A nil
// channel is no trigger.
type triggers struct {
	bundle, token, kinds, arming, edits <-chan struct{}
}

// triggers returns the triggers of the next reconciliation. They have to be taken before
// the state is read, so that no change is missed.
func (r *Reconciler) triggers(edits <-chan struct{}) triggers {
	t := triggers{bundle: r.Authority.Changed(), kinds: r.Changed, edits: edits}
	if r.Tokens != nil {
		t.token = r.Tokens.Changed()
	}
	if r.Arming != nil {
		t.arming = r.Arming.Changed()
	}
	return t
}

// wait waits for a trigger, for the scheduled time, or for the end of ctx.
func (t triggers) wait(ctx context.Context, s schedule) {
	edits := t.edits
	if s.ignoreEdits {
		edits = nil
	}
	timer := time.NewTimer(s.after)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-t.bundle:
	case <-t.token:
	case <-t.kinds:
	case <-t.arming:
	case <-edits:
	case <-timer.C:
	}
}

// watch signals edits of a configuration, and each start of a watch: deletions before it
// were not observed. It signals our own writes too; reconciling after them changes
// nothing.
func (r *Reconciler) watch(ctx context.Context, edited chan<- struct{}) {
	api := r.Client.AdmissionregistrationV1()
	var group sync.WaitGroup
	group.Go(func() { r.watchType(ctx, edited, api.MutatingWebhookConfigurations().Watch) })
	group.Go(func() { r.watchType(ctx, edited, api.ValidatingWebhookConfigurations().Watch) })
	group.Wait()
}

// watchType watches the configuration of one type until ctx ends.
func (r *Reconciler) watchType(ctx context.Context, edited chan<- struct{}, open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	byName := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", r.Configuration.Name).String()}
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		w, err := open(ctx, byName)
		if err != nil {
			r.Log.V(1).Info("cannot watch webhook configurations", "error", err.Error())
			return
		}
		defer w.Stop()
		signal(edited)
		for {
			select {
			case <-ctx.Done():
				return
			case _, open := <-w.ResultChan():
				if !open {
					return
				}
				signal(edited)
			}
		}
	}, 5*time.Second, 0.2, true)
}

// signal sends a value unless one is pending.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
