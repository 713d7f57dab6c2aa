package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// routeSpec has the fields of a route's spec that are decoded.
type routeSpec struct {
	gatewayv1.CommonRouteSpec `json:",inline"`

	Hostnames []gatewayv1.Hostname `json:"hostnames"`
	Rules     []routeRule          `json:"rules"`
}

type routeRule struct {
	Name        *gatewayv1.SectionName `json:"name"`
	Matches     json.RawMessage        `json:"matches"`
	BackendRefs []backendRef           `json:"backendRefs"`
	Filters     []routeFilter          `json:"filters"`
}

type routeFilter struct {
	ExtensionRef *gatewayv1.LocalObjectReference `json:"extensionRef"`
}

type backendRef struct {
	gatewayv1.BackendObjectReference `json:",inline"`

	Weight *int32 `json:"weight"`
}

// routeJSON has the fields of a route that are decoded.
type routeJSON struct {
	Metadata routeMeta       `json:"metadata"`
	Spec     json.RawMessage `json:"spec"`
}

type routeMeta struct {
	Namespace   string            `json:"namespace"`
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Created     metav1.Time       `json:"creationTimestamp"`
}

// created returns a creation time in seconds since 1970, or other if there is none.
func created(t metav1.Time, other int64) int64 {
	if t.IsZero() {
		return other
	}
	return t.Unix()
}

// ReadRoute decodes a route of a kind from JSON, as FromRoute does. undated is the creation
// time of a route without one.
//
// It returns known, which may be nil, if known was decoded from the same JSON: this
// saves most of the work.
func ReadRoute(kind string, data []byte, known *Route, undated int64) (*Route, error) {
	t, err := decode.As[routeJSON](data)
	if err != nil {
		return nil, err
	}
	if known != nil && hasSource(known, kind, t, undated) {
		return known, nil
	}
	return newRoute(kind, t.Metadata, t.Spec, undated)
}

// hasSource reports whether the route was decoded from the same JSON.
func hasSource(r *Route, kind string, t *routeJSON, undated int64) bool {
	return r.Kind == kind && r.Created == created(t.Metadata.Created, undated) && r.Name == t.Metadata.Name && r.Namespace == namespace(t.Metadata.Namespace) &&
		bytes.Equal(r.spec, t.Spec) && maps.Equal(r.Labels, t.Metadata.Labels) && maps.Equal(r.Annotations, annotations(t.Metadata.Annotations))
}

// FromRoute converts a route of a kind, defaulted as by the API server: an HTTPRoute
// without rules has one that matches everything. Without a creation time it is the
// newest.
func FromRoute(kind string, o *RouteObject) (*Route, error) {
	return newRoute(kind, routeMeta{o.Namespace, o.Name, o.Labels, o.Annotations, o.CreationTimestamp}, o.Spec, Newest)
}

func newRoute(kind string, meta routeMeta, text json.RawMessage, undated int64) (*Route, error) {
	spec := &routeSpec{}
	if len(text) > 0 {
		var err error
		if spec, err = decode.As[routeSpec](text); err != nil {
			return nil, fmt.Errorf("spec: %w", err)
		}
	}
	out := &Route{
		Kind: kind, Namespace: intern(namespace(meta.Namespace)), Name: meta.Name, Created: created(meta.Created, undated),
		Labels: meta.Labels, Annotations: annotations(meta.Annotations),
		spec: text,
	}
	for _, h := range spec.Hostnames {
		out.Hostnames = append(out.Hostnames, strings.ToLower(string(h)))
	}
	for i := range spec.ParentRefs {
		p, ref := parent(&spec.ParentRefs[i], out.Namespace)
		switch {
		case p != Parent{}:
			out.Parents = append(out.Parents, p)
		case !slices.Contains(out.Unread, ref):
			out.Unread = append(out.Unread, ref)
		}
	}
	if scope := spec.UseDefaultGateways; scope != "" && scope != gatewayv1.GatewayDefaultScopeNone {
		out.Unread = append(out.Unread, DefaultGateways)
	}
	if spec.Rules == nil && kind == KindHTTPRoute {
		spec.Rules = []routeRule{{}}
	}
	out.Rules = make([]Rule, len(spec.Rules))
	for i := range spec.Rules {
		out.Rules[i] = rule(&spec.Rules[i], out.Namespace)
	}
	return out, nil
}

// intern returns a string that shares its memory with all equal interned strings. The
// names of gateways, listeners and namespaces are in every route, and strings with the
// same memory compare fast.
func intern(text string) string { return unique.Make(text).Value() }

// annotations returns the annotations without those that only tools read, which can be
// long.
func annotations(all map[string]string) map[string]string {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name, _ string) bool {
		return name == corev1.LastAppliedConfigAnnotation || strings.HasPrefix(name, api.AnnotationPrefix)
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

func rule(r *routeRule, routeNamespace string) Rule {
	out := Rule{Name: string(ptr.Deref(r.Name, "")), matches: r.Matches}
	var weighted []Backend
	for i := range r.BackendRefs {
		b := backend(&r.BackendRefs[i], routeNamespace)
		if !slices.Contains(out.Backends, b) {
			out.Backends = append(out.Backends, b)
		}
		if ptr.Deref(r.BackendRefs[i].Weight, 1) != 0 {
			weighted = append(weighted, b)
		}
	}
	for _, b := range out.Backends {
		if !slices.Contains(weighted, b) {
			out.zeroWeight = append(out.zeroWeight, b)
		}
	}
	for _, f := range r.Filters {
		if f.ExtensionRef == nil {
			continue
		}
		ref := api.Ref{Group: intern(string(f.ExtensionRef.Group)), Kind: intern(string(f.ExtensionRef.Kind)), Namespace: routeNamespace, Name: string(f.ExtensionRef.Name)}
		if !slices.Contains(out.Extensions, ref) {
			out.Extensions = append(out.Extensions, ref)
		}
	}
	return out
}

func backend(ref *backendRef, routeNamespace string) Backend {
	return Backend{api.Ref{
		Group: intern(string(ptr.Deref(ref.Group, ""))), Kind: intern(string(ptr.Deref(ref.Kind, KindService))),
		Namespace: intern(string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(routeNamespace)))), Name: string(ref.Name),
	}, int32(ptr.Deref(ref.Port, 0))}
}

// parent converts a parentRef. For one of an unsupported kind, it returns a zero Parent
// and a reference to the object.
func parent(ref *gatewayv1.ParentReference, routeNamespace string) (p Parent, object api.Ref) {
	object = api.Ref{
		Group: string(ptr.Deref(ref.Group, api.GatewayGroup)), Kind: intern(string(ptr.Deref(ref.Kind, KindGateway))),
		Namespace: intern(string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(routeNamespace)))), Name: intern(string(ref.Name)),
	}
	if !isParent(object.PolicyKind()) {
		return Parent{}, object
	}
	return Parent{object.Kind, object.Namespace, object.Name, intern(string(ptr.Deref(ref.SectionName, ""))), int32(ptr.Deref(ref.Port, 0))}, object
}

// isParent reports whether a kind is supported as a parent of routes.
func isParent(k api.PolicyKind) bool {
	return k == api.PolicyKind{Kind: KindService} ||
		k == KindOf(k.Kind) && slices.Contains([]string{KindGateway, KindListenerSet, KindXListenerSet}, k.Kind)
}

// namespace defaults the namespace of an object from a file.
func namespace(name string) string {
	if name == "" {
		return metav1.NamespaceDefault
	}
	return name
}
