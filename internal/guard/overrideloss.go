package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard/limits"
	"overrule.dev/overrule/merge"
)

// overrideLossKey identifies a loss of an override, on any path.
type overrideLossKey struct {
	kind            api.PolicyKind
	policy          *merge.Policy
	rule            string
	code            api.ReasonCode
	substituteNames string // their names
	unboundReason   string // why it is no longer bound, "" where it is lost otherwise
	lessProtected   string // in what respects it is less protected, "" where it is lost
	unsure          string // why its requests may not go there, "" if they do
	neighbor        bool   // it is of another namespace's route, whose requests the written one takes
}

// overrideLoss is an override that is lost on a number of paths; the first path stands for
// all.
type overrideLoss struct {
	overrideLossKey
	was, is     *effective.Effective
	request     *gateway.Request // that is no longer subject to it, nil where none is known
	substitutes []*merge.Policy
	paths       []int32 // each once, by the number of its pair
	permitted   bool    // the writer is allowed to remove it
	version     string  // by which the policies would have to be written, "" for none
}

// addPath adds a path, by the number of its pair.
func (t *overrideLoss) addPath(pair int32) {
	if n := len(t.paths); n == 0 || t.paths[n-1] != pair {
		t.paths = append(t.paths, pair)
	}
}

func (t *overrideLoss) ref(p *merge.Policy) api.Ref {
	return api.Ref{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// addLost adds the loss of an override that applied on a path and is not given on the one
// that takes its traffic. It returns where it was added.
func (ev *evaluation) addLost(o effective.Override, was *effective.Effective, s successor) *overrideLoss {
	is := s.Effective
	substitutes := ev.remaining(o, was, is, is.Substitutes(o))
	l := overrideLossKey{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: ev.lossReason(was, o), unsure: s.by.unsure, neighbor: ev.ofNeighbor(o, was)}
	for _, p := range substitutes {
		l.substituteNames += was.Ref(p).Key() + " "
	}
	return ev.overrides.addLoss(overrideLoss{overrideLossKey: l, was: was, is: is, request: s.by.request, substitutes: substitutes})
}

// addLessProtected adds an override that is given on a path as before, and is less
// protected after the write: a user who is not allowed to remove it must not prepare that
// either.
func (ev *evaluation) addLessProtected(o effective.Override, was *effective.Effective, how string) *overrideLoss {
	l := overrideLossKey{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideRemoved, lessProtected: how}
	return ev.overrides.addLoss(overrideLoss{overrideLossKey: l, was: was})
}

// addLoss adds the path of a loss, and returns where it was added.
func (os *overrides) addLoss(loss overrideLoss) *overrideLoss {
	if os.lost == nil {
		os.lost = make(map[overrideLossKey]*overrideLoss)
	}
	t := os.lost[loss.overrideLossKey]
	if t == nil {
		t = &loss
		os.lost[loss.overrideLossKey] = t
	}
	t.addPath(os.pairs)
	return t
}

// addUnbound adds the loss of an override that is given on a path, and no longer bound to
// its rule.
func (ev *evaluation) addUnbound(o effective.Override, was *effective.Effective, s successor, why string) {
	l := overrideLossKey{kind: was.Kind.Ref(), policy: o.Policy, rule: o.Key.String(), code: api.ReasonOverrideEvaded, unboundReason: why, unsure: s.by.unsure, neighbor: ev.ofNeighbor(o, was)}
	if !ev.indirect && ev.old != nil && ev.old.Ref() == was.Ref(o.Policy) {
		l.code = api.ReasonOverrideRemoved
	}
	ev.overrides.addLoss(overrideLoss{overrideLossKey: l, was: was, is: s.Effective, request: s.by.request})
}

// ofNeighbor reports whether an override is attached to a route of another namespace than
// the route that is written, or below it. It does not bind this write: a team must not be
// able to freeze its neighbors (SEMANTICS section 9).
func (ev *evaluation) ofNeighbor(o effective.Override, was *effective.Effective) bool {
	written, ok := ev.change.Object().(*gateway.Route)
	return ok && o.Level >= gateway.LevelRouteNamespace && was.Path.Route != nil && was.Path.Route.Namespace != written.Namespace
}

// lossReason returns OverrideRemoved if an override's own policy gives it up, and
// OverrideEvaded if it is lost because something else is changed, its policy's target
// included. It is the same on every path.
func (ev *evaluation) lossReason(was *effective.Effective, o effective.Override) api.ReasonCode {
	code, known := ev.overrides.reasons[o.Rule]
	if !known {
		if ev.overrides.reasons == nil {
			ev.overrides.reasons = make(map[*merge.Rule]api.ReasonCode)
		}
		code = ev.findLossReason(was, o)
		ev.overrides.reasons[o.Rule] = code
	}
	return code
}

// findLossReason is lossReason without its memo.
func (ev *evaluation) findLossReason(was *effective.Effective, o effective.Override) api.ReasonCode {
	switch {
	case ev.indirect:
		return api.ReasonOverrideEvaded
	case ev.old == nil || ev.old.Ref() != was.Ref(o.Policy):
		return api.ReasonOverrideEvaded
	case ev.policy != nil && ev.policy.Invalid == nil && givesOverride(&ev.policy.Policy, o):
		return api.ReasonOverrideEvaded
	default:
		return api.ReasonOverrideRemoved
	}
}

// givesOverride reports whether a policy has a rule as an override of it has it, wherever
// it is attached. How a bare block is read does not depend on the policy where its
// override is one.
func givesOverride(p *merge.Policy, o effective.Override) bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		when := ""
		if b.When != nil {
			when = b.When.String()
		}
		bare := b.Block == merge.Bare && o.Block == merge.Bare
		r := b.At(o.Key)
		return (bare || b.Block == merge.Overrides && (b.Strategy == merge.Atomic || !o.Atomic)) && (when == "" || when == o.When) &&
			r != nil && r.EmptyMap == o.EmptyMap && merge.Equal(r.Value, o.Value)
	})
}

// reportLostOverrides turns the overrides that would no longer apply into findings:
// warnings for writers who are allowed to remove them, denials for all others.
func (ev *evaluation) reportLostOverrides(may *authorizer) error {
	findings := make(map[overrideLossKey]*overrideLoss)
	for _, t := range ev.overrides.sortedLosses() {
		mine, err := may.mayOverride(t.ref(t.policy))
		if err != nil {
			return err
		}
		covered := false
		if !mine {
			if covered, err = may.hasSubstitute(t); err != nil {
				return err
			}
		}
		if covered {
			continue
		}
		t.permitted, t.substituteNames = mine, ""
		if first := findings[t.overrideLossKey]; first != nil {
			first.paths = slices.Compact(slices.Sorted(slices.Values(slices.Concat(first.paths, t.paths))))
			continue
		}
		findings[t.overrideLossKey] = t
	}
	for _, t := range findings {
		ev.reportLostOverride(t)
	}
	return ev.reportWeakenings(may)
}

// sortedLosses returns the losses by policy, rule and reason.
func (os *overrides) sortedLosses() []*overrideLoss {
	out := make([]*overrideLoss, 0, len(os.lost))
	for _, t := range os.lost {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *overrideLoss) int {
		return cmp.Or(
			api.CompareRefs(a.ref(a.policy), b.ref(b.policy)),
			strings.Compare(a.rule, b.rule),
			strings.Compare(string(a.code), string(b.code)),
			strings.Compare(a.substituteNames, b.substituteNames),
			strings.Compare(a.unboundReason, b.unboundReason),
			strings.Compare(a.lessProtected, b.lessProtected),
			strings.Compare(a.unsure, b.unsure),
		)
	})
	return out
}

func (ev *evaluation) reportLostOverride(t *overrideLoss) {
	policy := t.ref(t.policy)
	f := Finding{Rule: t.rule, Policy: &policy}
	on := fmt.Sprintf("on %s", plural(len(t.paths), "path"))
	if len(t.paths) == 1 {
		on = "on " + endText(t.was)
	}
	f.Short = fmt.Sprintf("override %s of %s would no longer apply %s", t.rule, policy, on)
	switch {
	case t.lessProtected != "":
		f.What = fmt.Sprintf("override %s of %s, which applies %s, would be less protected: %s", t.rule, policy, on, t.lessProtected)
		f.Short = fmt.Sprintf("override %s of %s would be less protected %s", t.rule, policy, on)
	case t.code == api.ReasonOverrideRemoved && t.unboundReason == "":
		f.What = f.Short
	default:
		f.What = fmt.Sprintf("%s would no longer be subject to override %s of %s, which applies %s: %s", affectedText(t), t.rule, policy, on, ev.lossCause(t))
	}
	if t.request != nil && t.is.Path.ID() != t.was.Path.ID() {
		f.Request, f.ServedBy = t.request.String(), endText(t.is)
	}
	action := api.Deny
	switch {
	case t.permitted:
		action = api.Warn
		f.Advice = permittedAdvice
	case t.unsure != "":
		action = api.Warn
		f.Advice = fmt.Sprintf("this is a warning because it is unsure: %s", t.unsure)
	case t.neighbor:
		action = api.Warn
		f.Advice = fmt.Sprintf("the override is of another namespace and does not bind this write; ask the owner of %s", policy.Key())
	default:
		f.Advice = fmt.Sprintf("ask the owner of %s, or check whether you are allowed to: %s", policy.Key(), ev.checkCommand(policy))
	}
	ev.reportForKind(t.was.Kind, t.code, action, f)
}

// affectedText names what is no longer subject to an override.
func affectedText(t *overrideLoss) string {
	if len(t.paths) > 1 {
		return plural(len(t.paths), "path")
	}
	if t.was.Path.Route != nil {
		return t.was.Path.Route.Ref().String()
	}
	return endText(t.was)
}

// lossCause says why an override would no longer apply.
func (ev *evaluation) lossCause(t *overrideLoss) string {
	object := ev.change.Object().Ref()
	switch {
	case t.unboundReason == limits.Unmatched && t.is.Path.Rule != t.was.Path.Rule:
		return fmt.Sprintf("%s %s, which may receive its requests", limits.Unmatched, endText(t.is))
	case t.unboundReason == limits.Unmatched || t.unboundReason == limits.HostnamesUnmatched || t.unboundReason == limits.RuleRemoved:
		return t.unboundReason + " " + endText(t.is)
	case t.unboundReason != "":
		return t.unboundReason
	case t.version != "":
		return fmt.Sprintf("it is dropped when written in version %s, which %s adds or changes", t.version, object)
	case ev.change.Owner != "":
		return fmt.Sprintf("%s would be deleted with %s, its new owner", object, ev.change.Owner)
	case ev.change.After == nil:
		return fmt.Sprintf("it depends on %s", object)
	case viaUnreadParent(t.is.Path):
		return ev.unreadParentsText(t.is)
	case t.is.Path.Route == nil && t.is.Path.Set != nil && t.is.Path.Gateway.Ref() != t.was.Path.Gateway.Ref():
		return fmt.Sprintf("it does not apply on %s", t.is.Path.Gateway.Ref()) // the listener is the same
	case !sameListener(t.is.Path, t.was.Path):
		return fmt.Sprintf("it does not apply on %s", entryText(t.is))
	case t.is.Path.Rule != t.was.Path.Rule || t.is.Path.ID().Backend != t.was.Path.ID().Backend:
		return fmt.Sprintf("it does not apply on %s", endText(t.is))
	default:
		return "it does not apply after this write"
	}
}
