package webhook

import (
	"cmp"
	"slices"
	"strings"

	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// reviewDocument is the part of an EffectivePolicyReview that is read. Its status is not.
type reviewDocument struct {
	Spec api.ReviewSpec `json:"spec"`
}

// objectOf returns the reference of the object of a review in a namespace.
func objectOf(o *api.ReviewObject, namespace string) api.Ref {
	return api.Ref{Group: o.Group, Kind: o.Kind, Namespace: namespace, Name: o.Name}
}

// question returns the query of a review in a namespace, without its object. The API
// server validates the schema after mutating webhooks: nothing is valid yet.
func question(v *snapshot.View, namespace string, spec *api.ReviewSpec) (*lookup.Query, fieldpath.ErrorList) {
	at := fieldpath.NewPath("spec")
	errs := validateObject(v, namespace, &spec.Object, at.Child("object"))
	q := &lookup.Query{View: v, Section: spec.Object.Section, Kinds: spec.PolicyKinds, Parts: spec.Parts, Limited: true}
	for i, k := range spec.PolicyKinds {
		if v.Kind(k) == nil {
			errs = append(errs, fieldpath.NotSupported(at.Child("policyKinds").Index(i), k.String(), policyKindNames(v)))
			break // the message names all kinds
		}
	}
	if spec.Rule != "" {
		rule, err := merge.ParseName(spec.Rule)
		if err != nil {
			errs = append(errs, fieldpath.Invalid(at.Child("rule"), spec.Rule, err.Error()))
		}
		q.Rule = &rule
	}
	for i, part := range spec.Parts {
		if !slices.Contains(allParts, part) {
			errs = append(errs, fieldpath.NotSupported(at.Child("parts").Index(i), part, allParts))
			break
		}
	}
	if len(q.Parts) == 0 {
		q.Parts = defaultParts(q.Rule)
	}
	if spec.MaxPaths != nil {
		if q.MaxPaths = int(*spec.MaxPaths); q.MaxPaths < 1 {
			errs = append(errs, fieldpath.Invalid(at.Child("maxPaths"), q.MaxPaths, "must be at least 1"))
		}
	}
	if spec.Request != nil {
		q.Asked = requestOf(spec.Request, namespace)
		if _, err := q.Asked.Parse(); err != nil {
			errs = append(errs, fieldpath.Invalid(at.Child("request"), spec.Request.URL, err.Error()))
		}
	}
	return q, errs
}

var allParts = []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations, api.ReviewReaches}

// defaultParts returns the parts of an answer if the question names none.
func defaultParts(rule *merge.Name) []api.ReviewPart {
	if rule != nil {
		return []api.ReviewPart{api.ReviewExplanations}
	}
	return []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations}
}

// validateObject validates the object of a review, whether it exists or not.
func validateObject(v *snapshot.View, namespace string, o *api.ReviewObject, at *fieldpath.Path) fieldpath.ErrorList {
	var errs fieldpath.ErrorList
	kind := api.PolicyKind{Group: o.Group, Kind: o.Kind}
	switch {
	case o.Kind == "":
		errs = append(errs, fieldpath.Required(at.Child("kind"), ""))
	case gateway.ClusterScoped(kind):
		errs = append(errs, fieldpath.Invalid(at.Child("kind"), kind.String(), "is not namespaced; ask about an object of a namespace, such as a Gateway"))
	case !gateway.Known(kind) && v.Kind(kind) == nil:
		errs = append(errs, fieldpath.NotSupported(at.Child("kind"), kind.String(), append(hierarchyKindNames(), policyKindNames(v)...)))
	}
	if o.Name == "" {
		errs = append(errs, fieldpath.Required(at.Child("name"), ""))
	}
	if cmp.Or(o.Namespace, namespace) != namespace {
		errs = append(errs, fieldpath.Invalid(at.Child("namespace"), o.Namespace, "must be "+namespace+", the namespace of the review; create the review in the namespace of the object"))
	}
	return errs
}

// hierarchyKindNames returns the kinds of namespaced objects that paths go through.
func hierarchyKindNames() []string {
	out := []string{gateway.KindService}
	for _, kind := range gateway.GatewayKinds {
		if k := gateway.KindOf(kind); !gateway.ClusterScoped(k) {
			out = append(out, k.String())
		}
	}
	return out
}

// policyKindNames returns the policy kinds of the cluster.
func policyKindNames(v *snapshot.View) []string {
	var out []string
	for _, k := range v.Kinds() {
		out = append(out, k.Ref().String())
	}
	return out
}

// requestOf returns the request of a review.
func requestOf(r *api.ReviewRequest, namespace string) *lookup.Request {
	return &lookup.Request{
		Line: strings.TrimSpace(r.Method + " " + r.URL), Headers: r.Headers, Gateway: r.Gateway, Port: r.Port,
		ServerName: r.ServerName, ClientNamespace: r.ClientNamespace, Names: requestFieldNames, Namespace: namespace, Explain: true,
	}
}

// requestFieldNames are the fields of a review for those of a request.
var requestFieldNames = lookup.Names{
	Line: "spec.request.url", Gateway: "spec.request.gateway", Port: "spec.request.port",
	ServerName: "spec.request.serverName", ClientNamespace: "spec.request.clientNamespace",
}
