package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Times of the simulation. The API server stores a write within storeTime of the answer,
// or of the request if the leader that admitted it, or its successor, still leads.
const (
	leaseDuration  = 7 * time.Second // coordination.LeaseDuration of webhookTimeout
	webhookTimeout = 3 * time.Second
	storeTime      = coordination.DefaultStoreTime
	requestTimeout = 10 * time.Second
)

// mutation is a part of the protocol that is left out.
type mutation string

const (
	intact            mutation = "nothing"
	noFencing         mutation = "the check of role, term and lease"
	noImport          mutation = "the import of the log"
	noCatchUp         mutation = "the consistent list"
	expiryByTimeAlone mutation = "the read before an entry expires"
)

// write is what a client sends.
type write struct {
	name   string
	op     guard.Operation
	object snapshot.Object
}

// scenario is a cluster, and writes to it.
type scenario struct {
	name    string
	kinds   []*policykind.Kind
	initial []snapshot.Object
	writes  []write
}

// simulation runs replicas on the clock of a bubble.
type simulation struct {
	*scenario
	options
	server         *apiServer
	metrics        *coordination.Metrics
	oracle         *oracle
	kindsOfObjects []api.PolicyKind
	began          time.Time
	replicas       map[string]*replica
	processes      int
	running        sync.WaitGroup
	attempts       []*attempt
	// coordination are the steps so far by which a replica or the clock changes.
	coordination []step
	faults       int
	relists      int
}

// options of a simulation.
type options struct {
	broken mutation
	names  []string // of the replicas
	// maxFaults is the number of steps by which a replica or the clock changes, maxTries
	// of reviews of a write, and maxRelists of lists after the start.
	maxFaults, maxTries, maxRelists int
}

func newSimulation(c *scenario, o options, check *oracle) *simulation {
	s := &simulation{
		scenario: c, options: o, server: newAPIServer(c.initial), metrics: coordination.NewMetrics(nil), oracle: check,
		began: time.Now(), replicas: make(map[string]*replica),
	}
	for _, o := range c.initial {
		s.kindsOfObjects = append(s.kindsOfObjects, o.Ref().PolicyKind())
	}
	for _, w := range c.writes {
		s.kindsOfObjects = append(s.kindsOfObjects, w.object.Ref().PolicyKind())
	}
	for _, name := range o.names {
		s.start(name)
		time.Sleep(110 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond) // they greet the leader
	synctest.Wait()
	return s
}

// end ends all replicas.
func (s *simulation) end() {
	for _, r := range s.replicas {
		if r.alive() {
			r.crash()
		}
	}
	for _, a := range s.attempts {
		a.cancel()
	}
	s.running.Wait()
}

func (s *simulation) replicaAt(address string) *replica {
	if r := s.replicas[address]; r.alive() {
		return r
	}
	return nil
}

func (s *simulation) attempt(n int) *attempt { return s.attempts[n] }

// leader returns the replica that the Lease names, nil if that does not exist any more.
func (s *simulation) leader() *replica {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	for _, r := range s.replicas {
		if r.identity == *s.server.lease.Spec.HolderIdentity && r.alive() {
			return r
		}
	}
	return nil
}

// holdPoint is where an attempt is held until it is released.
type holdPoint int

const (
	holdNowhere    holdPoint = iota
	holdEvaluation           // while it is evaluated, if the evaluation reads an object
	holdAnswer               // before the answer
)

func (h holdPoint) String() string {
	return [...]string{"", ", hold its evaluation", ", hold its answer"}[h]
}

type attemptKey struct{}

// attempt is a review of a write.
type attempt struct {
	*simulation
	number, of  int
	review      review
	via         *replica
	submitted   int // coordination steps before it
	submittedAt time.Time
	cancel      context.CancelFunc
	gate        chan struct{}

	mu         sync.Mutex
	holdAt     holdPoint
	evaluator  *replica
	held       bool
	heldWith   string // what the evaluation has seen
	answer     answer
	answeredAt time.Time
	answered   int // coordination steps before the answer
	lapses     int // of the Lease before the answer
	settled    string
}

// submit sends the review of a write to a replica.
func (s *simulation) submit(i int, via *replica, hold holdPoint) {
	w, n := s.writes[i], len(s.attempts)
	a := &attempt{
		simulation: s, number: n, of: i, via: via, submitted: len(s.coordination), submittedAt: time.Now(),
		gate: make(chan struct{}), holdAt: hold,
	}
	s.attempts = append(s.attempts, a)
	var ok bool
	a.review, ok = s.server.newReview(w.op, w.object, types.UID(fmt.Sprint("uid-", n)))
	ctx, cancel := context.WithTimeout(context.WithValue(context.Background(), attemptKey{}, a), webhookTimeout)
	a.cancel = cancel
	if !ok {
		a.settled = "not found"
		return
	}
	s.running.Go(func() {
		got, err := via.validate(ctx, a, false)
		a.mu.Lock()
		defer a.mu.Unlock()
		if err != nil || ctx.Err() != nil || !via.alive() {
			return // the API server has no answer
		}
		a.answer, a.answeredAt, a.answered, a.lapses = got, time.Now(), len(s.coordination), s.server.lapses
	})
}

// write returns the write for a log.
func (a *attempt) write() inflight.Write {
	return inflight.Write{
		Change: a.review.change, Precondition: func() inflight.Precondition { return a.review.precondition },
		Review: func() []byte { return fmt.Append(nil, a.number) },
	}
}

// begin records who evaluates.
func (a *attempt) begin(r *replica) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.evaluator = r
}

// hold waits at a point until the attempt is released.
func (a *attempt) hold(at holdPoint) {
	a.mu.Lock()
	stays := a.holdAt == at && a.evaluator.alive()
	if stays {
		a.held, a.heldWith = true, fmt.Sprint(a.evaluator.name, a.evaluator.position, a.evaluator.log.Refs())
	}
	a.mu.Unlock()
	if stays {
		<-a.gate
	}
}

func (a *attempt) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holdAt != holdNowhere {
		a.holdAt, a.held = holdNowhere, false
		close(a.gate)
	}
}

// releaseAt releases the attempt if a replica evaluates it.
func (a *attempt) releaseAt(r *replica) {
	a.mu.Lock()
	here := a.evaluator == r || a.via == r
	a.mu.Unlock()
	if here {
		a.release()
	}
}

// state returns "running", "held", "lost", "allowed", "denied", "stored" or why it was not
// stored.
func (a *attempt) state() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.settled != "":
		return a.settled
	case a.answer != "":
		return string(a.answer)
	case !a.via.alive(), time.Since(a.submittedAt) >= webhookTimeout:
		return "lost"
	case a.held:
		return "held"
	}
	return "running"
}

// storable reports whether the API server may store the write.
func (a *attempt) storable() bool {
	if a.state() != string(allowed) {
		return false
	}
	a.server.mu.Lock()
	defer a.server.mu.Unlock()
	return time.Since(a.answeredAt) <= storeTime || a.server.lapses == a.lapses && time.Since(a.submittedAt) <= requestTimeout
}

func (a *attempt) String() string {
	a.mu.Lock()
	evaluator := ""
	if a.evaluator != nil {
		evaluator = a.evaluator.identity
	}
	a.mu.Unlock()
	return fmt.Sprintf("%s/%d via %s at %s: %s%s %d/%d%s", a.writes[a.of].name, a.number, a.via.identity, evaluator, a.state(), a.holdAt, a.submitted, a.answered, a.heldWith)
}

// key identifies the state of the simulation. The state of the Coordinators is a result of
// the coordination steps: all others take no time, and change only logs and caches.
func (s *simulation) key() string {
	var out strings.Builder
	fmt.Fprint(&out, s.coordination, s.relists)
	for _, name := range s.names {
		r := s.replicas[name]
		fmt.Fprintf(&out, "\n%s %v %v %v", r.identity, r.delivered, r.log.Refs(), r.coordinator.Status())
	}
	for _, e := range s.server.events {
		fmt.Fprintf(&out, "\n%s %s", e.ref, e.uid)
	}
	attempts := make([]string, len(s.attempts))
	for i, a := range s.attempts {
		attempts[i] = a.String()
	}
	slices.Sort(attempts)
	fmt.Fprint(&out, attempts)
	return out.String()
}

// storedWrite is a write that was stored, and how many were when it was reviewed.
type storedWrite struct {
	change   guard.Change
	reviewed int
}

// oracle evaluates stored writes again, one after the other.
type oracle struct {
	guard   *guard.Guard
	results map[string]bool
}

func newOracle() *oracle {
	return &oracle{&guard.Guard{Engine: effective.NewEngine()}, make(map[string]bool)}
}

// conflict reports whether writes that were stored conflict: there is no order of them
// in which each is allowed. Those that were stored before another one was reviewed come
// before it.
func (o *oracle) conflict(c *scenario, stored []storedWrite) (bool, error) {
	var key strings.Builder
	for _, w := range stored {
		fmt.Fprint(&key, w.change.Operation, w.change.Object().Ref(), w.reviewed)
	}
	if got, ok := o.results[key.String()]; ok {
		return got, nil
	}
	v := (&snapshot.View{}).WithKinds(c.kinds)
	for _, object := range c.initial {
		v = v.With(snapshot.Put(object))
	}
	ok, err := o.allows(v, stored, make([]bool, len(stored)))
	o.results[key.String()] = !ok
	return !ok, err
}

// allows reports whether there is an order of the writes that are not done.
func (o *oracle) allows(v *snapshot.View, stored []storedWrite, done []bool) (bool, error) {
	if !slices.Contains(done, false) {
		return true, nil
	}
	for i, w := range stored {
		if done[i] || slices.Contains(done[:min(w.reviewed, i)], false) {
			continue
		}
		d, err := o.guard.Evaluate(context.Background(), v, w.change, nil)
		if err != nil {
			return false, err
		}
		if d.Denied() {
			continue
		}
		change := snapshot.Delete(w.change.Object().Ref())
		if w.change.After != nil {
			change = snapshot.Put(w.change.After)
		}
		done[i] = true
		if ok, err := o.allows(v.With(change), stored, done); ok || err != nil {
			return ok, err
		}
		done[i] = false
	}
	return false, nil
}
