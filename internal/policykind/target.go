package policykind

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/editdistance"
)

// Kinds that are handled separately.
const (
	kindGateway      = "Gateway"
	kindGatewayClass = "GatewayClass"
	kindNamespace    = "Namespace"
	kindService      = "Service"
	kindMesh         = "Mesh"
	kindPod          = "Pod"
)

// targets reads the target references: one, or a list, in each field.
func (r *reader) targets(root *field.Path, spec map[string]any) {
	t := r.kind.Targets
	for _, name := range slices.Concat(t.Fields, t.Selectors) {
		value, at := lookup(root, spec, name)
		if value == nil {
			continue
		}
		r.policy.None = false
		list, isList := value.([]any)
		if !isList {
			r.target(at, value)
			continue
		}
		for i, entry := range list {
			r.target(at.Index(i), entry)
		}
	}
	if t.WholeForAll {
		r.widen()
	}
	for _, name := range t.Workloads {
		value, at := lookup(root, spec, name)
		switch gateway := r.selectedGateway(value); {
		case gateway != "":
			target := Target{Ref: api.Ref{Group: api.GatewayGroup, Kind: kindGateway, Namespace: r.policy.Namespace, Name: gateway}}
			if r.global() {
				target.Ref.Namespace, target.Ref.Name = "", ""
				target.Selector = &Selector{Labels: labels.Everything(), Name: gateway, AnyNamespace: true}
			}
			r.addTarget(target, at.String())
			r.policy.SelectsPods = true
		case value != nil:
			r.selectsWorkloads(at)
		}
	}
	if len(r.policy.Targets) == 0 && len(r.errs) == 0 && r.policy.Unread == "" {
		r.addImplicitTarget(root)
	}
}

// selectedGateway returns the name of the Gateway whose pods a selector selects by the label
// that names it alone, "" if it is another selector.
func (r *reader) selectedGateway(selector any) string {
	t := r.kind.Targets
	fields, _ := selector.(map[string]any)
	if t.GatewayLabel == "" || len(fields) != 1 {
		return ""
	}
	for _, value := range fields { // matchLabels, or labels
		if all, _ := value.(map[string]any); len(all) == 1 {
			name, _ := all[t.GatewayLabel].(string)
			return name
		}
	}
	return ""
}

// widen removes the sections of targets of whose kind another one has none.
func (r *reader) widen() {
	p := r.policy
	all, at := p.Targets, p.fields.targets
	p.Targets, p.fields.targets = nil, nil
	for i, t := range all {
		if slices.ContainsFunc(all, func(o Target) bool { return o.Whole() && o.Ref.PolicyKind() == t.Ref.PolicyKind() }) {
			t.Section = ""
		}
		r.addTarget(t, at[i])
	}
}

// addImplicitTarget attaches a policy without a target to its namespace or to the
// mesh, if its kind has implicit targets. One of a kind to which other objects refer is
// attached by them.
func (r *reader) addImplicitTarget(root *field.Path) {
	t := r.kind.Targets
	switch {
	case t.Implicit != nil && t.Implicit.Label != "" && r.labels[t.Implicit.Label] != "true":
	case t.Implicit == nil && (r.kind.Attaches() || r.policy.None):
	case t.Implicit == nil && r.kind.Source == Label: // its targets may be in fields that are not known
		r.policy.Unread = fmt.Sprintf("it has no readable target in %s, and its kind has no profile", strings.Join(t.Fields, " or "))
	case t.Implicit == nil:
		r.errs = append(r.errs, field.Required(root.Child(slices.Concat(t.Fields, t.Selectors)[0]), "set the target of the policy"))
	case r.policy.Namespace == "" || r.policy.Namespace == t.Implicit.MeshNamespace:
		r.addTarget(Target{Ref: api.Ref{Kind: kindMesh}}, "")
	default:
		r.addTarget(Target{Ref: api.Ref{Kind: kindNamespace, Name: r.policy.Namespace}}, "")
	}
}

// addTarget adds a target at a field, "" for an implicit one.
func (r *reader) addTarget(t Target, at string) {
	if p := r.policy; !slices.ContainsFunc(p.Targets, t.Same) { // a target that is listed twice counts once
		p.Targets, p.fields.targets = append(p.Targets, t), append(p.fields.targets, at)
	}
}

// targetReader reads the fields of one target reference.
type targetReader struct {
	*reader
	at     *field.Path
	fields map[string]any
}

func (r *reader) target(at *field.Path, value any) {
	fields, ok := value.(map[string]any)
	if !ok {
		r.wrongType(at, value, "a target reference")
		return
	}
	ref := targetReader{r, at, fields}
	t := Target{
		Ref:  api.Ref{Kind: ref.stringField("kind"), Namespace: r.policy.Namespace, Name: ref.stringField("name")},
		Port: ref.port(),
	}
	if kinds := r.kind.Targets.Kinds; t.Ref.Kind == "" && len(kinds) == 1 && kinds[0].Kind != "*" {
		t.Ref.Kind = kinds[0].Kind // the schema has it as the default
	}
	t.Ref.Group = ref.group(t.Ref.Kind)
	if t.Ref.Group == "" && strings.EqualFold(t.Ref.Kind, kindNamespace) {
		t.Ref.Kind = kindNamespace
	}
	if t.Ref.Name == "" {
		t.Selector = ref.selector()
	}
	if t.Ref.Kind == "" || t.Ref.Name == "" && t.Selector == nil {
		if r.kind.Source != Label { // its targets may be in fields that are not known
			r.errs = append(r.errs, field.Required(at, "set kind and name"))
		}
		return
	}
	if t.Selector != nil && t.Ref.PolicyKind() == (api.PolicyKind{Kind: kindPod}) {
		r.selectsWorkloads(at)
		return
	}
	sections, _ := fields["sectionNames"].([]any) // of several sections
	if len(sections) == 0 {
		ref.add(t, ref.stringField("sectionName"))
	}
	for i, entry := range sections {
		name, ok := entry.(string)
		if !ok {
			r.wrongType(at.Child("sectionNames").Index(i), entry, "a string")
		}
		ref.add(t, name)
	}
}

// add adds a section of the target, "" for the whole of it.
func (r *targetReader) add(t Target, section string) {
	t.Section = section
	r.checkAllowed(&t)
	r.addTarget(t, r.at.String())
}

// selectsWorkloads marks the policy as one whose reach is not known.
func (r *reader) selectsWorkloads(at *field.Path) {
	r.policy.Unread = fmt.Sprintf("it selects workloads by their labels in %s, which Overrule does not read", at)
}

func (r *targetReader) stringField(name string) string {
	value := r.fields[name]
	text, ok := value.(string)
	if value != nil && !ok {
		r.wrongType(r.at.Child(name), value, "a string")
	}
	return text
}

// group returns the group of the target. It defaults to Gateway API's, and to the
// core group for kinds of that group. A version behind it, as in the examples of
// GEP-713, is ignored.
func (r *targetReader) group(kind string) string {
	if r.fields["group"] == nil {
		if kind == kindService || strings.EqualFold(kind, kindNamespace) {
			return ""
		}
		return api.GatewayGroup
	}
	group, _, _ := strings.Cut(r.stringField("group"), "/")
	if group == "core" { // some schemas allow it for Service
		return ""
	}
	return group
}

func (r *targetReader) port() int32 {
	switch n := r.fields["port"].(type) {
	case nil:
		return 0
	case int64:
		if n > 0 && n <= math.MaxUint16 {
			return int32(n)
		}
	}
	r.invalid(r.at.Child("port"), r.fields["port"], "must be a port number between 1 and 65535")
	return 0
}

// selector reads the label selector, which is next to kind or under "selector"; nil
// if there is none.
func (r *targetReader) selector() *Selector {
	at, fields := r.at, r.fields
	nested, ok := fields["selector"].(map[string]any)
	if ok {
		at, fields = at.Child("selector"), nested
	}
	all := ok && len(nested) == 0 || slices.Contains(r.kind.Targets.Selectors, r.specField())
	if fields["matchLabels"] == nil && fields["matchExpressions"] == nil && !all {
		return nil
	}
	out := &Selector{Labels: r.labelSelector(at, fields), AnyNamespace: r.global()}
	rule, _ := r.fields["namespaces"].(map[string]any)
	switch rule["from"] {
	case nil, "Same":
	case "All":
		out.AnyNamespace = true
	case "Selector":
		at := r.at.Child("namespaces", "selector")
		below, ok := rule["selector"].(map[string]any)
		if !ok {
			r.wrongType(at, rule["selector"], "a label selector")
		}
		out.Namespaces = r.labelSelector(at, below)
	default:
		r.errs = append(r.errs, field.NotSupported(r.at.Child("namespaces", "from"), rule["from"], []string{"All", "Same", "Selector"}))
	}
	return out
}

// specField returns the field of spec that holds the reference.
func (r *targetReader) specField() string {
	text, _, _ := strings.Cut(strings.TrimPrefix(r.at.String(), "spec."), "[")
	return text
}

func (r *targetReader) labelSelector(at *field.Path, fields map[string]any) labels.Selector {
	var s metav1.LabelSelector
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"matchLabels": fields["matchLabels"], "matchExpressions": fields["matchExpressions"],
	}, &s)
	if err == nil {
		var out labels.Selector
		if out, err = metav1.LabelSelectorAsSelector(&s); err == nil {
			return out
		}
	}
	r.invalid(at, "", "must be a label selector: %v", err)
	return labels.Nothing()
}

// checkAllowed sets whether the policy may target t, or adds an error if its kind may
// not.
func (r *targetReader) checkAllowed(t *Target) {
	kind := r.kind.target(t.Ref.PolicyKind())
	if kind == nil {
		r.errs = append(r.errs, r.kindNotSupported(t.Ref.PolicyKind()))
		return
	}
	t.Virtual = kind.Virtual
	if len(kind.Names) > 0 && !slices.Contains(kind.Names, t.Ref.Name) {
		t.Refused = fmt.Sprintf("%s can only target %s %s", r.kind.Kind, t.Ref.Kind, strings.Join(kind.Names, ", "))
	}
	r.readSection(t, kind.Section)
	if kind.Of != "" {
		t.Ref.Kind = kind.Of
	}
	namespace := cmp.Or(r.stringField("namespace"), r.kind.Targets.DefaultNamespace)
	switch {
	case t.Ref.Group == api.GatewayGroup && t.Ref.Kind == kindGatewayClass:
		t.Ref.Namespace = ""
		r.checkGatewayClass(t)
	case t.Ref.PolicyKind() == api.PolicyKind{Kind: kindNamespace}:
		t.Ref.Namespace = ""
		if t.Selector != nil || t.Ref.Name != r.policy.Namespace {
			r.crossNamespace(t)
		}
	case t.Selector != nil && !t.Selector.Own():
		t.Ref.Namespace = ""
		r.crossNamespace(t)
	case namespace != "" && namespace != r.policy.Namespace && r.kind.Targets.Namespaces != api.NamespacesIgnored:
		t.Ref.Namespace = namespace
		r.crossNamespace(t)
	}
}

// readSection validates the section, and sets the port if the section is a port number.
func (r *targetReader) readSection(t *Target, meaning api.SectionType) {
	if t.Section == "" {
		return
	}
	at := r.at.Child("sectionName")
	switch meaning {
	case api.SectionNone:
		r.invalid(at, t.Section, "must be empty: policies of kind %s target a whole %s", r.kind.Kind, t.Ref.Kind)
	case api.SectionPortNumber:
		n, err := strconv.ParseUint(t.Section, 10, 16)
		if err != nil || n == 0 {
			r.invalid(at, t.Section, "must be a port number between 1 and 65535")
			return
		}
		t.Section, t.Port = "", int32(n)
	default: // the name of a section of the target
	}
}

// checkGatewayClass refuses a GatewayClass as target, except for policies in some
// namespaces.
func (r *targetReader) checkGatewayClass(t *Target) {
	from := r.kind.Targets.ClassFrom
	if r.policy.Namespace == "" || slices.Contains(from, "*") || slices.Contains(from, r.policy.Namespace) {
		return
	}
	t.Refused = fmt.Sprintf("a namespaced %s cannot target a GatewayClass", r.kind.Kind)
	if len(from) > 0 {
		t.Refused = fmt.Sprintf("only policies in namespace %s can target a GatewayClass", strings.Join(from, ", "))
	}
}

// global reports whether the selectors of the policy select in all namespaces.
func (r *reader) global() bool { return slices.Contains(r.kind.Targets.GlobalFrom, r.policy.Namespace) }

// crossNamespace sets what a target in another namespace requires, or refuses it. A
// policy without a namespace requires nothing.
func (r *targetReader) crossNamespace(t *Target) {
	if r.policy.Namespace == "" {
		return
	}
	switch allowed := r.kind.Targets.Namespaces; {
	case allowed == api.NamespacesFree || t.Selector != nil && r.global():
	case allowed == api.NamespacesReferenceGrant && t.Ref.Kind != kindNamespace:
		t.Grant = true
	case allowed == api.NamespacesConsumer && t.Ref.Kind != kindNamespace:
		t.Consumer = true
	default:
		t.Refused = fmt.Sprintf("%s can only target its own namespace", r.kind.Kind)
	}
}

// kindNotSupported returns the error about a kind that the policy may not target, with the
// kinds that it may, those of Gateway API without their group.
func (r *targetReader) kindNotSupported(kind api.PolicyKind) *field.Error {
	var names, kinds, full []string
	for _, k := range r.kind.Targets.Kinds {
		name := api.PolicyKind{Group: k.Group, Kind: k.Kind}.String()
		names = append(names, strings.TrimSuffix(name, "."+api.GatewayGroup))
		kinds, full = append(kinds, k.Kind), append(full, name)
	}
	err := field.NotSupported(r.at, kind.String(), names)
	if meant := slices.Index(kinds, editdistance.Closest(kind.Kind, kinds)); meant >= 0 {
		err.Detail += fmt.Sprintf("; did you mean %s?", full[meant])
	}
	return err
}
