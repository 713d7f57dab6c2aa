package cache

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
)

// gatewayScheme decodes the kinds of Gateway API in each version that is read. All
// route kinds have the same type.
func gatewayScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for i := range gatewayKinds {
		b := &gatewayKinds[i]
		for _, v := range b.versions {
			gv := schema.GroupVersion{Group: b.kind.Group, Version: v}
			if !s.IsVersionRegistered(gv) {
				metav1.AddToGroupVersion(s, gv)
			}
			s.AddKnownTypeWithName(gv.WithKind(b.kind.Kind), b.example)
			s.AddKnownTypeWithName(gv.WithKind(b.kind.Kind+"List"), b.list)
		}
	}
	return s
}

// gatewayClients returns a client for each version of the Gateway API groups that is
// read.
func gatewayClients(cfg *rest.Config, httpClient *http.Client) (map[schema.GroupVersion]rest.Interface, error) {
	s := gatewayScheme()
	out := make(map[schema.GroupVersion]rest.Interface)
	for _, gv := range append(s.PrioritizedVersionsForGroup(api.GatewayGroup), s.PrioritizedVersionsForGroup(api.GatewayXGroup)...) {
		config := rest.CopyConfig(cfg)
		config.APIPath, config.GroupVersion = "/apis", &gv
		config.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
		client, err := rest.RESTClientForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, err
		}
		out[gv] = client
	}
	return out, nil
}
