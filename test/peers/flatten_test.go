//go:build long

package peers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	api "overrule.dev/overrule/api/v1alpha1"
)

// flatten returns the world with the routes of one listener alone, and in place of the
// policies the effective ones on that listener: one for each rule of a route, or for the
// listener itself.
func (w world) flatten(t *testing.T, effective *api.EffectivePolicyList, l listener) world {
	t.Helper()
	out := copied(t, w)
	for _, kind := range routeLists {
		out.set(kind.list, slices.DeleteFunc(out.list(kind.list), func(r object) bool { return !attach(r, l) }))
	}
	for _, kind := range policyLists {
		delete(out, kind.list)
	}
	for i := range effective.Items {
		e := &effective.Items[i]
		list := slices.IndexFunc(policyLists, func(k listKind) bool { return k.kind == e.PolicyKind.Kind })
		if list < 0 || !slices.ContainsFunc(e.Path, l.is) {
			continue
		}
		if p := policyFor(e, l, strconv.Itoa(i)); p != nil {
			out.add(policyLists[list].list, p)
		}
	}
	out.dropTLS(effective)
	return out
}

// is reports whether a path goes through the listener.
func (l listener) is(e api.PathElement) bool {
	return e.Kind == "Listener" && e.Namespace == l.namespace && e.Name == l.name && e.Section == l.section
}

// attach attaches a route to one listener alone. It reports whether it was attached to it.
func attach(route object, l listener) bool {
	spec := at(route, "spec")
	for _, p := range items(spec, "parentRefs") {
		namespace, kind, section := text(p, "namespace"), text(p, "kind"), text(p, "sectionName")
		if namespace == "" {
			namespace = namespaceOf(route)
		}
		if kind == "" {
			kind = "Gateway"
		}
		if kind == l.kind && namespace == l.namespace && text(p, "name") == l.name && (section == "" || section == l.section) {
			p["sectionName"] = l.section
			spec["parentRefs"] = []any{p}
			return true
		}
	}
	return false
}

// policyFor returns a policy that attaches an effective spec where its path ends. It is nil
// for a path without a route.
func policyFor(e *api.EffectivePolicy, l listener, name string) object {
	last := e.Path[len(e.Path)-1]
	namespace, target := l.namespace, object{"kind": l.kind, "name": l.name, "sectionName": l.section}
	if last.Kind != "Listener" {
		if last.Index == nil {
			return nil
		}
		namespace, target = last.Namespace, object{"kind": e.Path[len(e.Path)-2].Kind, "name": last.Name, "sectionName": last.Section}
	} else if e.PolicyKind.Kind != "ClientTrafficPolicy" {
		return nil
	}
	target["group"] = gatewayAPI
	spec, _ := e.Spec.(object)
	spec = maps.Clone(spec)
	if spec == nil {
		spec = object{}
	}
	spec["targetRefs"] = []any{target}
	return object{
		"apiVersion": envoyGateway + "/v1alpha1", "kind": e.PolicyKind.Kind,
		"metadata": object{"namespace": namespace, "name": "effective-" + name}, "spec": spec,
	}
}

// dropTLS removes the BackendTLSPolicies that have no effect.
func (w world) dropTLS(effective *api.EffectivePolicyList) {
	const list = "backendTLSPolicies"
	holds := map[string]bool{}
	for _, o := range effective.Outcomes {
		if o.Policy.Kind == "BackendTLSPolicy" && (o.State == api.Enforced || o.State == api.PartiallyEnforced) {
			holds[o.Policy.Namespace+"/"+o.Policy.Name] = true
		}
	}
	w.set(list, slices.DeleteFunc(w.list(list), func(p object) bool { return !holds[namespaceOf(p)+"/"+nameOf(p)] }))
}

// shareReferences lets the effective policies refer to what the policies refer to: each
// namespace gets a copy of the objects of the others, and each may refer to all.
func (w world) shareReferences(t *testing.T) {
	t.Helper()
	all := w.namespaces(slices.Concat(routeLists, policyLists, localLists, readLists))
	to := w.namespaces(slices.Concat(routeLists, policyLists))
	for _, l := range localLists {
		known := map[string]bool{}
		for _, o := range w.list(l.list) {
			known[namespaceOf(o)+"/"+nameOf(o)] = true
		}
		for _, o := range w.list(l.list) {
			for _, namespace := range to {
				if at := namespace + "/" + nameOf(o); !known[at] {
					known[at] = true
					shared := copied(t, o)
					shared["metadata"].(object)["namespace"] = namespace //nolint:forcetypeassert // each has one
					w.add(l.list, shared)
				}
			}
		}
	}
	for i, namespace := range all {
		var from, targets []any
		for _, l := range policyLists {
			for _, n := range to {
				from = append(from, object{"group": envoyGateway, "kind": l.kind, "namespace": n})
			}
		}
		for _, l := range localLists {
			group := ""
			if l.kind == "Backend" {
				group = envoyGateway
			}
			targets = append(targets, object{"group": group, "kind": l.kind})
		}
		w.add("referenceGrants", object{
			"apiVersion": gatewayAPI + "/v1beta1", "kind": "ReferenceGrant",
			"metadata": object{"namespace": namespace, "name": fmt.Sprintf("all-%d", i)},
			"spec":     object{"from": from, "to": targets},
		})
	}
}
