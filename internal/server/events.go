package server

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/webhook"
)

// trouble tells in Events what /readyz notes: that somebody should look at a
// replica though it does its work. Whoever reads no logs reads those.
type trouble struct {
	notes  map[string]func() error
	about  *corev1.ObjectReference
	events webhook.EventRecorder
}

// noteEvery is the time between two looks. What stands at two of them in a row
// is told: a start has many notes that do not last.
const noteEvery = 30 * time.Second

func newTrouble(notes map[string]func() error, namespace string, events webhook.EventRecorder) *trouble {
	return &trouble{notes: notes, events: events, about: &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: replica(),
	}}
}

// NeedLeaderElection lets every replica tell of itself.
func (t *trouble) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (t *trouble) Start(ctx context.Context) error {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	stood, told := map[string]bool{}, map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			t.look(stood, told)
		}
	}
}

// look tells of the notes that stood at the last look, each once for as long as
// it stands: what it says may have a time in it.
func (t *trouble) look(stood map[string]bool, told map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(t.notes)) {
		err := t.notes[name]()
		if err == nil {
			delete(stood, name)
			delete(told, name)
			continue
		}
		if stood[name] && !told[name] {
			told[name] = true
			t.events.Eventf(t.about, nil, corev1.EventTypeWarning, troubleReason(name), "Look", "%s", guard.EventNote(err.Error()))
		}
		stood[name] = true
	}
}

// troubleReason is the reason of the Events of a note: CertificateTrouble.
func troubleReason(note string) string { return strings.ToUpper(note[:1]) + note[1:] + "Trouble" }
