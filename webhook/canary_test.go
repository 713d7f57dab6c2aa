package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestIsCanary(t *testing.T) {
	const (
		labelled = `"metadata":{"labels":{"overrule.dev/canary":"true"}}`
		madeUp   = `{` + labelled + `,"spec":{"group":"canary.overrule.dev","kind":"CanaryPolicy","class":"direct","targets":{}}}`
		orphan   = `{` + labelled + `,"spec":{"rules":[{}]}}`
	)
	profile := metav1.GroupVersionKind{Group: "overrule.dev", Version: "v1alpha1", Kind: "PolicyProfile"}
	route := metav1.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	type request = admissionv1.AdmissionRequest
	for name, c := range map[string]struct {
		kind   metav1.GroupVersionKind
		object string
		change func(*request)
		want   bool
	}{
		"a profile of a made-up kind": {profile, madeUp, nil, true},
		"a route without parents":     {route, orphan, nil, true},

		"what is stored":                         {profile, madeUp, func(r *request) { r.DryRun = new(false) }, false},
		"what does not say whether it is stored": {profile, madeUp, func(r *request) { r.DryRun = nil }, false},
		"an update":                              {profile, madeUp, func(r *request) { r.Operation = admissionv1.Update }, false},
		"no label":                               {profile, `{"metadata":{},"spec":{"group":"canary.overrule.dev"}}`, nil, false},
		"another label":                          {profile, `{"metadata":{"labels":{"other":"true"}},"spec":{"group":"canary.overrule.dev"}}`, nil, false},
		"no JSON":                                {profile, `{"metadata":`, nil, false},
		"a profile of a kind that there is":      {profile, `{` + labelled + `,"spec":{"group":"kuadrant.io","kind":"RateLimitPolicy"}}`, nil, false},
		"a route with a parent":                  {route, `{` + labelled + `,"spec":{"parentRefs":[{"name":"gw"}]}}`, nil, false},
		"a route of the default gateways":        {route, `{` + labelled + `,"spec":{"useDefaultGateways":"All"}}`, nil, false},
		"a route of another sort":                {metav1.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GRPCRoute"}, orphan, nil, false},
		"a policy":                               {metav1.GroupVersionKind{Group: "kuadrant.io", Version: "v1", Kind: "RateLimitPolicy"}, `{` + labelled + `,"spec":{"limits":{}}}`, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &request{Kind: c.kind, Operation: admissionv1.Create, DryRun: new(true), Object: runtime.RawExtension{Raw: []byte(c.object)}}
			if c.change != nil {
				c.change(r)
			}
			assert.Equal(t, c.want, isCanary(r))
		})
	}
}
