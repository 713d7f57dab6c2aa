package effective

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// root is where paths start: a gateway or a service.
type root struct {
	gateway *gateway.Gateway
	service *gateway.Service
}

func (r root) object() snapshot.Object {
	if r.service != nil {
		return r.service
	}
	return r.gateway
}

// Ref returns the reference of the object.
func (r root) Ref() api.Ref { return r.object().Ref() }

func (r root) isZero() bool { return r == root{} }

// list returns the root, or nothing if it is zero.
func (r root) list() []root {
	if r.isZero() {
		return nil
	}
	return []root{r}
}
