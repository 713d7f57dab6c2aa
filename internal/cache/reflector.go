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
	// fastBackoff is used if the API server does not respond. Its cap is far below the
	// 30 s of client-go's reflector: the webhook is called as soon as the API server
	// is back and needs a current cache.
	fastBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 4, Cap: 800 * time.Millisecond}
	// slowBackoff is used if the API server rejects the request. It starts short,
	// because an API server that has just started rejects everything at first.
	slowBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 7, Cap: 5 * time.Second}
)

// minRetryDelay is the minimum pause before a source retries because another one
// recovered.
const minRetryDelay = 10 * time.Millisecond

// emptyWatch is what client-go returns, without an error, if the connection closes
// before a watch starts. The reflector then relists, as it should, but the watch does
// not count as connected.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

var (
	errConnectionCut = errors.New("connection closed before the watch started")
	// errNeedsRelist makes the reflector relist.
	errNeedsRelist = errors.New("watch is stale and must be relisted")
)

// backoffReset is how long a resource must work before its backoff starts again from
// the beginning.
const backoffReset = 2 * time.Minute

// reflector reads one resource into a store. It wraps a client-go reflector and tracks
// its health.
type reflector struct {
	source  string
	lw      *cache.ListWatch
	example runtime.Object
	store   cache.ReflectorStore
	close   func()
	health  *healthTracker
	// progress is that of the store.
	progress *progress
	log      logr.Logger
	// onForbidden is called when the list is forbidden.
	onForbidden func(error)
	// onRestore is called when storage was restored to an earlier state.
	onRestore func(restore)
	backoff   retryBackoff
	// cancel ends run. It is set when the reflector is started.
	cancel context.CancelFunc
	// stopped is closed when the resource is not read any more with this reflector.
	stopped chan struct{}
	// openWatch is the current or the most recent watch.
	openWatch atomic.Pointer[trackedWatch]
}

// trackedWatch is a watch that calls onStop when it ends. client-go's reflector stops
// each watch.
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
		health: into.health, progress: &into.progress, log: into.log, onForbidden: func(error) {}, onRestore: func(restore) {}, stopped: make(chan struct{}),
		backoff: retryBackoff{sources: &sourceGroup{}, fast: delayFunc(fastBackoff), slow: delayFunc(slowBackoff)},
	}
}

// run reads until ctx ends.
func (f *reflector) run(ctx context.Context, all *sourceGroup) {
	backoff := fastBackoff
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, f.example, f.store,
		cache.ReflectorOptions{Name: f.source, Backoff: &backoff})
	// client-go's own loop would log each failure.
	ctx = logr.NewContext(ctx, f.log.V(1))
	f.backoff.sources = all
	for ctx.Err() == nil {
		err := r.ListAndWatchWithContext(ctx)
		if err != nil {
			f.log.V(1).Info("list and watch ended; retrying", "cause", err.Error())
		}
		f.backoff.wait(ctx, f.backoff.delay(err))
	}
}

// retryBackoff computes the pauses between the attempts of one reflector.
type retryBackoff struct {
	sources    *sourceGroup
	fast, slow wait.DelayFunc
	lastWake   time.Time // when a recovered source last ended a pause
}

// delay returns the pause after an attempt that ended with err, which may be nil.
func (b *retryBackoff) delay(err error) time.Duration {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
		return b.slow() // the answer does not change within a second
	}
	return b.fast()
}

// wait blocks for d, or until another source recovers.
func (b *retryBackoff) wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-b.sources.recovered():
		// Sources must not all retry at the same moment, nor keep retrying while
		// other sources flap.
		background.Sleep(ctx, max(wait.Jitter(minRetryDelay, 5), fastBackoff.Cap-time.Since(b.lastWake)))
		b.lastWake = time.Now()
	case <-time.After(d):
	}
}

func delayFunc(b wait.Backoff) wait.DelayFunc {
	return b.DelayWithReset(clock.RealClock{}, backoffReset)
}

// restartWatch stops the current watch, so that the reflector opens another.
func (f *reflector) restartWatch(reason string) {
	w := f.openWatch.Swap(nil)
	if w == nil {
		return
	}
	f.log.Info("restarting watch", "cause", reason)
	go w.Interface.Stop() // Stop may block on a dead connection
}

// expire makes the source stale until it has been listed again, and cause its error.
func (f *reflector) expire(cause error) {
	f.health.expire(cause)
	f.restartWatch("resource must be listed again")
}

// list and watch wrap all calls of the client-go reflector, which retries some failures
// without reporting them.
//
// Every full list is consistent. client-go would begin with any state that an API server
// has in its watch cache (resourceVersion 0), and relist what is not older than this
// reflector has seen. But the store may have newer objects of an earlier reflector, and a
// source that was stale must not return with an older state than CatchUp waits for.
func (f *reflector) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if o.Continue == "" {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
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
	switch {
	case listsFirst:
		o.ResourceVersion = ""
	case f.health.needsRelist():
		return nil, errNeedsRelist
	default:
		err := f.checkStorage(ctx, o.ResourceVersion)
		if _, restored := errors.AsType[*RestoredError](err); err != nil && !restored {
			f.watchFailed(ctx, err)
		}
		if err != nil {
			return nil, err
		}
	}
	w, err := f.lw.WatchWithContext(ctx, o)
	switch {
	case reflect.TypeOf(w) == emptyWatch:
		f.recordFailure(ctx, errConnectionCut)
	case err == nil:
		if f.health.watchOpened(listsFirst) {
			f.log.Info("watch recovered")
		}
		tracked := &trackedWatch{w, sync.OnceFunc(f.health.watchClosed)}
		f.openWatch.Store(tracked)
		if !listsFirst && f.health.needsRelist() { // it has expired meanwhile
			tracked.Stop()
			return nil, errNeedsRelist
		}
		return tracked, nil
	case apierrors.IsInvalid(err) && listsFirst:
		// The API server does not support streaming lists: the reflector lists
		// instead.
	default:
		f.watchFailed(ctx, err)
	}
	return w, err
}

// watchFailed records that a watch could not be opened.
func (f *reflector) watchFailed(ctx context.Context, err error) {
	f.recordFailure(ctx, err)
	if apierrors.IsTooManyRequests(err) {
		f.backoff.wait(ctx, f.backoff.slow()) // then the reflector retries by itself
	}
}

func (f *reflector) recordFailure(ctx context.Context, err error) {
	switch isNew := ctx.Err() == nil && f.health.recordFailure(err); {
	case !isNew:
	case apierrors.IsNotFound(err):
		// The CRD was just deleted, which the watch of the definitions reports.
		f.log.V(1).Info("resource is not served", "cause", err.Error())
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		f.log.V(1).Info("watch expired; relisting", "cause", err.Error())
	default:
		f.log.Error(err, "cannot watch resource; retrying")
	}
}
