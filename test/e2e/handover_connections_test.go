//go:build e2e

package e2e

import (
	"time"

	"overrule.dev/overrule/test/faultproxy"
)

// faultTime is how long a fault lasts: longer than a lease.
const faultTime = 9 * time.Second

// connectionFaults are faults of connections that are repaired after a while. Not
// all of them make the leader hand over.
func connectionFaults() []handoverKind {
	const slow = 150 * time.Millisecond
	held, lost := faultproxy.Direction{Behavior: faultproxy.Hold}, faultproxy.Direction{Behavior: faultproxy.Sever}
	return []handoverKind{
		{name: "replicas: slow", force: keep(peersOf, faultproxy.Both(faultproxy.Direction{Delay: slow}))},
		{name: "replicas: connections are reset", force: resetConnections(peersOf, 100*time.Millisecond)},
		{name: "replicas: half-open", force: keep(peersOf, faultproxy.Both(held))},
		{name: "replicas: requests arrive, responses are held back", force: keep(peersOf, faultproxy.Faults{ToClient: held})},
		{name: "replicas: requests arrive, responses are lost", force: keep(peersOf, faultproxy.Faults{ToClient: lost})},
		{name: "API server: slow", force: keep(apisOf, faultproxy.Both(faultproxy.Direction{Delay: slow}))},
		{name: "API server: slow for the leader", force: keep(apiOfLeader, faultproxy.Faults{ToClient: faultproxy.Direction{Delay: 4 * slow}})},
		{name: "API server: connections are reset", force: resetConnections(apisOf, time.Second)},
		{name: "API server: followers are stale", force: keep(apisOfFollowers, faultproxy.Faults{ToClient: held})},
	}
}

// proxiesOf returns the proxies with a fault.
type proxiesOf func(r *replicaSet, leader *member) []*faultproxy.Proxy

func peersOf(r *replicaSet, _ *member) (out []*faultproxy.Proxy) {
	for _, m := range r.members {
		out = append(out, m.peer)
	}
	return out
}

func apisOf(r *replicaSet, _ *member) []*faultproxy.Proxy { return apisOfFollowers(r, nil) }

func apiOfLeader(_ *replicaSet, leader *member) []*faultproxy.Proxy {
	return []*faultproxy.Proxy{leader.api}
}

func apisOfFollowers(r *replicaSet, leader *member) (out []*faultproxy.Proxy) {
	for _, m := range r.except(leader) {
		out = append(out, m.api)
	}
	return out
}

// keep keeps faults for faultTime.
func keep(of proxiesOf, f faultproxy.Faults) func(*replicaSet, *member) {
	return func(r *replicaSet, leader *member) {
		for _, p := range of(r, leader) {
			p.Set(f)
		}
		time.Sleep(faultTime)
	}
}

// resetConnections resets all connections again and again.
func resetConnections(of proxiesOf, every time.Duration) func(*replicaSet, *member) {
	return func(r *replicaSet, leader *member) {
		for range int(faultTime / every) {
			for _, p := range of(r, leader) {
				p.Reset()
			}
			time.Sleep(every)
		}
	}
}
