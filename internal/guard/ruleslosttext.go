package guard

import (
	"cmp"
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

// lossText says why a policy loses its rules, and what keeps them.
func (ev *ruleLosses) lossText(l *ruleLoss) (why, advice string) {
	switch {
	case ev.deletedWithOwner:
		return ev.ownerCause(), ""
	case l.by == nil:
		return ev.detachedText(l)
	}
	is := l.on.After
	policy, by := is.Ref(l.from), is.Ref(l.by)
	written := by == ev.change.Object().Ref()
	it := l.them()
	switch l.way {
	case lossUnset:
		return fmt.Sprintf("%s unsets %s", by, it), fmt.Sprintf("remove %s from its unset list to keep %s", it, it)
	case lossWhole:
		return ev.wholeText(l, by, written), l.keepAdvice(it, by, written, policy)
	case lossAtomic:
		if by == policy {
			return "its own overrides take effect instead", ""
		}
		whose := "its rules"
		if l.gone == "" {
			whose = "rules of " + policy.Key()
		}
		to := is.Outcomes[outcomeOf(is, l.from)].LostAt(l.rules[0].key).To // which an override may replace
		return fmt.Sprintf("%s are atomic and give way to those of %s", whose, is.Ref(to.Policy).Key()), l.mergeAdvice(it, policy, by)
	default:
		return l.replacedText(policy, by, written)
	}
}

// them stands for the rules that are lost.
func (l *ruleLoss) them() string {
	if all := l.gone + l.replaced; all == "rules" || strings.Contains(all, " and ") || l.gone != "" && l.replaced != "" {
		return "them"
	}
	return "it"
}

// kept stands for the rules that are lost, also beside those in their place.
func (l *ruleLoss) kept() string {
	if l.gone == "" {
		return fmt.Sprintf("what %s sets", l.on.Before.Ref(l.from).Key())
	}
	return l.them()
}

// replacedText says why a rule of another policy is in force, and what keeps the one before.
func (l *ruleLoss) replacedText(policy, by api.Ref, written bool) (why, advice string) {
	i := outcomeOf(l.on.After, l.from)
	lost := l.on.After.Outcomes[i].LostAt(l.rules[0].key)
	why = causeOf(l.on.After, i, *lost).why()
	is := ruleInPlace(l.on.After, l.rules[0].key, func(*merge.Effective) bool { return true })
	switch {
	case is != nil && is.Group.Disables && l.gone != "":
		why = fmt.Sprintf("%s disables %s", by.Key(), l.them())
	case why == string(bySpecific) && lost.InForce == nil:
		why = fmt.Sprintf("%s on %s takes precedence", by.Key(), l.on.After.Path.Element(l.on.After.Level(l.by)))
	case why != "" && lost.InForce == nil:
		why = by.Key() + " " + why
	case l.gone != "":
		why = by.String() + " takes precedence"
	default:
		why = ""
	}
	it := cmp.Or(l.gone, l.replaced)
	if written {
		return why, fmt.Sprintf("leave %s out to keep what %s sets", it, policy.Key())
	}
	return why, fmt.Sprintf("to keep what %s sets, ask the owner of %s to leave %s out", policy.Key(), by.Key(), it)
}

// wholeText says that a policy replaces the one above it as a whole.
func (ev *ruleLosses) wholeText(l *ruleLoss, by api.Ref, written bool) string {
	is := l.on.After
	if !written {
		return fmt.Sprintf("%s on %s replaces it as a whole", by, is.Path.Element(is.Level(l.by)))
	}
	closer, other := levelText(is, l.by), levelText(is, l.from)
	article := "a"
	if l.by.Empty() {
		article = "an empty"
	} else if strings.ContainsRune("AEIOU", rune(by.Kind[0])) {
		article = "an"
	}
	if closer == other {
		return fmt.Sprintf("%s %s on the same %s replaces it as a whole", article, by.Kind, other)
	}
	return fmt.Sprintf("%s %s on a %s replaces the %s's as a whole", article, by.Kind, closer, other)
}

// levelText names the kind of object on a path that a policy is attached to.
func levelText(e *effective.Effective, p *merge.Policy) string {
	switch kind := e.Path.Element(e.Level(p)).Kind; {
	case strings.HasSuffix(kind, "RouteRule"):
		return "rule"
	case strings.HasSuffix(kind, "Route"):
		return "route"
	case kind == gateway.KindGatewayClass:
		return "gateway class"
	case kind == gateway.KindListenerSet || kind == gateway.KindXListenerSet:
		return "listener set"
	case e.Level(p) == gateway.LevelServicePort || e.Level(p) == gateway.LevelBackendPort:
		return "port"
	default:
		return strings.ToLower(kind)
	}
}

// keepAdvice says how the closer policy keeps the rules of the one that it replaces.
func (l *ruleLoss) keepAdvice(it string, by api.Ref, written bool, policy api.Ref) string {
	if l.gone == "" {
		return sameValueAdvice(policy, by)
	}
	in := ""
	if !written {
		in = " in " + by.Key()
	}
	if s := l.kind.Strategy; s.BareField != "" && l.on.After.MayMerge(l.by, l.from) {
		return fmt.Sprintf("set spec.%s%s to keep %s", s.BareField, in, it)
	}
	if in == "" {
		in = " here"
	}
	return fmt.Sprintf("repeat %s%s to keep %s", it, in, it)
}

// sameValueAdvice says how rules keep their values where another policy sets them anyway.
func sameValueAdvice(policy, by api.Ref) string {
	return fmt.Sprintf("to keep what %s sets, repeat it in %s", policy.Key(), by.Key())
}

// mergeAdvice says how a policy with atomic rules keeps them beside others.
func (l *ruleLoss) mergeAdvice(it string, policy, by api.Ref) string {
	if l.gone == "" {
		return sameValueAdvice(policy, by)
	}
	s := l.kind.Strategy
	if s.Field == "" || !slices.Contains(s.Allowed, "merge") && !slices.Contains(s.Allowed, "patch") {
		return fmt.Sprintf("repeat %s there to keep %s", it, it)
	}
	with := s.Allowed[slices.IndexFunc(s.Allowed, func(n api.StrategyName) bool { return n != "atomic" })]
	how := fmt.Sprintf("ask the owner of %s to set %s: %s", policy.Key(), s.Field, with)
	if defaults := l.kind.Blocks.Defaults; l.rules[0].block == merge.Bare && len(defaults) > 0 {
		how = fmt.Sprintf("move %s to %s with %s: %s", it, defaults[0], s.Field, with)
	}
	return fmt.Sprintf("repeat %s there to keep %s, or %s", it, it, how)
}

// detachedText says why a policy is no longer on a path, or takes no part on it.
func (ev *ruleLosses) detachedText(l *ruleLoss) (why, advice string) {
	was, policy := l.on.Before, l.on.Before.Ref(l.from)
	old, _ := ev.before.Get(policy).(*policykind.Policy) // it is on the path, so it exists
	now, _ := ev.after.Get(policy).(*policykind.Policy)
	it, at, object := "it", was.Path.Element(was.Level(l.from)), ev.change.Object().Ref()
	if l.gone == "" {
		it = policy.Key() // since the text begins with the one in its place
	}
	switch {
	case l.way == lossCondition:
		return it + " has a condition that is not met any more", "leave what its condition reads as it was to keep " + l.kept()
	case l.way == lossIgnored && now != old:
		return fmt.Sprintf("%s does not set %s any more", it, l.them()), ""
	case l.way == lossIgnored:
		return it + " has no effect " + ignoredText(l.on.After), ""
	case policy == object:
		return it + " is deleted", l.replaceAdvice(at)
	case now == nil && ev.change.End != nil:
		if l.on.After.Path.Element(was.Level(l.from)) != at {
			at = l.newTarget()
		}
		return it + " is deleted", l.replaceAdvice(at)
	case l.moved:
		return fmt.Sprintf("%s is attached to %s", it, at), l.attachAdvice(old)
	case l.route != (api.Ref{}):
		return fmt.Sprintf("%s serves its requests after this write", l.route), l.attachAdvice(old)
	case now == nil:
		return fmt.Sprintf("%s is deleted with %s", it, object), l.replaceAdvice(at)
	case l.on.After.Unread != "" && (l.on.After.Path.Gateway != nil || slices.Contains(l.on.After.Ignored, now)):
		l.unread = l.on.After.Unread
		return l.unread, ev.unreadAdvice(l)
	}
	if t, ok := ev.lostTarget(old, now); ok {
		if t.Target == object && ev.change.After == nil || ev.change.End != nil && ev.after.Get(t.Target) == nil {
			return fmt.Sprintf("%s is attached to %s, which is deleted", it, t.Target), l.attachAdvice(old)
		}
		switch {
		case t.Refused != "" && old.Kind.Attachment.InsteadOf == "":
			advice = "keep the ReferenceGrant to keep " + l.kept()
		case t.By != nil:
			advice = fmt.Sprintf("repeat %s in %s, or leave this target out there", l.them(), t.By.Key())
			if l.gone == "" {
				advice = sameValueAdvice(policy, *t.By) + ", or leave this target out there"
			}
		case t.Reason == api.TargetNotFound && t.Section != "":
			advice = fmt.Sprintf("to keep %s, keep section %s, or change the target of %s as well", l.kept(), t.Section, policy.Key())
		}
		return effective.Describe(ev.after, now, t), advice
	}
	if t, ok := ev.lostReference(old, now); ok {
		return fmt.Sprintf("%s no longer refers to %s by %s", t.Ref, it, t.AttachedBy), fmt.Sprintf("keep the reference to keep %s", l.kept())
	}
	if s := lostSelector(ev.write, now, at); s != nil {
		return fmt.Sprintf("the selector %s of %s no longer selects %s", s, policy.Key(), at), "keep the labels to keep " + l.kept()
	}
	if to := elsewhere(was, l.on.After); to != "" {
		return fmt.Sprintf("%s is attached to %s, and does not apply on %s", it, at, to), l.attachAdvice(old)
	}
	why = fmt.Sprintf("%s is attached to %s, which does not lead there any more", it, at)
	if was.Level(l.from) == gateway.LevelRule {
		why = fmt.Sprintf("%s is attached to %s, which is another rule after this write", it, at)
	}
	return why, l.attachAdvice(old)
}

// newTarget returns to what the policy has to be attached too: to what is on its level after the
// write.
func (l *ruleLoss) newTarget() api.PathElement {
	is, level := &l.on.After.Path, max(l.on.Before.Level(l.from), gateway.LevelGateway)
	at := is.Element(level)
	switch {
	case isAwaited(l.on.After) && level >= gateway.LevelRoute:
		at = is.Element(gateway.LevelListener)
	case level < gateway.LevelService && is.Service != nil:
		at = api.PathElement{Kind: gateway.KindService, Namespace: is.Service.Namespace, Name: is.Service.Name}
	case is.Gateway == nil && is.Service == nil:
		at = is.Element(gateway.LevelRoute) // its parents are not read
	case level == gateway.LevelRule && !l.kind.Targets.UnnamedRules && is.Rule >= 0 && is.Route.Rules[is.Rule].Name == "":
		at = is.Element(gateway.LevelRoute) // policies of the kind cannot target the rule
	case at == l.on.Before.Path.Element(level):
		at = is.Element(gateway.LevelGateway) // the policy is attached to it, in vain
	}
	return at
}

// attachAdvice says to what the policy, as it was before the write, has to be attached too.
func (l *ruleLoss) attachAdvice(old *policykind.Policy) string {
	if r := l.rules[0]; l.gone == "" && l.on.After.Level(ruleInPlace(l.on.After, r.key, r.follows).From.Policy) >= l.on.Before.Level(l.from) {
		return sameValueAdvice(l.on.Before.Ref(l.from), l.holder()) // a policy is attached there already
	}
	at := l.newTarget()
	if isAwaited(l.on.After) && l.on.Before.Level(l.from) >= gateway.LevelRoute {
		return fmt.Sprintf("attach a policy like it to the routes of %s", at)
	}
	limits := []api.TargetNamespaces{api.NamespacesOwn, api.NamespacesReferenceGrant}
	if old.HasOneTarget() || slices.Contains(limits, l.kind.Targets.Namespaces) && !slices.Contains([]string{"", at.Namespace}, l.from.Namespace) {
		return fmt.Sprintf("attach a policy like it to %s", at)
	}
	return fmt.Sprintf("attach the policy to %s as well", at)
}

// replaceAdvice says how rules of a policy that is deleted are kept.
func (l *ruleLoss) replaceAdvice(at api.PathElement) string {
	if l.gone == "" {
		return sameValueAdvice(l.on.Before.Ref(l.from), l.holder())
	}
	return fmt.Sprintf("to keep %s, set %s in another policy on %s", l.gone, l.them(), at)
}

// unreadAdvice says how rules of a policy are kept that has no effect on a path any more.
func (ev *ruleLosses) unreadAdvice(l *ruleLoss) string {
	was, is := l.on.Before.Path.Gateway, l.on.After.Path.Gateway
	switch {
	case was != nil && is != nil && was.Ref() != is.Ref():
		return fmt.Sprintf("keep the parent %s to keep %s", was.Ref(), l.kept())
	case was != nil && is != nil && was.Class != is.Class:
		return fmt.Sprintf("keep gatewayClassName %s to keep %s", was.Class, l.kept())
	case was != nil && is == nil:
		return fmt.Sprintf("keep %s as its waypoint to keep %s", was.Ref(), l.kept())
	}
	c, _ := ev.change.After.(*gateway.Class)
	b, _ := ev.change.Before.(*gateway.Class)
	switch {
	case c == nil || b == nil:
		return "" // the reason says it
	case c.Controller != b.Controller:
		return "keep its controllerName to keep " + l.kept()
	default:
		return "keep its parametersRef to keep " + l.kept()
	}
}

// lostSelector returns a selector of a policy that selected an object before the write, which
// changes its labels or those of its namespace, and does not after it.
func lostSelector(ev *write, p *policykind.Policy, on api.PathElement) *policykind.Selector {
	for _, t := range p.Targets {
		object := api.Ref{Group: t.Ref.Group, Kind: t.Ref.Kind, Namespace: on.Namespace, Name: on.Name}
		if ev.before.Selects(p, t, object) && !ev.after.Selects(p, t, object) {
			return t.Selector
		}
	}
	return nil
}

// elsewhere names the gateway, Service or listener of a path after the write, "" if it is
// that of the path before it.
func elsewhere(was, is *effective.Effective) string {
	switch {
	case readsRequests(&was.Path) && readsRequests(&is.Path) && entryOf(&was.Path) != entryOf(&is.Path):
		return entryOf(&is.Path).String()
	case !sameListener(was.Path, is.Path):
		return entryText(is)
	default:
		return ""
	}
}

// lostTarget returns the first target of a policy that was accepted before the write and is
// not accepted after it.
func (ev *ruleLosses) lostTarget(was, is *policykind.Policy) (api.Target, bool) {
	had := effective.Targets(ev.before, was)
	for _, t := range effective.Targets(ev.after, is) {
		if !t.Accepted && slices.ContainsFunc(had, func(o api.Target) bool { return o.Accepted && sameTarget(o, t) }) {
			return t, true
		}
	}
	return api.Target{}, false
}

// lostReference returns the first target that attaches a policy to itself before the write
// and not after it.
func (ev *ruleLosses) lostReference(was, is *policykind.Policy) (policykind.Target, bool) {
	has := ev.after.Targets(is)
	for _, t := range ev.before.Targets(was) {
		if t.AttachedBy != "" && !slices.ContainsFunc(has, func(o policykind.Target) bool {
			return o.Ref == t.Ref && o.Section == t.Section && o.AttachedBy == t.AttachedBy
		}) {
			return t, true
		}
	}
	return policykind.Target{}, false
}

// entriesText says how many entries of a list are in force in the place of those that are
// replaced: ": 2 entries instead of 3". It returns "" where no single rule is replaced, and
// where the reader may not read both policies: a count is a value, too.
func (ev *ruleLosses) entriesText(l *ruleLoss) string {
	if len(l.rules) != 1 || ev.guard.OmitCounts || !ev.reads(l.from.Namespace) || !ev.reads(l.holder().Namespace) {
		return ""
	}
	key := l.rules[0].key
	was, _ := find(l.on.Before.Rules, key)
	is, found := find(l.on.After.Rules, key)
	if !found {
		return ""
	}
	field, before, after := listEntries(merge.Plain(l.on.Before.Rules[was].Value), merge.Plain(l.on.After.Rules[is].Value))
	if before == after {
		return ""
	}
	if l.rules[0].name != key.String() {
		field = "." + key.String() + field
	}
	if field != "" {
		field = ": " + field[1:]
	}
	noun := "entries"
	if after == 1 {
		noun = "entry"
	}
	return fmt.Sprintf("%s: %d %s instead of %d", field, after, noun, before)
}

// listEntries returns the numbers of entries of two lists, or in two maps those of the first
// list that gets shorter, and the field that has it.
func listEntries(before, after any) (field string, was, is int) {
	switch before := before.(type) {
	case []any:
		if after, ok := after.([]any); ok {
			return "", len(before), len(after)
		}
	case map[string]any:
		after, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if below, was, is := listEntries(before[name], after[name]); was > is {
				return "." + name + below, was, is
			}
		}
	}
	return "", 0, 0
}

// holder returns the policy of which a rule is in force in the place of one that is lost;
// the zero Ref if all are gone.
func (l *ruleLoss) holder() api.Ref {
	for _, r := range l.rules {
		if !r.gone {
			return l.on.After.Ref(ruleInPlace(l.on.After, r.key, r.follows).From.Policy)
		}
	}
	return api.Ref{}
}

// ignoredText says where a rule has no effect that is ignored on a path.
func ignoredText(e *effective.Effective) string {
	route, has := e.Path.Route, func(where func(api.IgnoredRules) bool) bool { return slices.ContainsFunc(e.Kind.IgnoreOn, where) }
	switch beside := e.Kind.Beside(); {
	case route != nil && has(func(r api.IgnoredRules) bool { return r.Route == route.Kind }):
		return "on a " + route.Kind
	case route != nil && e.Path.Rule >= 0 && len(route.Rules[e.Path.Rule].Backends) == 0 && has(func(r api.IgnoredRules) bool { return r.Where == api.IgnoredNoBackends }):
		return "on a rule without backends"
	case beside != api.PolicyKind{}:
		return "beside a " + beside.Kind
	default:
		return "beside another policy"
	}
}
