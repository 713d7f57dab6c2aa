package snapshot

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// References yields the policies that an object attaches to itself, of the kinds of the
// view, each with the object as its target. The policies need not exist.
func (v *View) References(o Object) iter.Seq2[api.Ref, policykind.Target] {
	return func(yield func(api.Ref, policykind.Target) bool) {
		if len(v.attached) == 0 {
			return
		}
		switch o := o.(type) {
		case *gateway.Class:
			v.parameters(o.Ref(), o.Parameters, yield)
		case *gateway.Gateway:
			v.parameters(o.Ref(), o.Parameters, yield)
		case *gateway.Route:
			if v.extensions(o, yield) {
				v.annotated(o.Ref(), o.Annotations, yield)
			}
		case *gateway.Service:
			v.annotated(o.Ref(), o.Annotations, yield)
		}
	}
}

// parameters yields the policy to which a parametersRef refers, and those that it names.
func (v *View) parameters(object, to api.Ref, yield func(api.Ref, policykind.Target) bool) {
	k := v.Kind(to.PolicyKind())
	if k == nil || !k.Attachment.ParametersRef || !yield(to, policykind.Target{Ref: object, AttachedBy: policykind.ParametersRef}) {
		return
	}
	p, ok := v.Get(to).(*policykind.Policy)
	if !ok || p.Invalid != nil {
		return
	}
	place := 0
	if p.BareOverrides != nil && object.Kind == gateway.KindGatewayClass {
		place = 1
	}
	for _, k := range v.attached {
		named, by, ok := k.NamedBy(p)
		if !ok {
			continue
		}
		t := policykind.Target{Ref: object, AttachedBy: by, Place: place}
		if o, ok := v.Get(named).(*policykind.Policy); ok && len(o.Targets) > 0 {
			t.Refused = fmt.Sprintf("%s with a target cannot be attached by %s", k.Kind, by)
		}
		if !yield(named, t) {
			return
		}
	}
}

// AttachedThrough returns the kinds whose policies those of a kind attach.
func (v *View) AttachedThrough(kind api.PolicyKind) []api.PolicyKind {
	var out []api.PolicyKind
	for _, k := range v.attached {
		if t := k.Attachment.Through; t != nil && k.Group == kind.Group && t.Kind == kind.Kind {
			out = append(out, k.Ref())
		}
	}
	return out
}

// DependentKinds returns the kinds whose effective policies depend on the policies of another
// one, which attach them or take an effect from their rules.
func (v *View) DependentKinds(kind api.PolicyKind) []api.PolicyKind {
	out := v.AttachedThrough(kind)
	for _, k := range v.Kinds() {
		if k.Beside() == kind {
			out = append(out, k.Ref())
		}
	}
	if k := v.Kind(kind); k != nil {
		if o := v.Alternative(k); o != nil {
			out = append(out, o.Ref())
		}
	}
	return out
}

// Alternative returns the kind whose policies are attached where there is none of a kind, or
// the other way around; nil if there is none.
func (v *View) Alternative(k *policykind.Kind) *policykind.Kind {
	i := slices.IndexFunc(v.attached, func(o *policykind.Kind) bool {
		return o.Group == k.Group && (o.Kind == k.Attachment.InsteadOf || o.Attachment.InsteadOf == k.Kind)
	})
	if i < 0 {
		return nil
	}
	return v.attached[i]
}

// referrers returns the objects that refer to a policy, if its content decides what else
// they refer to.
func (v *View) referrers(policy api.Ref) []Object {
	if len(v.AttachedThrough(policy.PolicyKind())) == 0 {
		return nil
	}
	return slices.Collect(v.byReference.withPrefix(objectKey(policy)))
}

// extensions yields the policies to which filters of a route refer, and reports whether to
// continue.
func (v *View) extensions(r *gateway.Route, yield func(api.Ref, policykind.Target) bool) bool {
	for i := range r.Rules {
		for place, to := range r.Rules[i].Extensions {
			k := v.Kind(to.PolicyKind())
			if k == nil || !k.Attachment.ExtensionRef {
				continue
			}
			t := policykind.Target{Ref: r.Ref(), Section: r.RuleName(i), AttachedBy: policykind.ExtensionRef, Rule: i, Place: place}
			if !yield(to, t) {
				return false
			}
		}
	}
	return true
}

// annotated yields the policies that annotations of an object name. One that is named with
// its namespace needs a ReferenceGrant, in the object's own namespace as well.
func (v *View) annotated(object api.Ref, annotations map[string]string, yield func(api.Ref, policykind.Target) bool) {
	for _, k := range v.attached {
		name := k.Attachment.Annotation
		if name == "" || annotations[name] == "" {
			continue
		}
		var seen []string
		for policy := range strings.SplitSeq(annotations[name], ",") {
			if policy = strings.TrimSpace(policy); policy == "" || slices.Contains(seen, policy) {
				continue
			}
			seen = append(seen, policy)
			to, t := api.Ref{Group: k.Group, Kind: k.Kind, Namespace: object.Namespace, Name: policy}, policykind.Target{Ref: object, AttachedBy: name}
			if namespace, own, found := strings.Cut(policy, ":"); found && k.NamesNamespaces() {
				to.Namespace, to.Name, t.Grant = strings.TrimSpace(namespace), strings.TrimSpace(own), true
				if !v.Granted(object.PolicyKind(), object.Namespace, to) {
					t.Refused = NoGrant(object, to)
				}
			}
			if k.Attachment.InsteadOf != "" {
				first := api.Ref{Group: k.Group, Kind: k.Attachment.InsteadOf, Namespace: to.Namespace, Name: to.Name}
				if to.Namespace = ""; v.Get(first) != nil {
					t.Refused = fmt.Sprintf("%s of %s names %s", name, object, first)
				}
			}
			if !yield(to, t) {
				return
			}
		}
	}
}

// referring yields the policies that an object attaches to itself, given its key.
func (t *Targeting) referring(yield func(*policykind.Policy, policykind.Target) bool) {
	if !t.from.seek(t.key) || t.from.key() != string(t.key) {
		return
	}
	for to, target := range t.view.References(t.from.value()) {
		if p, ok := t.view.Get(to).(*policykind.Policy); ok && !yield(p, target) {
			return
		}
	}
}

// attaching yields the targets that attach a policy to themselves, by kind, namespace and
// name.
func (v *View) attaching(p *policykind.Policy) iter.Seq[policykind.Target] {
	return func(yield func(policykind.Target) bool) {
		if !p.Kind.Attaches() {
			return
		}
		ref := p.Ref()
		for o := range v.byReference.withPrefix(objectKey(ref)) {
			for to, t := range v.References(o) {
				if to == ref && !yield(t) {
					return
				}
			}
		}
	}
}

func referenceKey(to, from api.Ref) string { return objectKey(to) + objectKey(from) }

// referenceKeys yields the keys of an object in byReference.
func (v *View) referenceKeys(o Object) iter.Seq[string] {
	return func(yield func(string) bool) {
		for to := range v.References(o) {
			if !yield(referenceKey(to, o.Ref())) || !yield(objectKey(o.Ref())) {
				return
			}
		}
	}
}

// attachKinds sets the kinds whose policies are attached by references, and indexes these
// if the kinds changed.
func (v *View) attachKinds() {
	kinds := slices.DeleteFunc(slices.Clone(v.kinds), func(k *policykind.Kind) bool { return !k.Attaches() })
	if slices.Equal(kinds, v.attached) {
		return
	}
	v.attached, v.byReference = kinds, index[Object]{}
	if len(kinds) == 0 {
		return
	}
	from := []api.PolicyKind{{Kind: gateway.KindService}}
	for _, kind := range gateway.GatewayKinds {
		from = append(from, gateway.KindOf(kind))
	}
	for _, kind := range from {
		for o := range v.Objects(kind) {
			for at := range v.referenceKeys(o) {
				v.byReference.set(at, o)
			}
		}
	}
}
