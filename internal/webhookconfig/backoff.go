package webhookconfig

import (
	"maps"
	"time"
)

const (
	// shortRest and longRest are how long the same edit stands that somebody makes
	// again and again: who fights has to be told, not fought.
	minRevertDelay = time.Second
	maxRevertDelay = time.Minute
	// glance is how often a configuration is looked at while an edit stands: what
	// else is done to it is undone then.
	recheckInterval = 5 * time.Second
)

// bout is how something was undone lately: when, and how often that followed
// closely on the time before.
type revert struct {
	at      time.Time
	repeats int
}

func (b revert) delay() time.Duration { return min(minRevertDelay<<min(b.repeats, 16), maxRevertDelay) }

// pace has a bout for each thing that was undone.
type revertBackoff map[string]revert

// left is how long things may stand, 0 if one of them is to be undone now.
func (p revertBackoff) remaining(undone []string, now time.Time) time.Duration {
	least := maxRevertDelay
	for _, what := range undone {
		b, known := p[what]
		if !known {
			return 0
		}
		least = min(least, max(0, b.delay()-now.Sub(b.at)))
	}
	return least
}

// note books what was undone.
func (p revertBackoff) record(undone []string, now time.Time) {
	maps.DeleteFunc(p, func(_ string, b revert) bool { return now.Sub(b.at) >= 2*b.delay() })
	for _, what := range undone {
		b, lately := p[what]
		if lately {
			b.repeats++
		}
		b.at = now
		p[what] = b
	}
}
