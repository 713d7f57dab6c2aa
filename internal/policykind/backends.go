package policykind

import (
	"cmp"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Backend is a backend that a policy refers to.
type Backend struct {
	Object api.Ref
	// Port number, 0 if the reference has none.
	Port int32
}

// backends sets the backends that the content of a policy refers to, in the fields that
// Gateway API's conventions name backendRef and backendRefs.
func (r *reader) backends(content any) {
	switch value := content.(type) {
	case map[string]any:
		for name, child := range value {
			switch name {
			case "backendRef":
				r.backend(child)
			case "backendRefs":
				list, _ := child.([]any)
				for _, ref := range list {
					r.backend(ref)
				}
			}
			r.backends(child)
		}
	case []any:
		for _, item := range value {
			r.backends(item)
		}
	}
}

// backend adds the backend of a reference, whose kind is Service if it has none.
func (r *reader) backend(reference any) {
	fields, _ := reference.(map[string]any)
	field := func(name string) string {
		text, _ := fields[name].(string)
		return text
	}
	if field("name") == "" {
		return
	}
	port, _ := fields["port"].(int64)
	r.policy.Backends = append(r.policy.Backends, Backend{Object: api.Ref{
		Group: field("group"), Kind: cmp.Or(field("kind"), kindService),
		Namespace: cmp.Or(field("namespace"), r.policy.Namespace), Name: field("name"),
	}, Port: int32(port)}) //nolint:gosec // a port of the schema
}
