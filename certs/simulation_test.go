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
var simRules = rules{name: "ca", caValidity: 90 * hour, leafValidity: 10 * hour, publishWait: 8 * hour, propagation: clientLag + hour}

const clientLag = hour

// cluster plays replicas, a publisher and clients on the pure parts alone.
type cluster struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Time
	secret   *corev1.Secret
	replicas []*replica
	leader   int
	inForce  []published // what some API server may still trust, newest last
	history  map[step]int
}

type replica struct {
	last   state
	leaf   *leaf
	seen   []*x509.Certificate
	synced time.Time
}

type published struct {
	pool   *x509.CertPool
	bundle string
	at     time.Time // until the next one, and clientLag longer
}

func (c *cluster) sync(r *replica) {
	found, _ := decode(c.secret)
	planned, steps, err := simRules.plan(found, knowledge{now: c.now, last: r.last, published: r.seen})
	require.NoError(c.t, err)
	for _, step := range steps {
		c.history[step]++
	}
	if c.secret == nil {
		c.secret = &corev1.Secret{}
	}
	encode(planned, c.secret)
	r.last, r.synced = planned, c.now
	if leafDue(r.leaf, planned, c.now) {
		r.leaf, err = issue(planned.current, []string{"a"}, simRules.leafValidity, c.now)
		require.NoError(c.t, err)
	}
}

// publish has the leader, which may be behind, write its bundle to the clients
// if they have another.
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

// handshake has every client, up to date or behind, verify every replica.
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

func (c *cluster) any() *replica { return c.replicas[c.rand.IntN(len(c.replicas))] }

func (c *cluster) damage() {
	for _, r := range c.replicas { // a replica far behind would bring back what it knows
		c.sync(r)
	}
	switch c.rand.IntN(4) {
	case 0:
		c.secret = nil
	case 1:
		c.secret.Data[keyKey] = []byte("broken")
	case 2:
		delete(c.secret.Data, keyBundle)
	default:
		c.secret.Annotations = nil
	}
	c.sync(c.any())
}

func (c *cluster) turn() {
	c.now = c.now.Add(time.Duration(c.rand.IntN(20)+1) * time.Minute)
	for i, r := range c.replicas {
		switch {
		case c.rand.IntN(400) == 0: // restarted: memory lost
			c.replicas[i] = &replica{}
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

// Whatever the order of events, every client verifies every replica at any time,
// and rotation goes on for ever.
func TestRotationLosesNoHandshake(t *testing.T) {
	for seed := range uint64(8) {
		c := &cluster{t: t, rand: rand.New(rand.NewPCG(seed, 1)), now: epoch, history: map[step]int{}}
		for range 3 {
			c.replicas = append(c.replicas, &replica{})
		}
		for _, r := range c.replicas {
			c.sync(r)
		}
		c.publish()
		for range 1500 {
			c.turn()
			c.handshake(seed)
			require.LessOrEqual(t, len(c.replicas[0].last.trusted()), 8, "the bundle must not grow without end")
		}
		require.Greater(t, c.history[stepPromoted], 3, "seed %d", seed)
		require.Greater(t, c.history[stepDropped], 2, "seed %d", seed)
	}
}
