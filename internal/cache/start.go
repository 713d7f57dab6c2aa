package cache

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// startPolicies reads a policy kind; was is how it was read before, nil if it
// was not.
func (r *registry) startPolicies(d *definition, policy *policykind.Kind, was *kind) {
	r.store.AddKind(policy)
	read := policies(policy)
	if was != nil {
		read = coerced(policy, nil)
	}
	into := &sink[snapshot.Object]{
		decode: read, target: kindObjects{objects{r.store, policy.Ref(), r.exempt}},
		log: r.logOf(d.name), seen: seen{r.store, policy.Ref()},
	}
	k := r.begin(d, newFeed(d.name, r.clients.allPolicies(d.resource), untyped(d), into), was)
	k.policy = policy
	r.log.Info("a policy kind is known", "definition", d.name, "version", d.resource.Version,
		"profile", policy.Source, "name", policy.Name, "class", policy.Class)
	into.listed = func() { r.policiesListed(k) }
	r.start(k.feed)
	r.notify()
}

// startGateway reads a kind of Gateway API; was is as in startPolicies.
func (r *registry) startGateway(d *definition, was *kind) {
	b := d.gateway
	into := &sink[snapshot.Object]{
		decode: b.decode, target: objects{store: r.store, kind: b.kind},
		log: r.logOf(b.resource), seen: seen{r.store, b.kind},
	}
	k := r.begin(d, newFeed(b.resource, r.clients.all(b, d.resource.Version), b.example, into), was)
	into.listed = func() { r.gatewayListed(k) }
	r.start(k.feed)
	r.notify()
}

func (r *registry) startProfiles(d *definition) {
	into := &sink[*profile]{
		decode: decodeProfile, log: r.logOf(sourceProfiles), listed: func() {},
		seen: seen{r.store, policykind.KindProfile},
	}
	k := r.begin(d, newFeed(sourceProfiles, r.clients.allPolicies(d.resource), untyped(d), into), nil)
	into.target = profiles{r, k}
	// Its target takes the lock of the registry, under which feeds are closed:
	// profiles leaves out what comes late by itself.
	k.close = func() {}
	r.start(k.feed)
}

func (r *registry) startConstraints(d *definition) {
	into := &sink[*demand]{
		decode: d.constraints.decode, log: r.logOf(d.constraints.resource), listed: func() {},
		seen: seen{r.store, d.constraints.kind},
	}
	k := r.begin(d, newFeed(d.constraints.resource, r.clients.allPolicies(d.resource), untyped(d), into), nil)
	into.target = constraints{r, k}
	k.close = func() {} // as that of profiles
	r.start(k.feed)
}

func untyped(d *definition) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(d.resource.GroupVersion().WithKind(d.of.Kind))
	return out
}

func (r *registry) begin(d *definition, f *feed, was *kind) *kind {
	k := &kind{definition: d, feed: f}
	if was != nil {
		k.kept = was.listed || was.kept
		f.contact.succeed(was.contact)
	}
	f.refused = func(err error) { r.refused(k, err) }
	r.reading[d.name] = k
	return k
}

func (r *registry) gatewayListed(k *kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[k.name] == k {
		r.listed(k)
		r.store.Listed(k.gateway.resource)
	}
}

func (r *registry) policiesListed(k *kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[k.name] != k {
		return // it was replaced meanwhile
	}
	wasForbidden := k.forbidden != nil
	r.listed(k)
	r.settle()
	if wasForbidden {
		r.notify()
	}
}

func (r *registry) listed(k *kind) {
	k.listed, k.forbidden, k.broken = true, nil, nil
	delete(r.problems, k.name)
}

// refused books a list that is forbidden.
func (r *registry) refused(k *kind, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reading[k.name] != k || k.forbidden != nil {
		return
	}
	k.forbidden = err
	r.problem(k.name, fmt.Errorf("%w; grant get, list and watch on %s", err, k.name))
	if k.policy != nil && k.outOfReach() {
		r.store.SetUnlisted(k.policy.Ref())
	}
	r.settle()
	r.notify()
}

// giveUp has nobody wait for policy kinds that the API server does not give out,
// as those whose conversion webhook is gone: a server that starts judges all
// others.
func (r *registry) giveUp(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.reading {
		if k.policy == nil || k.listed || k.forbidden != nil || k.broken != nil {
			continue
		}
		if err := k.contact.hopeless(now); err != nil {
			k.broken = err
			r.problem(k.name, fmt.Errorf("%w; its writes are not judged until it can be listed", err))
		}
	}
	r.settle()
}

// givenUp tells which policy kinds nobody waits for any more, and why.
func (r *registry) givenUp() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for name, k := range r.reading {
		if k.broken != nil {
			out = append(out, Problem{name, r.problems[name]}.String())
		}
	}
	slices.Sort(out)
	return out
}
