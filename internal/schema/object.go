package schema

import (
	"maps"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// target is the field of spec that holds the reference to a target.
type target struct {
	at     []string // from the top; empty if the schema has none
	isList bool
	schema *structuralschema.Structural // of one reference
}

// targetOf returns the target field: one that is required, else the first that the
// schema has. Only one is set, since they often exclude each other.
func targetOf(k *policykind.Kind, root *structuralschema.Structural) target {
	var best target
	for i := range k.Targets.Fields {
		at := k.Layout().NotContent[i]
		node := nodeAt(root, at)
		if node == nil {
			continue
		}
		t := target{at: at, schema: node}
		if node.Items != nil {
			t.isList, t.schema = true, node.Items
		}
		parent := nodeAt(root, at[:len(at)-1]).ValueValidation
		if parent != nil && slices.Contains(parent.Required, at[len(at)-1]) {
			return t
		}
		if best.at == nil {
			best = t
		}
	}
	return best
}

// reference returns a reference to a target, with the fields that the schema has.
func (t target) reference(fields map[string]any) any {
	ref := make(map[string]any, len(fields))
	for name, value := range fields {
		if _, ok := t.schema.Properties[name]; ok || t.schema.XPreserveUnknownFields {
			ref[name] = value
		}
	}
	if t.isList {
		return []any{ref}
	}
	return ref
}

// lowestTarget returns the fields of a reference to the target of the lowest policy
// of a path.
func lowestTarget(e *effective.Effective) map[string]any {
	level := lowest(e)
	on := e.Path.Element(level)
	group := api.GatewayGroup
	switch {
	case on.Kind == gateway.KindNamespace, on.Kind == gateway.KindService, on.Kind == gateway.KindMesh:
		group = ""
	case e.Path.Virtual != nil:
		group = e.Path.Virtual.Group
	case level >= gateway.LevelBackend && e.Path.Backend != nil:
		group = e.Path.Backend.Object.Group
	case (level == gateway.LevelRule || level == gateway.LevelFilter) && e.Path.Route != nil:
		on.Kind = e.Path.Route.Kind
	case on.Kind == gateway.KindListener && e.Path.Set != nil:
		set := e.Path.Set.Ref()
		group, on.Kind = set.Group, set.Kind
	case level == gateway.LevelListenerSet && e.Path.Set != nil:
		group = e.Path.Set.Ref().Group
	case on.Kind == gateway.KindListener:
		on.Kind = gateway.KindGateway
	}
	out := map[string]any{"group": group, "kind": on.Kind, "name": on.Name}
	if on.Section != "" && (group == api.GatewayGroup || group == api.GatewayXGroup) {
		out["sectionName"] = on.Section
	}
	return out
}

// lowest returns the level of the lowest policy.
func lowest(e *effective.Effective) gateway.Level {
	level := gateway.LevelMesh
	for _, o := range e.Outcomes {
		level = max(level, e.Level(o.Policy))
	}
	return level
}

// object returns an object with a spec at a location and the defaults of the schema.
// It may share values with the spec: do not edit.
func (p *plan) object(e *effective.Effective, at *location, spec map[string]any) map[string]any {
	metadata := map[string]any{"name": "effective"}
	if n := len(e.Outcomes); n > 0 {
		metadata["name"], metadata["namespace"] = e.Outcomes[n-1].Policy.Name, e.Outcomes[n-1].Policy.Namespace
	}
	out := map[string]any{
		"apiVersion": p.kind.Group + "/v1", "kind": p.kind.Kind, "metadata": metadata,
	}
	normalize := p.defaults || hasNull(spec)
	if normalize {
		spec = runtime.DeepCopyJSON(spec) // the values of rules are shared
	}
	if len(at.at) == 0 { // the content is the object
		maps.Copy(out, spec)
	} else {
		setAt(out, at.at, spec)
	}
	if p.target.at != nil {
		setAt(out, p.target.at, p.target.reference(lowestTarget(e)))
	}
	if normalize {
		defaulting.PruneNonNullableNullsWithoutDefaults(out, p.schema)
		defaulting.Default(out, p.schema)
	}
	return out
}

// hasNull reports whether a value is or contains null.
func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, below := range v {
			if hasNull(below) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

// hasDefault reports whether a schema has a default at any node.
func hasDefault(s *structuralschema.Structural) (found bool) {
	find := structuralschema.Visitor{Structural: func(s *structuralschema.Structural) bool {
		found = found || s.Default.Object != nil
		return false
	}}
	find.Visit(s)
	return found
}

// setAt sets a value of an object, and creates the maps above it.
func setAt(object map[string]any, at []string, value any) {
	for _, name := range at[:len(at)-1] {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = make(map[string]any)
			object[name] = next
		}
		object = next
	}
	object[at[len(at)-1]] = value
}

// specOf returns the spec that consists of the rules.
func (p *plan) specOf(rules []merge.Effective) map[string]any {
	return p.kind.Shape((&merge.Result{Rules: rules}).Spec())
}
