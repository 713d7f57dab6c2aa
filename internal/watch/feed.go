package watch

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// backoff is between attempts at a resource that fails. Its end is lower than
// a reflector's: whoever writes is judged by what is known here.
var backoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 10 * time.Second}

// emptyWatch is what client-go returns, with no error, where the connection is
// cut before a watch begins. The reflector lists anew then, which is right; but
// it is no sign of life.
var emptyWatch = reflect.TypeOf(watch.NewEmptyWatch())

var errCut = errors.New("the connection was cut or timed out before the watch began")

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
	// cancel ends run; it is set when the feed is started.
	cancel context.CancelFunc
}

func newFeed[T any](source string, lw *cache.ListWatch, example runtime.Object, into *sink[T]) *feed {
	into.contact = newContact(source)
	return &feed{
		source: source, lw: lw, example: example, into: into, close: into.close,
		contact: into.contact, log: into.log, refused: func(error) {},
	}
}

// run reads until the context ends.
func (f *feed) run(ctx context.Context) {
	own := backoff
	r := cache.NewReflectorWithOptions(
		&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, f.example, f.into,
		cache.ReflectorOptions{Name: f.source, Backoff: &own})
	// The reflector's own loop would log each failure anew.
	ctx = logr.NewContext(ctx, f.log.V(1))
	again := backoff.DelayWithReset(clock.RealClock{}, backoffReset)
	_ = again.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := r.ListAndWatchWithContext(ctx); err != nil {
			f.log.V(1).Info("starting over", "cause", err.Error())
		}
		return false, nil
	}) // its only error is that of ctx
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
	w, err := f.lw.WatchWithContext(ctx, o)
	switch {
	case reflect.TypeOf(w) == emptyWatch:
		f.failed(ctx, errCut)
	case err == nil:
		if f.contact.opened() {
			f.log.Info("the watch works again")
		}
	case apierrors.IsInvalid(err) && o.SendInitialEvents != nil:
		// An API server that cannot stream lists: the reflector lists instead.
	default:
		f.failed(ctx, err)
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
