//go:build soak

package soak

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
)

// counters counts the writes of each phase. A write belongs to the phase in which
// it was answered: a fault affects writes in flight when it begins, and a phase
// lasts longer than the timeout of a call after its fault is repaired. A write
// that must be repeated belongs to the phase in which it was sent.
type counters struct {
	mu     sync.Mutex
	phases []*phase
}

// phase is the time of one fault, and the results of its writes.
type phase struct {
	name string
	// bound is the maximum number of lost writes.
	bound int64

	sent, allowed, denied, undecided, lost, cut, wrong, through int64
	// leaderless are the writes to be retried since no replica leads, until the lease of
	// one that stopped without a handover runs out.
	leaderless int64
	// restarts: the API server itself rejects writes.
	restarts bool
	notes    []string // descriptions of failures
}

// begin starts the next phase.
func (t *counters) begin(name string) *phase {
	p := &phase{name: name}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases = append(t.phases, p)
	return p
}

func (t *counters) now() *phase {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.phases[len(t.phases)-1]
}

// record counts one response. want is the reason code of the expected denial, ""
// if the write must be stored.
func (t *counters) record(p *phase, want string, got outcome, text, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if got == cut {
		p.note(&p.cut, what, "repeated: "+text)
		return
	}
	p.sent++
	switch {
	case got == lost:
		p.note(&p.lost, what, "lost: "+text)
	case got == undecided && strings.HasPrefix(text, noLeader):
		p.note(&p.leaderless, what, "without a leader: "+text)
	case got == undecided:
		p.note(&p.undecided, what, "undecided: "+text)
	case got == stored && want == "":
		p.allowed++
	case got == stored:
		p.note(&p.through, what, "allowed, want denied: "+want)
	case got == denied && text == want:
		p.denied++
	default:
		p.note(&p.wrong, what, fmt.Sprintf("denied with %q, want %q", text, want))
	}
}

// note counts a failure, and keeps the descriptions of the first few.
func (p *phase) note(count *int64, what, text string) {
	*count++
	if *count <= maxNotes {
		p.notes = append(p.notes, what+": "+text)
	}
}

// maxNotes is the maximum number of descriptions of one kind per phase.
const maxNotes = 3

// write prints the table.
func (t *counters) write(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(out, "phase\tsent\tallowed\tdenied\tlost\tat most\twrong verdict\twrongly allowed\tundecided\twithout leader\trepeated\t")
	var sum phase
	for _, p := range append(t.phases, &sum) {
		if p == &sum {
			p.name = "all"
		}
		_, _ = fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			p.name, p.sent, p.allowed, p.denied, p.lost, p.bound, p.wrong, p.through, p.undecided, p.leaderless, p.cut)
		sum.add(p)
	}
	_ = out.Flush()
	for _, p := range t.phases {
		for _, note := range p.notes {
			_, _ = fmt.Fprintf(w, "%s: %s\n", p.name, strings.TrimSpace(note))
		}
	}
}

func (p *phase) add(o *phase) {
	if p == o {
		return
	}
	p.bound += o.bound
	p.sent, p.allowed, p.denied = p.sent+o.sent, p.allowed+o.allowed, p.denied+o.denied
	p.undecided, p.lost, p.cut = p.undecided+o.undecided, p.lost+o.lost, p.cut+o.cut
	p.wrong, p.through, p.leaderless = p.wrong+o.wrong, p.through+o.through, p.leaderless+o.leaderless
}
