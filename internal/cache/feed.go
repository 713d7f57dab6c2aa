package cache

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"overrule.dev/overrule/internal/background"
)

var (
	// quick is between attempts at a resource where nobody answers. It ends far
	// below a reflector's half a minute: an API server that is back calls at once,
	// and whoever writes is judged by what is known here.
	quick = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 4, Cap: 800 * time.Millisecond}
	// slow is between attempts at one that the API server does not let us read, or not
	// yet. It begins quickly: one that has just started forbids everything for a moment.
	slow = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 7, Cap: 5 * time.Second}
)

// glance is the pause, at least, before a source tries again since another one works.
const glance = 10 * time.Millisecond

// emptyWatch is what client-go returns, with no error, where the connection is
// cut before a watch begins. The reflector lists anew then, which is right; but
// it is no sign of life.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

var (
	errCut = errors.New("the connection was cut or timed out before the watch began")
	// errOutdated has the reflector list anew.
	errOutdated = errors.New("too much was missed to go on from there")
)

// backoffReset is how long a resource must work to start from the beginning.
const backoffReset = 2 * time.Minute

// feed is one resource that is being read into a target.
type feed struct {
	source  string
	lw      *cache.ListWatch
	example runtime.Object
	into    cache.ReflectorStore
	close   func()
	contact *contact
	log     logr.Logger
	// refused is called when the list is forbidden.
	refused func(error)
	pauses  pauses
	// cancel ends run; it is set when the feed is started.
	cancel context.CancelFunc
	// current is the watch that is open, or was the last to be.
	current atomic.Pointer[watched]
}

// watched is a watch that tells when it is over. A reflector stops each one.
type watched struct {
	watch.Interface
	over func()
}

// Stop implements watch.Interface.
func (w *watched) Stop() {
	w.Interface.Stop()
	w.over()
}

func newFeed[T any](source string, lw *cache.ListWatch, example runtime.Object, into *sink[T]) *feed {
	into.contact = newContact(source)
	return &feed{
		source: source, lw: lw, example: example, into: into, close: into.close,
		contact: into.contact, log: into.log, refused: func(error) {},
		pauses: pauses{peers: &peers{}, soon: delays(quick), late: delays(slow)},
	}
}

// run reads until the context ends.
func (f *feed) run(ctx context.Context, all *peers) {
	own := quick
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, f.example, f.into,
		cache.ReflectorOptions{Name: f.source, Backoff: &own})
	// The reflector's own loop would log each failure anew.
	ctx = logr.NewContext(ctx, f.log.V(1))
	f.pauses.peers = all
	for ctx.Err() == nil {
		err := r.ListAndWatchWithContext(ctx)
		delay := f.pauses.soon
		if err != nil {
			f.log.V(1).Info("starting over", "cause", err.Error())
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
				delay = f.pauses.late // nothing is gained by asking each second
			}
		}
		f.pauses.take(ctx, delay())
	}
}

// pauses are those between the attempts of one feed.
type pauses struct {
	peers      *peers
	soon, late wait.DelayFunc
	heeded     time.Time // when another source last ended one
}

// take waits for another source to work again, and for d at most.
func (p *pauses) take(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-p.peers.mended():
		// Not all at the same moment, nor all the time where others break and mend.
		background.Sleep(ctx, max(wait.Jitter(glance, 5), quick.Cap-time.Since(p.heeded)))
		p.heeded = time.Now()
	case <-time.After(d):
	}
}

func delays(b wait.Backoff) wait.DelayFunc { return b.DelayWithReset(clock.RealClock{}, backoffReset) }

// reopen ends the watch that is open, so that the reflector opens another.
func (f *feed) reopen(why string) {
	w := f.current.Swap(nil)
	if w == nil {
		return
	}
	f.log.Info("the watch is opened anew", "cause", why)
	go w.Interface.Stop() // a connection that is dead may hold it up
}

// list and watch see all calls of the reflector, which retries some failures
// without telling anyone.
func (f *feed) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := f.lw.ListWithContext(ctx, o)
	if err != nil {
		f.failed(ctx, err)
		if apierrors.IsForbidden(err) {
			f.refused(err)
		}
		return nil, err
	}
	return list, nil
}

func (f *feed) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	listsFirst := o.SendInitialEvents != nil
	if !listsFirst && f.contact.outdated() {
		return nil, errOutdated
	}
	w, err := f.lw.WatchWithContext(ctx, o)
	switch {
	case reflect.TypeOf(w) == emptyWatch:
		f.failed(ctx, errCut)
	case err == nil:
		if f.contact.opened(listsFirst) {
			f.log.Info("the watch works again")
		}
		own := &watched{w, sync.OnceFunc(f.contact.closed)}
		f.current.Store(own)
		return own, nil
	case apierrors.IsInvalid(err) && listsFirst:
		// An API server that cannot stream lists: the reflector lists instead.
	default:
		f.failed(ctx, err)
		if apierrors.IsTooManyRequests(err) {
			f.pauses.take(ctx, f.pauses.late()) // the reflector asks again then, by itself
		}
	}
	return w, err
}

func (f *feed) failed(ctx context.Context, err error) {
	switch news := ctx.Err() == nil && f.contact.failed(err); {
	case !news:
	case apierrors.IsNotFound(err):
		// Its CRD was deleted a moment ago, which comes by another watch.
		f.log.V(1).Info("the resource is not served", "cause", err.Error())
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		f.log.V(1).Info("the watch fell behind and lists anew", "cause", err.Error())
	default:
		f.log.Error(err, "the resource cannot be watched; trying again until it can")
	}
}
