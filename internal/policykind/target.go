package policykind

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
)

// targets reads the target references, one or a list in each field.
func (r *reader) targets(root *field.Path, spec map[string]any) {
	for _, name := range r.kind.Targets.Fields {
		value, ok := spec[name]
		if !ok || value == nil {
			continue
		}
		list, isList := value.([]any)
		if !isList {
			r.target(root.Child(name), value)
			continue
		}
		for i, entry := range list {
			r.target(root.Child(name).Index(i), entry)
		}
	}
	if len(r.policy.Targets) == 0 && len(r.errs) == 0 && r.kind.Source != Label {
		r.errs = append(r.errs, field.Required(root.Child(r.kind.Targets.Fields[0]), "a policy needs a target"))
	}
}

func (r *reader) target(at *field.Path, value any) {
	ref, ok := value.(map[string]any)
	if !ok {
		r.wrong(at, value, "a target reference")
		return
	}
	str := func(name string) string {
		text, ok := ref[name].(string)
		if v := ref[name]; v != nil && !ok {
			r.wrong(at.Child(name), v, "a string")
		}
		return text
	}
	t := Target{
		Ref:     api.Ref{Group: str("group"), Kind: str("kind"), Namespace: r.policy.Namespace, Name: str("name")},
		Section: str("sectionName"),
	}
	if t.Ref.Kind == "" || t.Ref.Name == "" {
		if r.kind.Source != Label { // a guessed kind may select in ways of its own
			r.errs = append(r.errs, field.Required(at, "kind and name must be set"))
		}
		return
	}
	r.place(at, &t, str("namespace"))
	if !slices.Contains(r.policy.Targets, t) { // named twice, it is one target
		r.policy.Targets = append(r.policy.Targets, t)
	}
}

// place puts a target into its namespace, and books what may not be targeted.
func (r *reader) place(at *field.Path, t *Target, namespace string) {
	if !r.kind.MayTarget(t.Ref.PolicyKind()) {
		value := t.Ref.PolicyKind().String()
		r.errs = append(r.errs, field.NotSupported(at, value, kindNames(r.kind.Targets.Kinds, value)))
	}
	if t.Ref.Group == api.GatewayGroup && t.Ref.Kind == "GatewayClass" {
		t.Ref.Namespace = ""
		if r.policy.Namespace != "" {
			t.Refused = fmt.Sprintf("a %s has a namespace and may not target a GatewayClass", r.kind.Kind)
		}
		return
	}
	if namespace != "" && namespace != r.policy.Namespace {
		t.Ref.Namespace = namespace
		t.Refused = fmt.Sprintf("a %s may not target another namespace than its own", r.kind.Kind)
	}
}

// kindNames names the kinds, those of Gateway API without their group unless
// that would be the very value that is refused.
func kindNames(kinds []api.PolicyKind, refused string) []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = strings.TrimSuffix(k.String(), "."+api.GatewayGroup)
		if k.Kind == refused {
			out[i] = k.String()
		}
	}
	return out
}
