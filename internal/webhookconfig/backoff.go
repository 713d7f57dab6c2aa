package webhookconfig

import (
	"maps"
	"time"
)

const (
	// shortRest and longRest are how long the same edit stands that somebody makes
	// again and again: who fights has to be told, not fought.
	shortRest = time.Second
	longRest  = time.Minute
	// glance is how often a configuration is looked at while an edit stands: what
	// else is done to it is undone then.
	glance = 5 * time.Second
)

// bout is how something was undone lately: when, and how often that followed
// closely on the time before.
type bout struct {
	at    time.Time
	again int
}

func (b bout) rest() time.Duration { return min(shortRest<<min(b.again, 16), longRest) }

// pace has a bout for each thing that was undone.
type pace map[string]bout

// left is how long things may stand, 0 if one of them is to be undone now.
func (p pace) left(undone []string, now time.Time) time.Duration {
	least := longRest
	for _, what := range undone {
		b, known := p[what]
		if !known {
			return 0
		}
		least = min(least, max(0, b.rest()-now.Sub(b.at)))
	}
	return least
}

// note books what was undone.
func (p pace) note(undone []string, now time.Time) {
	maps.DeleteFunc(p, func(_ string, b bout) bool { return now.Sub(b.at) >= 2*b.rest() })
	for _, what := range undone {
		b, lately := p[what]
		if lately {
			b.again++
		}
		b.at = now
		p[what] = b
	}
}
