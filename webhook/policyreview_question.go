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
	if errs := validateSizes(spec, at); len(errs) > 0 {
		return nil, errs
	}
	errs := validateObject(v, namespace, &spec.Object, at.Child("object"))
	q := &lookup.Query{View: v, Section: spec.Object.Section, Kinds: spec.PolicyKinds, Parts: spec.Parts, Limited: true}
	for i, k := range spec.PolicyKinds {
		if v.Kind(k) == nil {
			errs = append(errs, fieldpath.NotSupported(at.Child("policyKinds").Index(i), k.String(), policyKindNames(v)))
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

// Limits of a question, as in its schema. The headers have one for all of them, since
// answers repeat them.
const (
	maxPolicyKinds = 32
	maxParts       = 4
	maxHeaders     = 64
	maxHeaderBytes = 16 << 10
	maxKindName    = 63
	maxName        = 253
	maxRule        = 1024
	maxMethod      = 64
	maxURL         = 8192
	maxGateway     = 512
)

// validateSizes holds a question to its limits before anything else is read of it: other
// errors name what is supported, once for each item, and quote values.
func validateSizes(spec *api.ReviewSpec, at *fieldpath.Path) fieldpath.ErrorList {
	var errs fieldpath.ErrorList
	length := func(at *fieldpath.Path, value string, limit int) {
		if len(value) > limit {
			errs = append(errs, fieldpath.TooLong(at, "", limit))
		}
	}
	count := func(at *fieldpath.Path, n, limit int) bool {
		if n > limit {
			errs = append(errs, fieldpath.TooMany(at, n, limit))
		}
		return n <= limit
	}
	o, object := &spec.Object, at.Child("object")
	length(object.Child("group"), o.Group, maxName)
	length(object.Child("kind"), o.Kind, maxKindName)
	length(object.Child("namespace"), o.Namespace, maxKindName)
	length(object.Child("name"), o.Name, maxName)
	length(object.Child("section"), o.Section, maxName)
	length(at.Child("rule"), spec.Rule, maxRule)
	if kinds := at.Child("policyKinds"); count(kinds, len(spec.PolicyKinds), maxPolicyKinds) {
		for i, k := range spec.PolicyKinds {
			length(kinds.Index(i), k.Group, maxName)
			length(kinds.Index(i), k.Kind, maxKindName)
		}
	}
	if parts := at.Child("parts"); count(parts, len(spec.Parts), maxParts) {
		for i, part := range spec.Parts {
			length(parts.Index(i), string(part), maxKindName)
		}
	}
	if r, request := spec.Request, at.Child("request"); r != nil {
		length(request.Child("method"), r.Method, maxMethod)
		length(request.Child("url"), r.URL, maxURL)
		length(request.Child("gateway"), r.Gateway, maxGateway)
		length(request.Child("serverName"), r.ServerName, maxName)
		length(request.Child("clientNamespace"), r.ClientNamespace, maxKindName)
		if count(request.Child("headers"), len(r.Headers), maxHeaders) {
			length(request.Child("headers"), strings.Join(r.Headers, ""), maxHeaderBytes)
		}
	}
	return errs
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
		ServerName: r.ServerName, ClientNamespace: r.ClientNamespace, Name: requestFieldName, Namespace: namespace, Explain: true,
	}
}

// requestFieldName returns the field of a review for a field of a request.
func requestFieldName(f lookup.Field) string {
	switch f {
	case lookup.FieldGateway:
		return "spec.request.gateway"
	case lookup.FieldPort:
		return "spec.request.port"
	case lookup.FieldServerName:
		return "spec.request.serverName"
	case lookup.FieldClientNamespace:
		return "spec.request.clientNamespace"
	default:
		return "spec.request.url"
	}
}
