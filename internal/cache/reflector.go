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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	api "overrule.dev/overrule/api/v1alpha1"
)

// retryBackoff is the pause between two attempts of a reflector. Its cap is far below the
// 30 s of client-go: the webhook is called as soon as the API server is back, and needs a
// current cache.
var retryBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 5, Cap: 2 * time.Second}

// emptyWatch is what client-go returns, without an error, if the connection closes
// before a watch starts.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

var (
	errConnectionCut = errors.New("connection closed before the watch started")
	// errNeedsRelist makes the reflector relist.
	errNeedsRelist = errors.New("watch is stale and must be relisted")
)

// reflector reads one resource into a store. It wraps a client-go reflector and tracks
// its health.
type reflector struct {
	source  string
	kind    api.PolicyKind
	gvr     schema.GroupVersionResource
	lw      *cache.ListWatch
	example runtime.Object
	store   cache.ReflectorStore
	close   func()
	health  *healthTracker
	log     logr.Logger
	// onForbidden is called when the list is forbidden.
	onForbidden func(error)
	// cancel ends run. It is set when the reflector is started.
	cancel context.CancelFunc
	// endAttempt makes run begin again, with a list; nil before it has begun.
	endAttempt atomic.Pointer[context.CancelFunc]
}

// trackedWatch is a watch that calls onStop when it ends. client-go's reflector stops
// each watch.
type trackedWatch struct {
	watch.Interface
	onStop func()
}

// Stop implements watch.Interface.
func (w *trackedWatch) Stop() {
	go w.Interface.Stop() // it may block on a dead connection
	w.onStop()
}

func newReflector(source string, lw *cache.ListWatch, example runtime.Object, into *sink) *reflector {
	into.health = newHealthTracker(source)
	return &reflector{
		source: source, kind: into.kind, lw: lw, example: example, store: into, close: into.close,
		health: into.health, log: into.log, onForbidden: func(error) {},
	}
}

// run reads until ctx ends.
func (f *reflector) run(ctx context.Context) {
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, f.example, f.store,
		cache.ReflectorOptions{Name: f.source, Backoff: &retryBackoff})
	ctx = logr.NewContext(ctx, logr.Discard()) // list and watch log failures, once
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(ctx)
		f.endAttempt.Store(&cancel)
		r.RunWithContext(attempt)
		cancel()
	}
}

// relist makes the reflector list the resource again, at once. A list that is running
// does not count.
func (f *reflector) relist() {
	if end := f.endAttempt.Load(); end != nil {
		(*end)()
	}
}

// expire makes the source stale until it has been listed again, and cause its error.
func (f *reflector) expire(cause error) {
	f.log.Info("restarting watch", "cause", cause.Error())
	f.health.expire(cause)
	f.relist()
}

// list and watch wrap all calls of the client-go reflector, which retries some failures
// without reporting them.
//
// Every full list is consistent. client-go would begin with any state that an API server
// has in its watch cache (resourceVersion 0), and relist what is not older than this
// reflector has seen. But the store may have newer objects of an earlier reflector, and
// CatchUp waits for all that was stored before it.
func (f *reflector) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // of an attempt that is over
	}
	if o.Continue == "" {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
		f.health.listRequested()
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
		f.health.listRequested()
	case f.health.needsRelist():
		f.relist()
		return nil, errNeedsRelist
	default:
		if err := f.checkStorage(ctx, o.ResourceVersion); err != nil {
			f.recordFailure(ctx, err)
			return nil, err
		}
	}
	w, err := f.lw.WatchWithContext(ctx, o)
	if reflect.TypeOf(w) == emptyWatch {
		err = errConnectionCut
	}
	switch {
	case apierrors.IsInvalid(err) && listsFirst:
		return nil, err // the API server does not support streaming lists: the reflector lists instead
	case err != nil:
		f.recordFailure(ctx, err)
		return nil, err
	}
	if f.health.watchOpened(listsFirst) {
		f.log.Info("watch recovered")
	}
	return &trackedWatch{w, sync.OnceFunc(f.health.watchClosed)}, nil
}

func (f *reflector) recordFailure(ctx context.Context, err error) {
	if ctx.Err() != nil || isRestored(err) {
		return
	}
	switch isNew := f.health.recordFailure(err); {
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
