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
	fastBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 4, Cap: 800 * time.Millisecond}
	// slow is between attempts at one that the API server does not let us read, or not
	// yet. It begins quickly: one that has just started forbids everything for a moment.
	slowBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 7, Cap: 5 * time.Second}
)

// glance is the pause, at least, before a source tries again since another one works.
const minRetryDelay = 10 * time.Millisecond

// emptyWatch is what client-go returns, with no error, where the connection is
// cut before a watch begins. The reflector lists anew then, which is right; but
// it is no sign of life.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

var (
	errConnectionCut = errors.New("connection closed before the watch started")
	// errOutdated has the reflector list anew.
	errNeedsRelist = errors.New("watch is stale and must be relisted")
)

// backoffReset is how long a resource must work to start from the beginning.
const backoffReset = 2 * time.Minute

// feed is one resource that is being read into a target.
type reflector struct {
	source  string
	lw      *cache.ListWatch
	example runtime.Object
	store    cache.ReflectorStore
	close   func()
	health *healthTracker
	log     logr.Logger
	// refused is called when the list is forbidden.
	onForbidden func(error)
	backoff  retryBackoff
	// cancel ends run; it is set when the feed is started.
	cancel context.CancelFunc
	// current is the watch that is open, or was the last to be.
	openWatch atomic.Pointer[trackedWatch]
}

// watched is a watch that tells when it is over. A reflector stops each one.
type trackedWatch struct {
	watch.Interface
	onStop func()
}

// Stop implements watch.Interface.
func (w *trackedWatch) Stop() {
	w.Interface.Stop()
	w.onStop()
}

func newReflector[T any](source string, lw *cache.ListWatch, example runtime.Object, into *sink[T]) *reflector {
	into.health = newHealthTracker(source)
	return &reflector{
		source: source, lw: lw, example: example, store: into, close: into.close,
		health: into.health, log: into.log, onForbidden: func(error) {},
		backoff: retryBackoff{sources: &sourceGroup{}, fast: delayFunc(fastBackoff), slow: delayFunc(slowBackoff)},
	}
}

// run reads until the context ends.
func (f *reflector) run(ctx context.Context, all *sourceGroup) {
	own := fastBackoff
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, f.example, f.store,
		cache.ReflectorOptions{Name: f.source, Backoff: &own})
	// The reflector's own loop would log each failure anew.
	ctx = logr.NewContext(ctx, f.log.V(1))
	f.backoff.sources = all
	for ctx.Err() == nil {
		err := r.ListAndWatchWithContext(ctx)
		delay := f.backoff.fast
		if err != nil {
			f.log.V(1).Info("list and watch ended; retrying", "cause", err.Error())
			if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
				delay = f.backoff.slow // nothing is gained by asking each second
			}
		}
		f.backoff.wait(ctx, delay())
	}
}

// pauses are those between the attempts of one feed.
type retryBackoff struct {
	sources      *sourceGroup
	fast, slow wait.DelayFunc
	lastWake     time.Time // when another source last ended one
}

// take waits for another source to work again, and for d at most.
func (p *retryBackoff) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-p.sources.recovered():
		// Not all at the same moment, nor all the time where others break and mend.
		background.Sleep(ctx, max(wait.Jitter(minRetryDelay, 5), fastBackoff.Cap-time.Since(p.lastWake)))
		p.lastWake = time.Now()
	case <-time.After(d):
	}
}

func delayFunc(b wait.Backoff) wait.DelayFunc { return b.DelayWithReset(clock.RealClock{}, backoffReset) }

// reopen ends the watch that is open, so that the reflector opens another.
func (f *reflector) restartWatch(why string) {
	w := f.openWatch.Swap(nil)
	if w == nil {
		return
	}
	f.log.Info("restarting watch", "cause", why)
	go w.Interface.Stop() // a connection that is dead may hold it up
}

// list and watch see all calls of the reflector, which retries some failures
// without telling anyone.
func (f *reflector) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := f.lw.ListWithContext(ctx, o)
	if err != nil {
		f.recordFailure(ctx, err)
		if apierrors.IsForbidden(err) {
			f.onForbidden(err)
		}
		return nil, err
	}
	return list, nil
}

func (f *reflector) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	listsFirst := o.SendInitialEvents != nil
	if !listsFirst && f.health.needsRelist() {
		return nil, errNeedsRelist
	}
	w, err := f.lw.WatchWithContext(ctx, o)
	switch {
	case reflect.TypeOf(w) == emptyWatch:
		f.recordFailure(ctx, errConnectionCut)
	case err == nil:
		if f.health.watchOpened(listsFirst) {
			f.log.Info("watch recovered")
		}
		own := &trackedWatch{w, sync.OnceFunc(f.health.watchClosed)}
		f.openWatch.Store(own)
		return own, nil
	case apierrors.IsInvalid(err) && listsFirst:
		// An API server that cannot stream lists: the reflector lists instead.
	default:
		f.recordFailure(ctx, err)
		if apierrors.IsTooManyRequests(err) {
			f.backoff.wait(ctx, f.backoff.slow()) // the reflector asks again then, by itself
		}
	}
	return w, err
}

func (f *reflector) recordFailure(ctx context.Context, err error) {
	switch news := ctx.Err() == nil && f.health.recordFailure(err); {
	case !news:
	case apierrors.IsNotFound(err):
		// Its CRD was deleted a moment ago, which comes by another watch.
		f.log.V(1).Info("resource is not served", "cause", err.Error())
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		f.log.V(1).Info("watch expired; relisting", "cause", err.Error())
	default:
		f.log.Error(err, "cannot watch resource; retrying")
	}
}
