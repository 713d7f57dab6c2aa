package snapshot

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// ErrKind is the error for an object of a kind that the store does not hold.
var ErrKind = errors.New("not a kind that effective policies depend on")

// Decode decodes an object from JSON: one of a supported kind, or a policy if kind is
// its policy kind. created is used for a policy, a route or a listener set without a
// creation time (policykind.Read).
//
// The error is ErrKind for any other kind; else it is that of decoding. A policy that is
// valid JSON, and a constraint that can be decoded, return no error: their field Invalid
// has what is wrong with them.
func Decode(ref api.PolicyKind, kind *policykind.Kind, data []byte, created int64) (Object, error) {
	if kind != nil {
		object, err := decode.Object(data)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", ref, err)
		}
		p := kind.Read(object, created)
		p.Size = len(data)
		return p, nil
	}
	switch {
	case ref == (api.PolicyKind{Kind: gateway.KindNamespace}):
		return typed(ref, data, gateway.FromNamespace)
	case ref == (api.PolicyKind{Kind: gateway.KindService}):
		return typed(ref, data, gateway.FromService)
	case ref == policykind.KindProfile:
		return typed(ref, data, func(p *api.PolicyProfile) *policykind.Profile { return &policykind.Profile{PolicyProfile: *p} })
	case ref == policykind.KindDefinition:
		return typed(ref, data, func(d *apiextensionsv1.CustomResourceDefinition) *policykind.Definition {
			return &policykind.Definition{CustomResourceDefinition: *d}
		})
	case ref == constraint.Kind:
		return typed(ref, data, constraint.FromPolicyConstraint)
	case ref == constraint.ClusterKind:
		return typed(ref, data, constraint.FromClusterPolicyConstraint)
	case ref == gateway.KindOf(gateway.KindXListenerSet):
		return listenerSet(ref, data, gateway.FromXListenerSet, created)
	case ref.Group != api.GatewayGroup:
	case ref.Kind == gateway.KindGatewayClass:
		return typed(ref, data, gateway.FromGatewayClass)
	case ref.Kind == gateway.KindGateway:
		return typed(ref, data, func(g *gatewayv1.Gateway) *gateway.Gateway {
			out := gateway.FromGateway(g)
			if g.CreationTimestamp.IsZero() {
				out.Created = created
			}
			return out
		})
	case ref.Kind == gateway.KindListenerSet:
		return listenerSet(ref, data, gateway.FromListenerSet, created)
	case ref.Kind == gateway.KindReferenceGrant:
		return typed(ref, data, gateway.FromReferenceGrant)
	case gateway.IsRoute(ref):
		return route(ref, data, nil, created)
	}
	return nil, fmt.Errorf("%s: %w", ref, ErrKind)
}

// typedObject are the types that Decode decodes.
type typedObject interface {
	corev1.Namespace | corev1.Service | api.PolicyProfile | api.PolicyConstraint | api.ClusterPolicyConstraint |
		apiextensionsv1.CustomResourceDefinition |
		metav1.PartialObjectMetadata | gatewayv1.GatewayClass | gatewayv1.Gateway | gatewayv1.ListenerSet | gatewayv1.ReferenceGrant
}

func typed[T typedObject, O Object](ref api.PolicyKind, data []byte, from func(*T) O) (Object, error) {
	t, err := decode.As[T](data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", ref, err)
	}
	return from(t), nil
}

func listenerSet(ref api.PolicyKind, data []byte, from func(*gatewayv1.ListenerSet) *gateway.ListenerSet, created int64) (Object, error) {
	return typed(ref, data, func(s *gatewayv1.ListenerSet) *gateway.ListenerSet {
		out := from(s)
		if s.CreationTimestamp.IsZero() {
			out.Created = created
		}
		return out
	})
}

// DecodeStored is Decode for a stored object. It returns the object of the view if that
// is the same: a route with the same JSON, a policy with the same uid and
// resourceVersion.
func (v *View) DecodeStored(ref api.Ref, kind *policykind.Kind, data []byte, created int64) (Object, error) {
	switch known := v.Get(ref).(type) {
	case *gateway.Route:
		return route(ref.PolicyKind(), data, known, created)
	case *policykind.Policy:
		if state := stateOf(data); known.Kind == kind && state.Known() && state == known.State {
			return known, nil
		}
	}
	return v.Decode(ref.PolicyKind(), kind, data, created)
}

// Decode is Decode for the kinds of the view: of a kind that is Selectable, it decodes the
// labels.
func (v *View) Decode(ref api.PolicyKind, kind *policykind.Kind, data []byte, created int64) (Object, error) {
	if kind == nil && v.Selectable(ref) {
		return DecodeLabels(ref, data)
	}
	return Decode(ref, kind, data, created)
}

// DecodeLabels decodes an object of which only the labels are read.
func DecodeLabels(ref api.PolicyKind, data []byte) (Object, error) {
	return typed(ref, data, func(o *metav1.PartialObjectMetadata) *gateway.Labeled { return gateway.FromMetadata(ref, o) })
}

// stateOf returns the uid and resourceVersion of an object, zero if they cannot be
// decoded.
func stateOf(data []byte) policykind.State {
	type object struct {
		Metadata struct {
			UID     string `json:"uid"`
			Version string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	o, err := decode.As[object](data)
	if err != nil {
		return policykind.State{}
	}
	return policykind.State{UID: o.Metadata.UID, Version: o.Metadata.Version}
}

func route(ref api.PolicyKind, data []byte, known *gateway.Route, created int64) (Object, error) {
	r, err := gateway.ReadRoute(ref.Kind, data, known, created)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", ref, err)
	}
	return r, nil
}
