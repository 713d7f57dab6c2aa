package certs

import (
	"crypto/x509"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// simRules: clients lag behind a published bundle by clientLag, replicas behind
// the Secret by less than an hour, and a new leader may be such a replica.
var simRules = rotationRules{name: "ca", caValidity: 90 * hour, leafValidity: 10 * hour, publishTimeout: 8 * hour, propagation: clientLag + hour}

const clientLag = hour

// cluster simulates replicas, a publisher and clients with the pure functions only.
type cluster struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Time
	secret   *corev1.Secret
	replicas []*replica
	leader   int
	inForce  []published // what some API server may still trust, newest last
	history  map[step]int
	leaves   int // signed
}

type replica struct {
	last   state
	leaf   *leaf
	seen   []*x509.Certificate
	synced time.Time

	offset    time.Duration // of its clock
	confirmed observation
}

type published struct {
	pool   *x509.CertPool
	bundle string
	at     time.Time // until the next one, and clientLag longer
}

func (c *cluster) sync(r *replica) {
	stored, _ := decode(c.secret)
	now := c.now.Add(r.offset)
	r.confirmed = r.confirmed.observe(stored.publishedAt, now)
	planned, steps, err := simRules.plan(stored, localState{now: now, lastState: r.last, published: r.seen, confirmed: r.confirmed})
	require.NoError(c.t, err)
	for _, step := range steps {
		c.history[step]++
	}
	c.secret = withMaps(c.secret)
	encode(planned, c.secret)
	r.last, r.synced = planned, c.now
	if needsLeaf(r.leaf, planned, now) {
		r.leaf, err = issueLeaf(planned.current, serverFor("a"), simRules.leafValidity, now)
		c.leaves++
		require.NoError(c.t, err)
	}
}

// publish makes the leader, which may be behind, publish its bundle if clients have
// another one.
func (c *cluster) publish() {
	r := c.replicas[c.leader]
	bundle := string(r.last.bundle())
	r.seen = r.last.trusted()
	if len(c.inForce) > 0 && c.inForce[len(c.inForce)-1].bundle == bundle {
		return
	}
	pool := x509.NewCertPool()
	require.True(c.t, pool.AppendCertsFromPEM(r.last.bundle()))
	c.inForce = append(c.inForce, published{pool: pool, bundle: bundle, at: c.now})
}

// handshake makes every client, up to date or behind, verify every replica.
func (c *cluster) handshake(seed uint64) {
	oldest := len(c.inForce) - 1
	for oldest > 0 && c.now.Sub(c.inForce[oldest].at) < clientLag {
		oldest--
	}
	c.inForce = c.inForce[oldest:]
	for _, client := range c.inForce {
		for i, r := range c.replicas {
			_, err := r.leaf.tls.Leaf.Verify(x509.VerifyOptions{Roots: client.pool, DNSName: "a", CurrentTime: c.now})
			require.NoError(c.t, err, "seed %d, replica %d, %s after the start", seed, i, c.now.Sub(epoch))
		}
	}
}

func (c *cluster) anyReplica() *replica { return c.replicas[c.rand.IntN(len(c.replicas))] }

func (c *cluster) damage() {
	for _, r := range c.replicas { // a replica far behind would bring back what it knows
		c.sync(r)
	}
	switch c.rand.IntN(4) {
	case 0:
		c.secret = &corev1.Secret{}
	case 1:
		c.secret.Data[keyKey] = []byte("broken")
	case 2:
		delete(c.secret.Data, keyBundle)
	default:
		c.secret.Annotations = nil
	}
	c.sync(c.anyReplica())
}

func (c *cluster) step() {
	c.now = c.now.Add(time.Duration(c.rand.IntN(20)+1) * time.Minute)
	for i, r := range c.replicas {
		switch {
		case c.rand.IntN(400) == 0: // restarted: memory lost
			c.replicas[i] = &replica{offset: r.offset}
			c.sync(c.replicas[i])
		case c.now.Sub(r.synced) > 35*time.Minute || c.rand.IntN(3) == 0:
			c.sync(r)
		}
	}
	if c.rand.IntN(30) == 0 {
		c.leader = c.rand.IntN(len(c.replicas))
	}
	if c.rand.IntN(10) > 0 { // else the API server refuses
		c.publish()
	}
	if c.rand.IntN(300) == 0 {
		c.damage()
	}
}

// In any order of events, every client verifies every replica at any time, and the
// rotations continue at the planned rate, even if clocks of replicas are off. The
// clocks of clients are right.
func TestSimulatedRotationFailsNoHandshake(t *testing.T) {
	seeds := uint64(2)
	if testing.Short() {
		seeds = 1
	}
	for name, offsets := range map[string][]time.Duration{
		"right clocks":            {0, 0, 0},
		"all two hours ahead":     {2 * hour, 2 * hour, 2 * hour},
		"all two hours behind":    {-2 * hour, -2 * hour, -2 * hour},
		"one two hours ahead":     {0, 2 * hour, 0},
		"one two hours behind":    {0, -2 * hour, 0},
		"one ten minutes behind":  {0, -10 * time.Minute, 0},
		"two hours ahead, behind": {2 * hour, -2 * hour, -10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				simulate(t, seed, offsets)
			}
		})
	}
}

func simulate(t *testing.T, seed uint64, offsets []time.Duration) {
	t.Helper()
	c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: epoch, secret: &corev1.Secret{}, history: map[step]int{}}
	for _, offset := range offsets {
		c.replicas = append(c.replicas, &replica{offset: offset})
	}
	for _, r := range c.replicas {
		c.sync(r)
	}
	c.publish()
	for range 1500 {
		c.step()
		c.handshake(seed)
		require.LessOrEqual(t, len(c.replicas[0].last.trusted()), 8, "the bundle must not grow without end")
	}
	require.Greater(t, c.history[stepPromoted], 3, "seed %d", seed)
	require.Greater(t, c.history[stepDropped], 2, "seed %d", seed)
	// Some 260 hours: each replica signs every six hours and a half, again after a
	// restart, and whenever the authority is replaced.
	require.Less(t, c.leaves, 400, "seed %d", seed)
	require.Less(t, c.history[stepStaged], 25, "seed %d", seed)
}
