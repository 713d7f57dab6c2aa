package guard

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/dump"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// blastRadius is how far the write reaches.
type blastRadius struct {
	*write

	paths      pathCounter // that change
	unreached  pathCounter // of these, those that no request reaches
	namespaces set[string] // of these
	kinds      map[api.PolicyKind]*kindImpact
	last       *kindImpact
	gained     gainedRules
	owner      *blastRadius // of the deletion with a new owner, nil for none
}

// kindImpact is what a write changes in the effective policies of one kind.
type kindImpact struct {
	kind       *policykind.Kind
	limit      int // of paths, 0 for none
	paths      pathCounter
	namespaces set[string]
	// lost counts the paths that lose all rules of a group.
	lost api.LostCounts
	// reportedPaths is the number of paths of the finding about lost rules or overrides with
	// the most of them.
	reportedPaths int
	// covered are the paths about which there is no more to say: they lose rules, are of a route
	// that is created, or to a backend that it adds or drops, or no request reaches them.
	covered pathCounter
}

// impactOf returns the impact on a kind. Its limit is the one given, or that of the
// kind before the write: a profile does not raise its own.
func (ev *blastRadius) impactOf(p effective.Pair, limit int) *kindImpact {
	k := p.Effective().Kind
	if p.Before != nil {
		k = p.Before.Kind
	}
	if ev.last != nil && ev.last.kind == k {
		return ev.last
	}
	b := ev.kinds[k.Ref()]
	if b == nil {
		b = &kindImpact{kind: k, limit: limit, lost: make(api.LostCounts)}
		if k.BlastRadius != nil {
			b.limit = int(*k.BlastRadius)
		}
		put(&ev.kinds, k.Ref(), b)
	}
	ev.last = b
	return b
}

func (k *kindImpact) add(p effective.Pair, lost []lostRule) {
	k.paths.add(&p, true)
	k.namespaces.add(p.Effective().Path.Namespace())
	for _, l := range goneRules(lost) {
		k.lost.Add(api.LostRules{Rules: l.name, Paths: 1, Protects: l.protects})
	}
}

// reportAll reports how many paths the write changes, and denies it where they are
// more than the limit and not acknowledged. So is a new owner with which the object would be
// deleted where that deletion needs an acknowledgement: nothing asks for it then.
func (ev *blastRadius) reportAll() {
	if ev.owner != nil {
		for _, b := range ev.owner.kinds {
			ev.deny(b, b.text(ev.ownerCause()+", which would change"), false)
		}
	}
	ev.reportGained()
	for _, b := range ev.kinds {
		repeats := b.paths.count() == ev.paths.count() && b.namespaces.count() == ev.namespaces.count()
		what := b.text(objectText(ev.change) + " changes")
		if ev.deny(b, what, repeats) || !b.namespaces.hasOther(ev.ownNamespace()) ||
			!b.exceeds() && max(b.reportedPaths, b.covered.count()) >= b.paths.count() {
			continue
		}
		if b.reportedPaths == 0 {
			what += api.LostText(b.lost.Sorted())
		}
		ev.reportForKind(b.kind, api.ReasonBlastRadius, api.Warn, Finding{What: what, Short: what, Repeats: repeats})
	}
}

// deny denies the write for want of an acknowledgement, and reports whether it did.
func (ev *blastRadius) deny(b *kindImpact, what string, repeats bool) bool {
	if !b.exceeds() || !b.namespaces.hasOther(ev.ownNamespace()) {
		return false
	}
	a := ev.acknowledgement()
	if b.paths.count() <= a.allowed {
		return false
	}
	f := Finding{Short: what + api.LostText(b.lost.Sorted()), Advice: ev.acknowledgeAdvice(a.wanted), Repeats: repeats}
	f.What = fmt.Sprintf("%s, more than the %d allowed without acknowledgement%s", f.Short, b.limit, a.why)
	ev.reportForKind(nil, api.ReasonBlastRadius, api.Deny, f)
	return true
}

// limitedPaths returns the most paths of a kind with a limit.
func (ev *blastRadius) limitedPaths() int {
	most := 0
	for _, b := range ev.kinds {
		if b.limit > 0 {
			most = max(most, b.paths.count())
		}
	}
	return most
}

// exceeds reports whether there are more paths than the limit.
func (k *kindImpact) exceeds() bool { return k.limit > 0 && k.paths.count() > k.limit }

// text says that something changes effective policies.
func (k *kindImpact) text(changes string) string {
	return fmt.Sprintf("%s the effective %s on %s in %s",
		changes, k.kind.Ref().Kind, api.Plural(k.paths.count(), "path"), api.Plural(k.namespaces.count(), "namespace"))
}

// reported records a finding about rules or an override that a number of paths lose.
func (ev *blastRadius) reported(kind api.PolicyKind, paths int) {
	if k := ev.kinds[kind]; k != nil {
		k.reportedPaths = max(k.reportedPaths, paths)
	}
}

// choosesBackend reports whether a path begins or ends since the route that is written adds
// or drops a backend: its policies stay as they are.
func (ev *blastRadius) choosesBackend(p effective.Pair) bool {
	r, ok := ev.change.After.(*gateway.Route)
	path := &p.Effective().Path
	return ok && path.Backend != nil && (p.Before == nil || p.After == nil) && path.Route.Ref() == r.Ref()
}

// lost returns what paths lose, of all kinds together.
func (ev *blastRadius) lost() []api.LostRules {
	lost := make(api.LostCounts)
	for _, k := range ev.kinds {
		for _, l := range k.lost {
			lost.Add(l)
		}
	}
	return lost.Sorted()
}

// acknowledgeAdvice says how to acknowledge the write.
func (ev *blastRadius) acknowledgeAdvice(value string) string {
	if ev.change.Operation != Delete {
		return fmt.Sprintf("review them with kubectl overrule diff, then set the annotation %s: %s in the same write", api.AnnotationAcknowledge, value)
	}
	ref := ev.change.Object().Ref()
	namespace := ""
	if ref.Namespace != "" {
		namespace = " -n " + ref.Namespace
	}
	return fmt.Sprintf("review them with kubectl overrule diff --delete, then run this and delete it again: kubectl annotate --overwrite %s %s%s %s=%s",
		strings.ToLower(ref.PolicyKind().String()), ref.Name, namespace, api.AnnotationAcknowledge, value)
}

// acknowledgement is what the annotation of a write says, HASH-PATHS. The number is the
// writer's: others may create routes between the denial and the next try.
type acknowledgement struct {
	wanted  string
	allowed int    // paths
	why     string // that may not be enough
}

// acknowledgement returns the acknowledgement of the write, and the one that it needs.
func (ev *blastRadius) acknowledgement() acknowledgement {
	most := ev.limitedPaths()
	if ev.owner != nil {
		most = max(most, ev.owner.limitedPaths())
	}
	hash := ev.change.hash()
	out := acknowledgement{wanted: fmt.Sprintf("%s-%d", hash, most)}
	of, number, _ := strings.Cut(ev.change.Acknowledged, "-")
	switch paths, err := strconv.Atoi(number); {
	case ev.change.Acknowledged == "":
	case err != nil || of != hash:
		out.why = fmt.Sprintf("; acknowledgement %s does not match this change", ev.change.Acknowledged)
	default:
		out.allowed, out.why = paths, fmt.Sprintf("; the acknowledgement is for %s", api.Plural(paths, "path"))
	}
	return out
}

// hash returns a hash of what is written or deleted, of nothing else: no other object can
// make an acknowledgement invalid. The name is left out where it may be generated.
func (c Change) hash() string {
	ref := c.Object().Ref()
	if c.Operation == Create {
		ref.Name = ""
	}
	h := sha256.New()
	fmt.Fprintln(h, c.Operation, ref)
	if c.Owner != "" {
		fmt.Fprintln(h, c.Owner)
	}
	writeContent(h, c.Object())
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// writeContent writes what effective policies may depend on in an object, with the defaults
// of the API server, without its name and age.
func writeContent(w io.Writer, o snapshot.Object) {
	switch o := o.(type) {
	case *policykind.Policy:
		fmt.Fprintln(w, dump.ForHash(o.Targets), o.Unset)
		if o.Rank != 0 || o.BareOverrides != nil {
			fmt.Fprintln(w, o.Rank, dump.ForHash(o.BareOverrides))
		}
		for _, b := range slices.Concat(o.Blocks, slices.Concat(o.Parts...)) {
			fmt.Fprintln(w, b.Block, b.Strategy, b.When)
			for _, r := range b.Rules {
				fmt.Fprint(w, r.Key, " ")
				writeJSON(w, r.Value)
			}
		}
	case *gateway.Route:
		spec, _ := o.Spec().(map[string]any)
		fmt.Fprintln(w, dump.ForHash([]any{o.Labels, o.Annotations, o.Hostnames, o.Parents, spec["rules"]}))
	case *gateway.Gateway:
		content := *o
		content.Name, content.Created = "", 0
		fmt.Fprintln(w, dump.ForHash(content))
	case *gateway.ListenerSet:
		content := *o
		content.Name, content.Created = "", 0
		fmt.Fprintln(w, dump.ForHash(content))
	case *policykind.Profile:
		writeJSON(w, o.Spec)
	case *policykind.Definition:
		writeJSON(w, o.Spec)
	case *gateway.Class, *gateway.Namespace, *gateway.Service, *gateway.Grant:
		fmt.Fprintln(w, dump.ForHash(o))
	}
}

// writeJSON writes the JSON of a value that was decoded from some.
func writeJSON(w io.Writer, value any) {
	data, _ := json.Marshal(value)
	fmt.Fprintf(w, "%s\n", data)
}

// addImpact adds a path to the blast radius of the write, and returns that on its kind.
func (ev *blastRadius) addImpact(p effective.Pair, lost []lostRule) *kindImpact {
	oneKind := ev.writesPolicy() && len(ev.dependent) == 0
	ev.paths.add(&p, oneKind)
	if p.Unreached {
		ev.unreached.add(&p, oneKind)
	}
	ev.namespaces.add(p.Effective().Path.Namespace())
	impact := ev.impactOf(p, ev.guard.BlastRadius)
	impact.add(p, lost)
	return impact
}
