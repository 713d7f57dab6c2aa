package explore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
)

// replica is a server: the cache, the log of writes in flight, the guard and the
// Coordinator are the real ones. What webhook.Server does around them is repeated here.
type replica struct {
	*simulation
	name        string
	identity    string // of the process
	cache       *snapshot.Store
	log         *inflight.Log
	guard       *guard.Guard
	coordinator *coordination.Coordinator
	handler     http.Handler
	kill        context.CancelFunc
	dead        chan struct{} // closed when the process ends

	mu sync.Mutex
	// position is the number of events that the cache has, and delivered when it got
	// them.
	position  int
	delivered []time.Duration
	moved     chan struct{} // closed when position changes
	paused    chan struct{} // closed when the process continues; nil if it runs
	cut       bool          // from the API server
	left      bool          // handed over: it does not lead again
}

// start starts a replica with a cache that has all that is stored.
func (s *simulation) start(name string) *replica {
	ctx, kill := context.WithCancel(context.Background())
	s.processes++
	r := &replica{
		simulation: s, name: name, cache: snapshot.New(), kill: kill, dead: make(chan struct{}), moved: make(chan struct{}),
	}
	s.replicas[name] = r
	o := inflight.Options{RequestTimeout: requestTimeout, MaxWait: -1, ReadStored: r.readStored}
	if s.broken == expiryByTimeAlone {
		o.ReadStored = nil
	}
	r.log = inflight.New(r.cache, o)
	r.guard = &guard.Guard{Engine: effective.NewEngine(), ReadLive: readLive}
	for _, k := range s.kinds {
		r.cache.AddKind(k)
		r.cache.KindListed(k.Ref())
	}
	r.relist()
	r.identity = fmt.Sprintf("%s_%d", name, s.processes)
	r.coordinator = coordination.New(coordination.Options{
		Leases: leaseClient{replica: r}, Name: "overrule", Identity: r.identity, Address: name,
		Bounds: coordination.NewBounds(webhookTimeout, leaseDuration), State: r, Peers: coordination.NewClient(network{r}),
		Metrics: s.metrics, Log: logr.Discard(),
	})
	r.handler = r.coordinator.Handler(http.HandlerFunc(r.serveForwarded), 1<<20)
	s.running.Go(func() { _ = r.coordinator.Start(ctx) })
	s.running.Go(func() { _ = r.log.Start(ctx) })
	return r
}

// crash ends the process. What it was doing is lost.
func (r *replica) crash() {
	close(r.dead)
	r.resume()
	r.kill()
	for _, a := range r.attempts {
		a.releaseAt(r)
	}
}

func (r *replica) alive() bool {
	select {
	case <-r.dead:
		return false
	default:
		return true
	}
}

func (r *replica) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = make(chan struct{})
}

func (r *replica) resume() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused != nil {
		close(r.paused)
		r.paused = nil
	}
}

// isPaused returns a channel that is closed when the process continues, nil if it runs.
func (r *replica) isPaused() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused
}

// runs waits while the process is paused.
func (r *replica) runs() {
	if paused := r.isPaused(); paused != nil {
		<-paused
	}
}

// reachAPIServer returns an error if the API server cannot be reached.
func (r *replica) reachAPIServer(ctx context.Context) error {
	r.runs()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		return errDisconnected
	}
	return ctx.Err()
}

func (r *replica) readStored(ctx context.Context, ref api.Ref) (snapshot.Observation, error) {
	return r.server.read(ref), r.reachAPIServer(ctx)
}

// behind returns how many events the cache lacks.
func (r *replica) behind() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.server.eventsFrom(r.position))
}

// deliver gives the next event to the cache.
func (r *replica) deliver() {
	e := r.server.eventsFrom(r.position)[0]
	if e.object == nil {
		r.cache.Apply(snapshot.Delete(e.ref))
	} else {
		r.cache.Apply(snapshot.Put(e.object))
	}
	r.cache.Observe(e.observation())
	r.move(r.position + 1)
}

// relist replaces the cache by a list.
func (r *replica) relist() {
	objects, position := r.server.list()
	byKind := make(map[api.PolicyKind][]snapshot.Object)
	for _, k := range r.kindsOfObjects {
		byKind[k] = nil
	}
	observed := make([]snapshot.Observation, 0, len(objects))
	for _, o := range objects {
		byKind[o.ref.PolicyKind()] = append(byKind[o.ref.PolicyKind()], o.object)
		observed = append(observed, o.observation())
	}
	for k, all := range byKind {
		r.cache.Replace(k, all)
	}
	r.cache.Observe(observed...)
	r.move(position)
}

func (r *replica) move(to int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range to - r.position {
		r.delivered = append(r.delivered, time.Since(r.began))
	}
	r.position = to
	close(r.moved)
	r.moved = make(chan struct{})
}

// Ready implements coordination.State, as the methods that follow.
func (r *replica) Ready() bool { return true }

func (r *replica) CatchUp(ctx context.Context) error {
	if r.broken == noCatchUp {
		return nil
	}
	var listed []snapshot.Observation
	for _, ref := range r.log.Refs() {
		listed = append(listed, r.server.read(ref))
	}
	_, position := r.server.list()
	for {
		r.mu.Lock()
		reached, moved := r.position >= position, r.moved
		r.mu.Unlock()
		if reached {
			r.log.Observe(listed)
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *replica) Export() (json.RawMessage, error) {
	pending, err := r.log.Export()
	if err != nil {
		return nil, err
	}
	return json.Marshal(pending)
}

func (r *replica) Import(data json.RawMessage) error {
	var pending []inflight.Pending
	if err := json.Unmarshal(data, &pending); err != nil {
		return err
	}
	if r.broken == noImport {
		pending = nil
	}
	writes := make([]inflight.ImportedWrite, len(pending))
	for i, p := range pending {
		n, err := strconv.Atoi(string(p.Review))
		if err != nil {
			return err
		}
		writes[i] = inflight.ImportedWrite{Write: r.attempt(n).write(), Age: p.Age}
	}
	r.log.Reset()
	return r.log.Import(writes, r.view)
}

func (r *replica) Reset() { r.log.Reset() }

func (r *replica) AwaitEmpty(ctx context.Context) error { return r.log.AwaitEmpty(ctx) }

func (r *replica) view() *snapshot.View {
	v, _ := r.cache.View()
	return v
}

// answer is the response of a webhook.
type answer string

const (
	allowed answer = "allowed"
	denied  answer = "denied"
)

// validate responds to the review of an attempt.
func (r *replica) validate(ctx context.Context, a *attempt, forwarded bool) (answer, error) {
	var failed coordination.Place
	for {
		place, err := r.coordinator.Await(ctx, webhookTimeout, failed)
		switch {
		case err != nil:
			return denied, nil //nolint:nilerr // a denial that the client retries
		case place.Local():
			if got, ok := r.evaluate(ctx, place, a); ok {
				return got, nil
			}
		case forwarded:
			return "", coordination.ErrRefused
		default:
			got, err := r.coordinator.Forward(ctx, place, coordination.Review{Body: []byte(strconv.Itoa(a.number)), Timeout: webhookTimeout})
			if err == nil {
				return answer(got.Body), nil
			}
		}
		failed = place
	}
}

// evaluate evaluates an attempt. It returns false if this replica does not lead any more.
func (r *replica) evaluate(ctx context.Context, place coordination.Place, a *attempt) (answer, bool) {
	a.begin(r)
	w := a.write()
	w.Admissible = func() error { return r.check(place) }
	result, err := r.log.Evaluate(ctx, r.guard, r.view, w)
	switch {
	case errors.Is(err, coordination.ErrNotLeading):
		return "", false
	case err != nil, result.Decision.Denied():
		return denied, true
	}
	a.hold(holdAnswer)
	return allowed, r.check(place) == nil
}

// check is the check of the role and the lease.
func (r *replica) check(place coordination.Place) error {
	if r.broken == noFencing {
		return nil
	}
	return r.coordinator.Check(place, webhookTimeout)
}

// serveForwarded responds to a review that another replica has forwarded.
func (r *replica) serveForwarded(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	n, notNumber := strconv.Atoi(string(body))
	if err != nil || notNumber != nil {
		http.Error(w, "invalid number", http.StatusBadRequest)
		return
	}
	got, err := answer(""), coordination.ErrRefused
	if r.coordinator.Accepts(request.Header.Get(coordination.HeaderTerm)) {
		got, err = r.validate(request.Context(), r.attempt(n), true)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusMisdirectedRequest)
		return
	}
	_, _ = io.WriteString(w, string(got))
}

// readLive finds nothing. It is where an evaluation is held.
func readLive(ctx context.Context, _ api.Ref) (snapshot.Object, error) {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		a.hold(holdEvaluation)
	}
	return nil, nil
}

// network carries requests from a replica to others.
type network struct{ from *replica }

// RoundTrip implements http.RoundTripper.
func (n network) RoundTrip(request *http.Request) (*http.Response, error) {
	to := n.from.replicaAt(request.URL.Host)
	if to == nil {
		return nil, errDisconnected
	}
	w, done := httptest.NewRecorder(), make(chan struct{})
	n.from.running.Go(func() {
		defer close(done)
		n.from.runs()
		to.runs()
		to.handler.ServeHTTP(w, request)
	})
	select {
	case <-done:
		n.from.runs()
		if !to.alive() {
			return nil, errDisconnected
		}
		return w.Result(), nil
	case <-to.dead:
		return nil, errDisconnected
	case <-request.Context().Done():
		return nil, request.Context().Err()
	}
}
