package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// ruleLosses are the rules of other policies that paths lose by the write (SEMANTICS
// section 8, RulesLost).
type ruleLosses struct {
	*successors

	blast *blastRadius
	tally[ruleLossKey, ruleLoss]

	prev []*ruleLoss // of the previous pair
	// moved names the rules that requests lose which move to another route, rule or listener.
	moved []string
	// followed are the pairs of paths whose rules were compared since one of them begins or
	// ends.
	followed map[followedPair]bool
}

// lossWay is how a policy loses a rule.
type lossWay int

const (
	lossDetached  lossWay = iota // the policy is not on the path any more
	lossCondition                // a condition of it is not met any more
	lossIgnored                  // it has no effect on the path
	lossUnset                    // another policy unsets it
	lossReplaced                 // another policy sets it
	lossAtomic                   // its rules are atomic, and others are in force
	lossWhole                    // the closest policy replaces those above it
)

// ruleLossKey is what the losses of a policy on several paths have in common.
type ruleLossKey struct {
	kind     *policykind.Kind
	from, by *merge.Policy // by is nil where no policy takes the rule
	way      lossWay
	route    api.Ref // that serves the requests after the write, if another one did before
	moved    bool    // requests move there from a path that may keep its rules
	unsure   string  // why only some implementations may move them, "" if all do
	gone     string  // names of the rules that nothing follows
	replaced string  // and of those that others follow
}

// ruleLoss is a loss on a number of paths; the first stands for all.
type ruleLoss struct {
	ruleLossKey

	rules      []lostRule
	on         effective.Pair
	paths      int
	objects    set[api.Ref]
	namespaces set[string]
	request    *gateway.Request // that moves, and loses the rules
	unread     string           // why the policy is not read any more, if that is the cause
	left       bool             // the route leaves the listener that has them
}

func (l *ruleLoss) addPath(p *effective.Pair) {
	l.paths++
	l.namespaces.add(p.Before.Path.Namespace())
	l.objects.add(objectOf(p.Before))
}

// add adds what other policies lose on a path, and reports whether that is any. again
// is set if the pair has the same effective policies as the previous one.
func (ev *ruleLosses) add(p effective.Pair, lost []lostRule, again bool) bool {
	if !again {
		ev.prev = ev.prev[:0]
		for _, l := range ev.groupLostRules(p, lost) {
			if known := ev.at(l.ruleLossKey, l); known != nil {
				ev.prev = append(ev.prev, known)
			}
		}
	}
	for _, l := range ev.prev {
		l.addPath(&p)
	}
	return len(ev.prev) > 0
}

// addMoved adds what requests lose that move between two paths; of has what else is known of
// the move.
func (ev *ruleLosses) addMoved(p effective.Pair, lost []lostRule, of ruleLoss) {
	for _, l := range ev.groupLostRules(p, lost) {
		l.moved, l.unsure, l.left, l.request = of.moved, of.unsure, of.left, of.request
		if known := ev.at(l.ruleLossKey, l); known != nil {
			known.addPath(&p)
		}
	}
}

// groupLostRules groups the rules that a path loses by their policy and by how it loses
// them, without those that the writer edits, and those that are reported as Overridden.
func (ev *ruleLosses) groupLostRules(p effective.Pair, lost []lostRule) []ruleLoss {
	if ev.change.End != nil && !losesValues(p) {
		return nil // one write gives back what another one takes
	}
	var out []ruleLoss
	for _, r := range lost {
		if ev.change.After != nil && p.Before.Ref(r.from) == ev.change.Object().Ref() {
			continue // the writer says so
		}
		key, said := wayOf(p, &r)
		if said {
			continue
		}
		i := slices.IndexFunc(out, func(l ruleLoss) bool { return l.ruleLossKey == key })
		if i < 0 {
			i, out = len(out), append(out, ruleLoss{ruleLossKey: key, on: p})
		}
		out[i].rules = append(out[i].rules, r)
	}
	for i := range out {
		sortByProtection(out[i].rules)
		out[i].nameRules()
	}
	return out
}

// wayOf returns how a policy loses a rule on a path. said is set if that is no loss to be
// told here: an override takes it, or it is of an override that lower policies comply with
// now.
func wayOf(p effective.Pair, r *lostRule) (key ruleLossKey, said bool) {
	key = ruleLossKey{kind: p.Before.Kind, from: r.from}
	i := outcomeOf(p.After, r.from)
	if was, is := p.Before.Path.Route, p.After.Path.Route; was != nil && was.Ref() != is.Ref() {
		key.route = is.Ref()
	}
	if i < 0 {
		return key, false
	}
	l := p.After.Outcomes[i].LostAt(r.key)
	if l == nil && !slices.ContainsFunc(p.After.Outcomes[i].Blocks(), func(b merge.Rules) bool { return b.At(r.key) != nil }) {
		key.way = lossIgnored
		return key, r.block == merge.Overrides
	}
	if l == nil {
		key.way = lossCondition
		return key, r.block == merge.Overrides && !r.gone
	}
	switch {
	case isOverridden(p.After, i, *l):
		return key, true
	case l.To.Block == merge.Unset:
		key.way = lossUnset
	case l.Whole && p.After.Kind.LowerDecidesStrategy():
		key.way = lossWhole
	case l.Whole:
		key.way = lossAtomic
	default:
		key.way = lossReplaced
	}
	if key.by = l.To.Policy; l.InForce != nil && key.way != lossWhole {
		key.by = l.InForce
	}
	return key, false
}

// nameRules sets the texts that name the rules.
func (l *ruleLoss) nameRules() {
	text := func(gone bool) string {
		var names []string
		for _, r := range eachName(l.rules, gone) {
			names = append(names, r.name)
		}
		return api.NamesText(names)
	}
	l.gone, l.replaced = text(true), text(false)
}

// rank orders losses: those of rules that protect first, and of those gone before
// replaced.
func (l *ruleLoss) rank() int {
	protects := slices.ContainsFunc(l.rules, func(r lostRule) bool { return r.protects })
	return 2*btoi(!protects) + btoi(l.gone == "")
}

// reportAll reports what other policies lose, unless a finding about an override says
// so already, or, of what is unsure, another loss.
func (ev *ruleLosses) reportAll() {
	said, sure := make(map[policyRule]bool), make(map[policyRule]bool)
	for _, f := range ev.findings {
		if slices.Contains(overrideReasons, f.Code) {
			said[policyRule{f.Policy, f.Rule}] = true
		}
	}
	for _, l := range ev.entries {
		for _, r := range l.rules {
			at := policyRule{l.on.Before.Ref(l.from), r.key.String()}
			sure[at] = sure[at] || l.unsure == ""
		}
	}
	for key, l := range ev.entries {
		policy := l.on.Before.Ref(l.from)
		l.rules = slices.DeleteFunc(l.rules, func(r lostRule) bool {
			at := policyRule{policy, r.key.String()}
			return said[at] || sure[at] && l.unsure != ""
		})
		if l.nameRules(); len(l.rules) == 0 {
			delete(ev.entries, key)
		}
	}
	losses := ev.sorted(compareLosses)
	for _, l := range losses {
		for _, r := range eachName(l.rules, true) {
			if (l.moved || l.left) && !slices.Contains(ev.moved, r.name) {
				ev.moved = append(ev.moved, r.name)
			}
		}
	}
	for _, l := range losses[:min(len(losses), maxRuleLossesReported)] {
		kind := l.kind
		if l.unsure != "" {
			kind = nil // a warning, whatever its action
		}
		ev.reportForKind(kind, api.ReasonRulesLost, api.Warn, ev.lossFinding(l))
		if !l.moved && !l.left {
			ev.blast.reported(l.kind.Ref(), l.paths)
		}
	}
	if rest := len(losses) - maxRuleLossesReported; rest > 0 {
		than := ""
		if ev.more {
			than = "more than "
		}
		ev.warn(api.ReasonRulesLost, Finding{rank: len(losses)}, "%s%d more policies also lose rules", than, rest)
	}
}

// overrideReasons are the reasons about overrides that no longer hold.
var overrideReasons = []api.ReasonCode{api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened}

func compareLosses(a, b *ruleLoss) int {
	return cmp.Or(
		cmp.Compare(a.rank(), b.rank()),
		cmp.Compare(b.paths, a.paths),
		api.CompareRefs(a.on.Before.Ref(a.from), b.on.Before.Ref(b.from)),
		strings.Compare(a.gone, b.gone),
		strings.Compare(a.replaced, b.replaced),
		cmp.Compare(a.way, b.way),
		strings.Compare(nameOf(a.by), nameOf(b.by)),
		api.CompareRefs(a.route, b.route),
		cmp.Compare(btoi(a.moved), btoi(b.moved)),
		strings.Compare(a.unsure, b.unsure),
	)
}

// lossFinding says what is lost, whose it was, where, why, and what keeps it.
func (ev *ruleLosses) lossFinding(l *ruleLoss) Finding {
	policy := l.on.Before.Ref(l.from)
	f := Finding{Policy: policy, rank: l.rank()}
	if len(l.rules) == 1 {
		f.Rule = l.rules[0].key.String()
	}
	subject, lose := l.subject()
	by, on := l.holder(), l.onPaths()
	switch {
	case l.gone == "" && l.moved:
		f.Short = fmt.Sprintf("%s replaces %s of %s for %s", by, l.replaced, policy, subject)
	case l.gone == "":
		f.Short = fmt.Sprintf("%s replaces %s of %s%s of %s", by, l.replaced, policy, on, subject)
	case l.replaced != "":
		f.Short = fmt.Sprintf("%s %s %s of %s%s, and %s replaces its %s", subject, lose, l.gone, policy, on, by, l.replaced)
	default:
		f.Short = fmt.Sprintf("%s %s %s of %s%s", subject, lose, l.gone, policy, on)
	}
	if l.moved {
		_, f.ServedBy = l.movedFromTo(endText)
		f.Request = l.request.String()
	}
	var why string
	why, f.Advice = ev.lossText(l)
	f.unread = l.unread
	since := ": "
	if l.gone == "" {
		f.Short += ev.entriesText(l)
		if since = ", since "; why == "" {
			since = ""
		}
	}
	f.What = f.Short + since + why
	unsure := ""
	if l.unsure != "" {
		f.What += "; this is unsure: " + l.unsure
		unsure = "; unsure: " + l.unsure
	}
	why, _, _ = strings.Cut(why, ": ") // without the details
	f.Short = shortText(f.Short+since+why+unsure, f.Short+unsure)
	return f
}

// onPaths says on how many paths rules are lost; "" where requests lose them.
func (l *ruleLoss) onPaths() string {
	if l.moved || l.left {
		return ""
	}
	on := " on " + api.Plural(l.paths, "path")
	if n := l.namespaces.count(); n > 1 {
		on += " in " + api.Plural(n, "namespace")
	}
	return on
}

// subject names the objects that lose rules, with the verb for them.
func (l *ruleLoss) subject() (objects, lose string) {
	if l.moved {
		return l.movedText(), "lose"
	}
	if n := l.objects.count(); n > 1 {
		return objectsText(l.on.Before, n), "lose"
	}
	if r := l.on.Before.Path.Route; r == nil || l.paths == 1 && len(r.Rules) > 1 {
		if r != nil && l.route == (api.Ref{}) {
			return endText(l.on.After), "loses" // by the name that it has then
		}
		return endText(l.on.Before), "loses"
	}
	return objectOf(l.on.Before).String(), "loses"
}

// movedText names the requests that move, by the routes, rules or listeners that serve them.
func (l *ruleLoss) movedText() string {
	from, to := l.movedFromTo(func(e *effective.Effective) string { return objectOf(e).String() })
	return fmt.Sprintf("requests that move from %s%s to %s", from, api.More(" and ", l.objects.count()-1, ""), to)
}

// movedFromTo names what serves requests before and after they move, in the way given if that
// tells one from the other.
func (l *ruleLoss) movedFromTo(name func(*effective.Effective) string) (from, to string) {
	if isAwaited(l.on.After) {
		return name(l.on.Before), servingText(l.on.After)
	}
	for _, name := range []func(*effective.Effective) string{name, endText, entryText} {
		if from, to = name(l.on.Before), name(l.on.After); from != to {
			break
		}
	}
	return from, to
}
