package coordination

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// leaseTable is an API server that has one Lease, with the real one's conflicts: the
// faults and the clock are those of the test.
type leaseTable struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
	created int
}

func (t *leaseTable) get() *coordinationv1.Lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease.DeepCopy()
}

// edit changes the Lease as "kubectl edit" does.
func (t *leaseTable) edit(change func(*coordinationv1.Lease)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t.lease)
	t.store(t.lease)
}

func (t *leaseTable) delete() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lease = nil
}

// store stores a Lease with the next version. t.mu is held.
func (t *leaseTable) store(lease *coordinationv1.Lease) *coordinationv1.Lease {
	t.version++
	t.lease = lease.DeepCopy()
	t.lease.ResourceVersion = strconv.Itoa(t.version)
	return t.lease.DeepCopy()
}

func (t *leaseTable) create(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease != nil {
		return nil, apierrors.NewAlreadyExists(leaseResource, lease.Name)
	}
	t.created++
	out := lease.DeepCopy()
	out.UID = types.UID("uid-" + strconv.Itoa(t.created))
	return t.store(out), nil
}

func (t *leaseTable) update(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.lease == nil:
		return nil, apierrors.NewNotFound(leaseResource, lease.Name)
	case lease.ResourceVersion != t.lease.ResourceVersion || lease.UID != t.lease.UID:
		return nil, apierrors.NewConflict(leaseResource, lease.Name, errors.New("it has changed"))
	}
	return t.store(lease), nil
}

// leaseClient is the connection of one replica to a leaseTable.
type leaseClient struct {
	coordinationv1client.LeaseInterface
	table *leaseTable

	mu sync.Mutex
	// cut makes requests time out, and lost only their responses.
	cut, lost bool
	// late is how long responses take.
	late time.Duration
}

// setLate sets how long responses take.
func (c *leaseClient) setLate(late time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.late = late
}

func (c *leaseClient) set(cut, lost bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut, c.lost = cut, lost
}

// reach waits for the end of ctx if the connection is cut. respond does so if responses
// are lost.
func (c *leaseClient) reach(ctx context.Context) error   { return c.fault(ctx, false) }
func (c *leaseClient) respond(ctx context.Context) error { return c.fault(ctx, true) }

func (c *leaseClient) fault(ctx context.Context, lost bool) error {
	c.mu.Lock()
	broken, late := c.cut || lost && c.lost, c.late
	c.mu.Unlock()
	if !broken {
		if lost && late > 0 {
			time.Sleep(late)
		}
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (c *leaseClient) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	if lease := c.table.get(); lease != nil {
		return lease, nil
	}
	return nil, apierrors.NewNotFound(leaseResource, name)
}

func (c *leaseClient) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	out, err := c.table.create(lease)
	return out, errors.Join(err, c.respond(ctx))
}

func (c *leaseClient) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	out, err := c.table.update(lease)
	return out, errors.Join(err, c.respond(ctx))
}

// fakeState is a State that records its calls.
type fakeState struct {
	mu       sync.Mutex
	unready  bool
	writes   string // the log
	caughtUp int
	hold     chan struct{} // if set, CatchUp waits for it
	failsTo  error         // of Import
}

func (s *fakeState) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.unready
}

func (s *fakeState) CatchUp(ctx context.Context) error {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.caughtUp++
	return nil
}

func (s *fakeState) Export() (json.RawMessage, error) { return json.Marshal(s.log()) }

func (s *fakeState) Import(data json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failsTo != nil {
		return s.failsTo
	}
	return json.Unmarshal(data, &s.writes)
}

func (s *fakeState) Reset() { s.setLog("") }

func (s *fakeState) AwaitEmpty(ctx context.Context) error {
	for s.log() != "" {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *fakeState) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *fakeState) setLog(writes string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = writes
}

// network connects replicas in memory.
type network struct {
	mu       sync.Mutex
	handlers map[string]http.Handler
	cut      map[string]bool
}

func (n *network) set(address string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[address] = cut
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	handler, cut := n.handlers[r.URL.Host], n.cut[r.URL.Host]
	n.mu.Unlock()
	if cut || handler == nil {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// replica is a Coordinator with what it works with.
type replica struct {
	*Coordinator
	state *fakeState
	lease *leaseClient
	crash context.CancelFunc
	ended chan error
	work  *counter
}

// counter counts what runs.
type counter struct {
	mu             sync.Mutex
	begun, running int
}

func (c *counter) run(ctx context.Context) error {
	c.add(1, 1)
	<-ctx.Done()
	c.add(0, -1)
	return nil
}

func (c *counter) add(begun, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun += begun
	c.running += running
}

func (c *counter) get() (begun, running int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun, c.running
}

// simulation runs replicas with a fake clock. Its times are those of synctest.
type simulation struct {
	*testing.T
	table   *leaseTable
	network *network
	all     []*replica
}

// simulate runs a test in a bubble.
func simulate(t *testing.T, test func(*simulation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{T: t, table: &leaseTable{}, network: &network{handlers: map[string]http.Handler{}, cut: map[string]bool{}}}
		test(s)
		for _, r := range s.all {
			r.crash()
			require.NoError(t, <-r.ended)
		}
	})
}

// start starts a replica, which has its name as its address.
func (s *simulation) start(name string, changes ...func(*Options)) *replica {
	r := &replica{state: &fakeState{}, lease: &leaseClient{table: s.table}, ended: make(chan error, 1), work: &counter{}}
	o := Options{
		Leases: r.lease, Name: "overrule", Identity: name + "_1", Address: name, Bounds: NewBounds(webhookTimeout, 0),
		State: r.state, Peers: NewClient(s.network), Work: r.work.run, Metrics: NewMetrics(nil), Log: testr.New(s.T),
	}
	for _, change := range changes {
		change(&o)
	}
	r.Coordinator = New(o)
	s.network.mu.Lock()
	s.network.handlers[name] = r.Handler(http.NotFoundHandler(), 1<<20)
	s.network.mu.Unlock()
	var ctx context.Context
	ctx, r.crash = context.WithCancel(context.Background())
	go func() { r.ended <- r.Start(ctx) }()
	s.all = append(s.all, r)
	return r
}

// run lets time pass, and fails if two replicas evaluate at the same time.
func (s *simulation) run(d time.Duration) {
	s.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		s.evaluating()
	}
}

// evaluating returns the replica that evaluates a review with a timeout of 3 s now.
func (s *simulation) evaluating() *replica {
	s.Helper()
	synctest.Wait()
	var found *replica
	for _, r := range s.all {
		p, ok, _, err := r.place(webhookTimeout)
		if err == nil && ok && p.Local() && r.Check(p, webhookTimeout) == nil {
			require.Nil(s, found, "two replicas evaluate")
			found = r
		}
	}
	return found
}

// until lets time pass until a replica evaluates, and returns how long that took.
func (s *simulation) until(r *replica) time.Duration {
	s.Helper()
	begun := time.Now()
	for s.evaluating() != r {
		require.Less(s, time.Since(begun), time.Minute, "it does not evaluate")
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

const webhookTimeout = 3 * time.Second
