package constraint

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/pattern"
)

// Constraint is a compiled constraint. It is immutable and safe for concurrent use.
type Constraint struct {
	ref  api.Ref
	kind api.PolicyKind
	// Enforcement is the action for a write that introduces a violation.
	Enforcement api.Action
	// Invalid has all errors of the constraint with their field paths, nil if it is
	// valid. An invalid constraint has no effect.
	Invalid error
	// GracePeriod is 0 for none.
	GracePeriod time.Duration
	// Created is in seconds since 1970, 0 if it is not known.
	Created int64
	// UID, Generation and Conditions are those of the object on a cluster, for its status.
	UID        types.UID
	Generation int64
	Conditions []metav1.Condition

	spec *api.ConstraintSpec
	// namespace of a PolicyConstraint, which applies only there.
	namespace   string
	targets     []target
	validations []validation
	rules       []rule
}

// Ref names the constraint.
func (c *Constraint) Ref() api.Ref { return c.ref }

// Same reports whether two constraints have the same content: they are one object of a
// cluster, at the same generation.
func (c *Constraint) Same(o *Constraint) bool {
	return c.UID != "" && c.UID == o.UID && c.Generation == o.Generation
}

// PolicyKind returns the kind whose effective policies are evaluated.
func (c *Constraint) PolicyKind() api.PolicyKind { return c.kind }

// Validations returns how many validations the constraint has.
func (c *Constraint) Validations() int { return len(c.validations) }

// Kinds of constraints.
var (
	Kind        = api.PolicyKind{Group: api.Group, Kind: api.KindPolicyConstraint}
	ClusterKind = api.PolicyKind{Group: api.Group, Kind: api.KindClusterPolicyConstraint}
)

// IsKind reports whether a kind is one of constraints.
func IsKind(k api.PolicyKind) bool { return k == Kind || k == ClusterKind }

// FromPolicyConstraint compiles a PolicyConstraint. Its Invalid has the errors. Without a
// namespace, as in a file, it is in default.
func FromPolicyConstraint(o *api.PolicyConstraint) *Constraint {
	namespace := o.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	c := &Constraint{
		ref:       api.Ref{Group: api.Group, Kind: api.KindPolicyConstraint, Namespace: namespace, Name: o.Name},
		namespace: namespace,
	}
	c.compile(o.CreationTimestamp, &o.Spec)
	return c
}

// FromClusterPolicyConstraint compiles a ClusterPolicyConstraint. Its Invalid has the
// errors.
func FromClusterPolicyConstraint(o *api.ClusterPolicyConstraint) *Constraint {
	c := &Constraint{ref: api.Ref{Group: api.Group, Kind: api.KindClusterPolicyConstraint, Name: o.Name}}
	c.compile(o.CreationTimestamp, &o.Spec)
	return c
}

var actions = []api.Action{api.Deny, api.Warn, api.Audit}

// compile compiles the spec. It includes the validations of the CRD, which the API server
// has not applied to a file.
func (c *Constraint) compile(created metav1.Time, s *api.ConstraintSpec) {
	at := field.NewPath("spec")
	var errs field.ErrorList
	c.spec = s
	c.kind = api.PolicyKind{Group: s.PolicyKind.Group, Kind: s.PolicyKind.Kind}
	if c.kind.Group == "" {
		errs = append(errs, field.Required(at.Child("policyKind", "group"), "set the group of the policies"))
	}
	if c.kind.Kind == "" {
		errs = append(errs, field.Required(at.Child("policyKind", "kind"), "set the kind of the policies"))
	}
	c.Enforcement = s.Enforcement
	switch {
	case c.Enforcement == "":
		c.Enforcement = api.Deny
	case !slices.Contains(actions, c.Enforcement):
		errs = append(errs, field.NotSupported(at.Child("enforcement"), c.Enforcement, actions))
	}
	if !created.IsZero() {
		c.Created = created.Unix()
	}
	if s.GracePeriod != nil {
		c.GracePeriod = s.GracePeriod.Duration
	}
	if c.GracePeriod < 0 {
		errs = append(errs, field.Invalid(at.Child("gracePeriod"), c.GracePeriod.String(), "must not be negative"))
	}
	if len(s.Validations)+len(s.Rules) == 0 {
		errs = append(errs, field.Required(at, "must set validations or rules"))
	}
	for i := range s.Targets {
		t, wrong := c.target(&s.Targets[i], at.Child("targets").Index(i))
		c.targets, errs = append(c.targets, t), append(errs, wrong...)
	}
	if len(s.Targets) == 0 && c.namespace != "" {
		c.targets = []target{{kind: kindNamespace, name: c.namespace}}
	}
	for i := range s.Validations {
		v, wrong := compileValidation(&s.Validations[i], at.Child("validations").Index(i))
		c.validations, errs = append(c.validations, v), append(errs, wrong...)
	}
	patterns := 0
	for i := range s.Rules {
		at := at.Child("rules").Index(i)
		if patterns += pattern.Cost(s.Rules[i].Pattern); patterns > maxPatternCost {
			errs = append(errs, field.Invalid(at.Child("pattern"), s.Rules[i].Pattern,
				"all patterns of a constraint together take too long to compile; "+pattern.Advice))
			break
		}
		r, wrong := compileRule(&s.Rules[i], at)
		c.rules, errs = append(c.rules, r), append(errs, wrong...)
	}
	if err := errs.ToAggregate(); err != nil {
		c.Invalid = err
	}
}
