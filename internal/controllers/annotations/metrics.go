package annotations

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Results of a write, as the label result of the metric.
const (
	resultWritten   = "written"
	resultOtherwise = "otherwise"
	resultGone      = "gone"
	resultForbidden = "forbidden"
	resultFailed    = "failed"
)

var results = []string{resultWritten, resultOtherwise, resultGone, resultForbidden, resultFailed}

var (
	pendingDesc = prometheus.NewDesc("overrule_annotation_updates_pending",
		"Objects whose annotations and conditions are pending a check or a write. Reported by the leader only.", nil, nil)
	oldestDesc = prometheus.NewDesc("overrule_annotation_updates_oldest_seconds",
		"Age of the oldest pending object, 0 if there is none.", nil, nil)
	writesDesc = prometheus.NewDesc("overrule_annotation_updates_total",
		"Writes of annotations and conditions by result (written, otherwise, gone, forbidden, failed).", []string{"result"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	ch <- pendingDesc
	ch <- oldestDesc
	ch <- writesDesc
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	n, oldest := c.pending.snapshot(time.Now())
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(n))
	ch <- prometheus.MustNewConstMetric(oldestDesc, prometheus.GaugeValue, oldest.Seconds())
	counts := c.results.get()
	for _, result := range results {
		ch <- prometheus.MustNewConstMetric(writesDesc, prometheus.CounterValue, float64(counts[result]), result)
	}
}

// pending tracks the objects that are queued or wait to be.
type pending struct {
	mu       sync.Mutex
	since    map[api.Ref]time.Time
	current  api.Ref // being processed
	requeued bool    // current was queued again
}

func (p *pending) add(ref api.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since == nil {
		p.since = make(map[api.Ref]time.Time)
	}
	if _, there := p.since[ref]; !there {
		p.since[ref] = time.Now()
	}
	p.requeued = p.requeued || ref == p.current
}

func (p *pending) start(ref api.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, p.requeued = ref, false
}

// finish removes the current object, unless it was queued again.
func (p *pending) finish(ref api.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requeued {
		p.since[ref] = time.Now()
	} else {
		delete(p.since, ref)
	}
	p.current, p.requeued = api.Ref{}, false
}

func (p *pending) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since, p.current, p.requeued = nil, api.Ref{}, false
}

func (p *pending) snapshot(now time.Time) (n int, oldest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, since := range p.since {
		oldest = max(oldest, now.Sub(since))
	}
	return len(p.since), oldest
}

// counter counts results.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *counter) add(result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	c.counts[result]++
}

func (c *counter) get() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}
