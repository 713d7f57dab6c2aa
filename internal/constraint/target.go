package constraint

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// Lookup looks up what is not part of a path. A *snapshot.View implements it.
type Lookup interface {
	// NamespaceLabels returns the labels of a namespace.
	NamespaceLabels(name string) labels.Set
	// LabelsOf returns the labels of an object, nil if it does not exist.
	LabelsOf(ref api.Ref) labels.Set
	// PortOf returns the number of a Service's port by its name, 0 if there is
	// none.
	PortOf(service api.Ref, name string) int32
}

// target selects objects.
type target struct {
	kind            api.PolicyKind
	namespace, name string // empty for any
	section         string
	selector        labels.Selector // nil for any labels
}

var kindNamespace = api.PolicyKind{Kind: gateway.KindNamespace}

// groupOf returns the group of a target, by default that of its kind.
func groupOf(t *api.ConstraintTarget) string {
	switch {
	case t.Group != nil:
		return *t.Group
	case t.Kind == gateway.KindService || t.Kind == gateway.KindNamespace:
		return ""
	default:
		return api.GatewayGroup
	}
}

// target compiles a target of the constraint.
func (c *Constraint) target(t *api.ConstraintTarget, at *field.Path) (target, field.ErrorList) {
	out := target{
		kind:      api.PolicyKind{Group: groupOf(t), Kind: t.Kind},
		namespace: t.Namespace, name: t.Name, section: t.SectionName,
	}
	errs := out.check(at)
	if t.Selector != nil {
		errs = append(errs, out.setSelector(t.Selector, at)...)
	}
	if c.namespace != "" {
		errs = append(errs, out.restrictToNamespace(c.namespace, at)...)
	}
	return out, errs
}

// targetKinds are the kinds of Gateway API that are supported as targets.
var targetKinds = append([]string{gateway.KindGatewayClass, gateway.KindGateway, gateway.KindListenerSet}, gateway.RouteKinds...)

func (t *target) check(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case t.kind.Kind == "":
		errs = append(errs, field.Required(at.Child("kind"), "set the kind of the target objects"))
	case t.kind.Group == api.GatewayGroup && !slices.Contains(targetKinds, t.kind.Kind):
		errs = append(errs, field.Invalid(at.Child("kind"), t.kind.Kind, fmt.Sprintf(
			"must be one of %s, or set the group of a backend", strings.Join(targetKinds, ", "))))
	case gateway.ClusterScoped(t.kind):
		if t.namespace != "" {
			errs = append(errs, field.Forbidden(at.Child("namespace"), fmt.Sprintf("must not be set: %s is cluster-scoped", t.kind.Kind)))
		}
		if t.section != "" {
			errs = append(errs, field.Forbidden(at.Child("sectionName"), fmt.Sprintf("must not be set: a %s has no sections", t.kind.Kind)))
		}
	}
	if t.section != "" && t.name == "" {
		errs = append(errs, field.Required(at.Child("name"), "must be set together with sectionName"))
	}
	return errs
}

func (t *target) setSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.name != "" {
		errs = append(errs, field.Forbidden(at.Child("selector"), "may not be set together with name"))
	}
	if !gateway.Known(t.kind) {
		errs = append(errs, field.Forbidden(at.Child("selector"), fmt.Sprintf("labels of kind %s are not available; set name instead", t.kind)))
	}
	var err error
	if t.selector, err = metav1.LabelSelectorAsSelector(s); err != nil {
		errs = append(errs, field.Invalid(at.Child("selector"), metav1.FormatLabelSelector(s), err.Error()))
	}
	return errs
}

// restrictToNamespace restricts a target of a PolicyConstraint to its namespace.
func (t *target) restrictToNamespace(namespace string, at *field.Path) field.ErrorList {
	const advice = "a PolicyConstraint can only target objects in its own namespace: omit the field, or use a ClusterPolicyConstraint"
	switch {
	case t.kind == kindNamespace:
		if t.name != "" && t.name != namespace {
			return field.ErrorList{field.Invalid(at.Child("name"), t.name, advice)}
		}
		t.name = namespace
	case gateway.ClusterScoped(t.kind):
		return field.ErrorList{field.Invalid(at.Child("kind"), t.kind.Kind, "is cluster-scoped: "+advice)}
	case t.namespace != "" && t.namespace != namespace:
		return field.ErrorList{field.Invalid(at.Child("namespace"), t.namespace, advice)}
	default:
		t.namespace = namespace
	}
	return nil
}

// Level is the level of a constraint on a path. The constraint applies to writes of
// objects at that level and below. That of a ClusterPolicyConstraint is above all others.
type Level = gateway.Level

// On returns the highest level at which a path goes through a target of the constraint;
// ok is false if the constraint does not apply to the path.
func (c *Constraint) On(p *gateway.Path, w Lookup) (level Level, ok bool) {
	for i := range c.targets {
		if l, on := c.targets[i].on(p, w); on && (!ok || l < level) {
			level, ok = l, true
		}
	}
	if c.namespace == "" {
		return gateway.LevelMesh, ok || len(c.targets) == 0
	}
	return level, ok
}

// on returns the level of the first object of a path that is selected, or that of its
// namespace if that is.
func (t *target) on(p *gateway.Path, w Lookup) (level Level, ok bool) {
	for o := range p.Objects {
		switch {
		case t.kind == kindNamespace && t.selectsNamespace(o.Namespace, w):
			return o.InNamespace, true
		case t.kind == o.PolicyKind() && t.selects(&o, w):
			return o.Level, true
		}
	}
	return level, false
}

func (t *target) selectsNamespace(name string, w Lookup) bool {
	return name != "" && (t.name == "" || t.name == name) && (t.selector == nil || t.selector.Matches(w.NamespaceLabels(name)))
}

// selects reports whether the target selects an object of its kind.
func (t *target) selects(o *gateway.PathObject, w Lookup) bool {
	if t.namespace != "" && t.namespace != o.Namespace || t.name != "" && t.name != o.Name {
		return false
	}
	if t.selector != nil {
		set := o.Labels
		if set == nil {
			set = w.LabelsOf(o.Ref)
		}
		if !t.selector.Matches(set) {
			return false
		}
	}
	return t.section == "" || o.Has(t.section, w.PortOf)
}

// Named is an object that a constraint targets by name.
type Named struct {
	// Ref of the object; without a namespace where its kind has one, it may be
	// in any.
	Ref api.Ref
	// Section of the object, empty for the whole.
	Section string
}

// String names the object, and its section if there is one.
func (n Named) String() string {
	if n.Section == "" {
		return n.Ref.String()
	}
	return "section " + n.Section + " of " + n.Ref.String()
}

// Named returns the targets that are selected by name, in the order of the constraint, and
// whether there are no others. It omits namespaces and objects of unsupported kinds:
// whether they exist cannot be decided.
func (c *Constraint) Named() (names []Named, all bool) {
	for _, t := range c.targets {
		if t.name == "" || t.kind == kindNamespace || !gateway.Known(t.kind) {
			continue
		}
		names = append(names, Named{
			Ref:     api.Ref{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: t.namespace, Name: t.name},
			Section: t.section,
		})
	}
	return names, len(names) == len(c.targets)
}
