package webhookconfig

import (
	"maps"
	"time"
)

const (
	// minRevertDelay and maxRevertDelay limit how long the same edit stays in place if
	// another client repeats it: such a conflict is reported, and not fought.
	minRevertDelay = time.Second
	maxRevertDelay = time.Minute
	// recheckInterval is the time between two checks of a configuration while an edit
	// stays in place: other edits are reverted then.
	recheckInterval = 5 * time.Second
)

// revert is the last revert of an edit.
type revert struct {
	at      time.Time
	repeats int // reverts that followed closely on the one before
}

func (r revert) delay() time.Duration { return min(minRevertDelay<<min(r.repeats, 16), maxRevertDelay) }

// revertBackoff has the last revert of each edit.
type revertBackoff map[string]revert

// remaining returns how long edits stay in place, 0 if one of them is to be reverted now.
func (r revertBackoff) remaining(edits []string, now time.Time) time.Duration {
	least := maxRevertDelay
	for _, edit := range edits {
		last, known := r[edit]
		if !known {
			return 0
		}
		least = min(least, max(0, last.delay()-now.Sub(last.at)))
	}
	return least
}

// record records that edits were reverted.
func (r revertBackoff) record(edits []string, now time.Time) {
	maps.DeleteFunc(r, func(_ string, last revert) bool { return now.Sub(last.at) >= 2*last.delay() })
	for _, edit := range edits {
		last, recent := r[edit]
		if recent {
			last.repeats++
		}
		last.at = now
		r[edit] = last
	}
}
