package explore

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"
)

// action is what happens in a step.
type action string

const (
	submit   action = "review"
	release  action = "release"
	store    action = "store"
	deliver  action = "deliver an event to"
	relist   action = "drop the watch and relist at"
	handOver action = "hand over from"
	crash    action = "crash"
	restart  action = "restart"
	cut      action = "cut off from the API server:"
	heal     action = "repair the connections of"
	deafen   action = "lose the responses of the API server to"
	isolate  action = "hold all connections to other replicas of"
	pause    action = "pause"
	resume   action = "resume"
	wait     action = "wait 1s"

	deleteLease  action = "delete the Lease"
	nameOther    action = "make the Lease name a replica that did not acquire it"
	replaceLease action = "replace the Lease by one that names such a replica"

	// lapse lets a Lease run out whose holder does not renew it.
	lapse action = "wait until the Lease has run out"
	// expire lets writes in flight expire.
	expire action = "wait until writes in flight expire"
)

const (
	waitTime   = time.Second
	lapseTime  = leaseDuration + 2*time.Second
	expireTime = 2*requestTimeout + 5*time.Second
)

// step is one step of a history.
type step struct {
	action action
	write  string // the name of a write
	at     string // the name of a replica
	hold   holdPoint
}

func (s step) String() string {
	switch {
	case s.action == submit:
		return fmt.Sprintf("review %s at %s%s", s.write, s.at, s.hold)
	case s.write != "":
		return string(s.action) + " " + s.write
	case s.at != "":
		return string(s.action) + " " + s.at
	}
	return string(s.action)
}

// isFault reports whether a step counts for options.maxFaults.
func (s step) isFault() bool {
	switch s.action {
	case handOver, crash, restart, cut, heal, deafen, isolate, pause, resume, wait, expire, deleteLease, nameOther, replaceLease:
		return true
	default:
		return false
	}
}

// last returns the newest attempt of a write, nil if there is none, and the number of
// attempts.
func (s *simulation) last(i int) (a *attempt, tries int) {
	for _, other := range s.attempts {
		if other.of == i {
			a, tries = other, tries+1
		}
	}
	return a, tries
}

// enabled returns the steps that can be next.
func (s *simulation) enabled() []step {
	var out []step
	waiting := false
	for i, w := range s.writes {
		a, tries := s.last(i)
		state := "none"
		if a != nil {
			state = a.state()
		}
		switch state {
		case "none", "denied", "not found", "lost", "conflict":
			if tries < s.maxTries {
				out = append(out, s.reviews(w)...)
			}
		case "held":
			waiting = true
			if a.evaluator.isPaused() == nil {
				out = append(out, step{action: release, write: w.name})
			}
		case "running":
			waiting = true
		case "allowed":
			if a.storable() {
				waiting = true
				out = append(out, step{action: store, write: w.name})
			}
		}
	}
	for _, name := range s.names {
		out = append(out, s.enabledAt(s.replicas[name])...)
	}
	if s.leader() != nil && !s.edited() {
		out = append(out, step{action: deleteLease}, step{action: nameOther}, step{action: replaceLease})
	}
	out = append(out, s.waits(waiting)...)
	if s.faults < s.maxFaults {
		return out
	}
	kept := out[:0]
	for _, next := range out {
		if !next.isFault() {
			kept = append(kept, next)
		}
	}
	return kept
}

// edited reports whether the Lease is as someone other than its holder wrote it.
func (s *simulation) edited() bool {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.server.edited
}

// other returns the identity of the first replica that does not lead.
func (s *simulation) other() string {
	leader := s.leader()
	for _, name := range s.names {
		if r := s.replicas[name]; r != leader {
			return r.identity
		}
	}
	return "no-one"
}

// reviews returns the steps by which a write is reviewed.
func (s *simulation) reviews(w write) []step {
	var out []step
	for _, name := range s.names {
		if r := s.replicas[name]; !r.alive() || r.isPaused() != nil {
			continue
		}
		if len(out) == 0 { // where it is held, it makes no difference who forwards it
			out = append(out, step{submit, w.name, name, holdEvaluation}, step{submit, w.name, name, holdAnswer})
		}
		out = append(out, step{submit, w.name, name, holdNowhere})
	}
	return out
}

// enabledAt returns the steps at a replica.
func (s *simulation) enabledAt(r *replica) []step {
	var out []step
	add := func(a action) { out = append(out, step{action: a, at: r.name}) }
	if !r.alive() {
		add(restart)
		return out
	}
	if r.isPaused() != nil {
		add(resume)
		add(crash)
		return out
	}
	if r.behind() > 0 {
		add(deliver)
		if s.relists < s.maxRelists {
			add(relist)
		}
	}
	leads := s.leader() == r && !r.left
	if r.cut || r.deaf || r.isolated {
		add(heal)
	} else if leads {
		add(cut)
		add(deafen)
		add(isolate)
	}
	if leads {
		add(handOver)
		add(pause)
	}
	add(crash)
	return out
}

// waits returns the steps by which only time passes.
func (s *simulation) waits(waiting bool) []step {
	var out []step
	if waiting {
		out = append(out, step{action: wait})
	}
	connected := func(r *replica) bool {
		return r != nil && r.alive() && r.isPaused() == nil && !r.cut && !r.deaf && !r.left
	}
	if connected(s.leader()) && !s.edited() {
		if len(s.leader().log.Refs()) > 0 {
			out = append(out, step{action: expire})
		}
		return out
	}
	if n := len(s.coordination); n > 0 && s.coordination[n-1].action == lapse {
		return out
	}
	for _, name := range s.names {
		if connected(s.replicas[name]) {
			return append(out, step{action: lapse})
		}
	}
	return out
}

// do runs a step until nothing happens any more. It reports whether writes
// are stored then that conflict.
func (s *simulation) do(next step) (conflict bool, err error) {
	r := s.replicas[next.at]
	var a *attempt
	for i, w := range s.writes {
		if w.name == next.write {
			a, _ = s.last(i)
			if next.action == submit {
				s.submit(i, r, next.hold)
			}
		}
	}
	switch next.action {
	case submit, deliver, relist, store, release:
	default:
		s.coordination = append(s.coordination, next)
	}
	if next.isFault() {
		s.faults++
	}
	switch next.action {
	case release:
		a.release()
	case store:
		a.settled = "conflict"
		if s.server.store(a.review) {
			a.settled = "stored"
			conflict, err = s.oracle.conflict(s.scenario, s.server.storedWrites)
		}
	case deliver:
		r.deliver()
	case relist:
		s.relists++
		r.relist()
	default:
		s.coordinate(next.action, r)
	}
	synctest.Wait()
	return conflict, err
}

// coordinate runs a step by which a replica or the clock changes.
func (s *simulation) coordinate(a action, r *replica) {
	switch a {
	case handOver:
		r.left = true
		s.running.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r.coordinator.HandOver(ctx)
		})
	case crash:
		r.crash()
	case restart:
		s.start(r.name)
		time.Sleep(100 * time.Millisecond) // it greets the leader
	case cut, deafen, isolate, heal:
		r.mu.Lock()
		r.cut, r.deaf, r.isolated = a == cut, a == deafen, a == isolate
		r.mu.Unlock()
	case deleteLease, nameOther, replaceLease:
		s.server.editLease(a, s.other())
	case pause:
		r.pause()
	case resume:
		r.resume()
	case wait:
		time.Sleep(waitTime)
	case lapse:
		time.Sleep(lapseTime)
	case expire:
		time.Sleep(expireTime)
	default:
	}
}
