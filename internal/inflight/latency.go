package inflight

import "time"

// latency tracks the time from the admission of a write to its observation: the maximum
// of this minute and of the one before.
type latency struct {
	since        time.Time
	now, earlier time.Duration
}

func (l *latency) observe(now time.Time, d time.Duration) {
	switch age := now.Sub(l.since); {
	case age >= 2*time.Minute:
		l.since, l.now, l.earlier = now, 0, 0
	case age >= time.Minute:
		l.since, l.now, l.earlier = now, 0, l.now
	}
	l.now = max(l.now, d)
}

// bound returns the maximum latency, between minLatency and maxLatency.
func (l *latency) bound() time.Duration {
	return min(max(l.now, l.earlier, minLatency), maxLatency)
}
