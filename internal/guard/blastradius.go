package guard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// blastRadius is how far the write reaches.
type blastRadius struct {
	paths      pathCounter // that change
	namespaces nameSet     // of these
	kinds      map[api.PolicyKind]*kindImpact
	last       *kindImpact
}

// kindImpact is what a write changes in the effective policies of one kind.
type kindImpact struct {
	kind       *policykind.Kind
	limit      int // of paths, 0 for none
	paths      pathCounter
	namespaces nameSet
	// lost counts the paths that lose all rules of a group, by group.
	lost map[string]int
	// digests of the paths' changes, kept where there is a limit.
	digests []string
}

// impactOf returns the impact on a kind. Its limit is the one given, or that of the
// kind before the write: a profile does not raise its own.
func (radius *blastRadius) impactOf(p effective.Pair, limit int) *kindImpact {
	k := p.Effective().Kind
	if p.Before != nil {
		k = p.Before.Kind
	}
	if radius.last != nil && radius.last.kind == k {
		return radius.last
	}
	b := radius.kinds[k.Ref()]
	if b == nil {
		if radius.kinds == nil {
			radius.kinds = make(map[api.PolicyKind]*kindImpact)
		}
		b = &kindImpact{kind: k, limit: limit, lost: make(map[string]int)}
		if k.BlastRadius != nil {
			b.limit = int(*k.BlastRadius)
		}
		radius.kinds[k.Ref()] = b
	}
	radius.last = b
	return b
}

func (k *kindImpact) add(p effective.Pair, lostGroups []string, object api.Ref) {
	k.paths.add(&p, true)
	k.namespaces.add(p.Effective().Path.Namespace())
	for _, g := range lostGroups {
		k.lost[g]++
	}
	if k.limit > 0 {
		k.digests = append(k.digests, digest(p, object))
	}
}

// LostGroups returns the groups of rules that are in force on a path before the write and
// not after it: for rules.a.* and the like a, for a rule of its own the rule itself. A
// path that is removed loses none.
func LostGroups(p effective.Pair) []string {
	if p.Before == nil || p.After == nil {
		return nil
	}
	var out []string
	var left map[string]bool // groups with a rule in force, made when one is lost
	for i := range p.Before.Rules {
		r := &p.Before.Rules[i]
		if now := p.After.At(r.Key); r.Value == nil || now != nil && now.Value != nil {
			continue
		}
		if left == nil {
			left = make(map[string]bool)
			for _, o := range p.After.Rules {
				left[ruleGroup(o.Key)] = left[ruleGroup(o.Key)] || o.Value != nil
			}
		}
		if g := ruleGroup(r.Key); !left[g] {
			left[g] = true // it counts once
			out = append(out, g)
		}
	}
	return out
}

func ruleGroup(k merge.Key) string {
	segments := k.Segments()
	return segments[max(len(segments)-2, 0)]
}

// digest returns a hash of what changes on a path. It leaves out the name of the object
// that is written, which may be generated, and values of other objects: the writer could
// find out a short one by trying.
func digest(p effective.Pair, object api.Ref) string {
	e := p.Effective()
	path, rules := e.Path.Elements(), p.Rules()
	for i := range path {
		if path[i].Namespace == object.Namespace && path[i].Name == object.Name && strings.HasPrefix(path[i].Kind, object.Kind) {
			path[i].Name = ""
		}
	}
	for i := range rules {
		for _, v := range []*api.RuleValue{rules[i].Before, rules[i].After} {
			switch {
			case v == nil:
			case v.From == object:
				v.From.Name = ""
			default:
				v.Value = nil
			}
		}
	}
	data, err := json.Marshal(struct {
		Kind  api.PolicyKind
		Path  []api.PathElement
		Rules []api.RuleChange
	}{e.Kind.Ref(), path, rules})
	if err != nil { // decoded JSON encodes
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// reportBlastRadius reports how many paths the write changes, and denies it where they are
// more than the limit and not acknowledged.
func (ev *evaluation) reportBlastRadius() {
	if !reportsBlastRadius(ev.change.Object()) && !ev.changesOtherNamespaces() {
		return
	}
	hash := ev.changeHash()
	kinds := slices.SortedFunc(maps.Keys(ev.blast.kinds), api.ComparePolicyKinds)
	for _, k := range kinds {
		b := ev.blast.kinds[k]
		f := Finding{What: fmt.Sprintf("%s: effective policy of %s changes on %s in %s%s",
			objectText(ev.change), k.Kind, plural(b.paths.count(), "path"), plural(b.namespaces.count(), "namespace"), LostText(b.lost))}
		f.Short = fmt.Sprintf("effective policy of %s changes on %s in %s%s",
			k.Kind, plural(b.paths.count(), "path"), plural(b.namespaces.count(), "namespace"), LostText(b.lost))
		if b.limit == 0 || b.paths.count() <= b.limit || !ev.changesOtherNamespaces() || ev.change.Acknowledged == hash {
			ev.reportForKind(b.kind, api.ReasonBlastRadius, api.Warn, f)
			continue
		}
		f.What += fmt.Sprintf(", more than the %d allowed without acknowledgement", b.limit)
		if ev.change.Acknowledged != "" {
			f.What += fmt.Sprintf("; acknowledgement %s does not match this change", ev.change.Acknowledged)
		}
		f.Advice = ev.acknowledgeAdvice(hash)
		f.Code, f.Action = api.ReasonBlastRadius, api.Deny
		ev.findings.add(f)
	}
}

// LostText names the groups of rules (LostGroups) that paths lose, with the number of
// paths, in parentheses after a space; "" for none.
func LostText(lost map[string]int) string {
	names := slices.SortedFunc(maps.Keys(lost), func(x, y string) int {
		return cmp.Or(cmp.Compare(lost[y], lost[x]), strings.Compare(x, y))
	})
	const most = 3
	var parts []string
	for i, name := range names {
		if i == most {
			parts = append(parts, "…")
			break
		}
		verb := "lose"
		if lost[name] == 1 {
			verb = "loses"
		}
		parts = append(parts, fmt.Sprintf("%d %s %s", lost[name], verb, name))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// changesOtherNamespaces reports whether a path of another namespace than the object's
// changes.
func (ev *evaluation) changesOtherNamespaces() bool {
	ref := ev.change.Object().Ref()
	own := ref.Namespace
	if ref.PolicyKind() == (api.PolicyKind{Kind: gateway.KindNamespace}) {
		own = ref.Name
	}
	for n := range ev.blast.namespaces.all {
		if n != own {
			return true
		}
	}
	return false
}

// changeHash returns a hash of the change to effective policies, "" if none of its kinds
// has a limit. It depends on nothing but that change.
func (ev *evaluation) changeHash() string {
	var digests []string
	for _, b := range ev.blast.kinds {
		digests = append(digests, b.digests...)
	}
	if len(digests) == 0 {
		return ""
	}
	slices.Sort(digests)
	object := ev.change.Object().Ref()
	object.Name = "" // it may be yet to be generated
	h := sha256.New()
	fmt.Fprintln(h, ev.change.Operation, object)
	for _, d := range digests {
		fmt.Fprintln(h, d)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// acknowledgeAdvice says how to acknowledge the write.
func (ev *evaluation) acknowledgeAdvice(hash string) string {
	look := "review them with kubectl overrule diff, then "
	if ev.change.Operation != Delete {
		return look + fmt.Sprintf("set the annotation %s: %s in the same write", api.AnnotationAcknowledge, hash)
	}
	ref := ev.change.Object().Ref()
	namespace := ""
	if ref.Namespace != "" {
		namespace = " -n " + ref.Namespace
	}
	return look + fmt.Sprintf("delete it after kubectl annotate --overwrite %s %s%s %s=%s",
		strings.ToLower(ref.PolicyKind().String()), ref.Name, namespace, api.AnnotationAcknowledge, hash)
}
