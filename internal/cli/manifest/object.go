package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Object is one object of a file.
type Object struct {
	At Position
	// Kind of the object.
	Kind api.PolicyKind
	// Name and Namespace as they stand in the file, either may be empty.
	Namespace, Name string

	created string // as it stands in the file
	content map[string]any
}

// FromObjects returns the set of objects that come from elsewhere than files, as
// the API server writes them; from names that place in errors.
func FromObjects(from string, objects []map[string]any) (*Set, error) {
	var r reader
	for i, content := range objects {
		r.addObject(Position{File: from, Item: i + 1}, content)
	}
	return &r.set, errors.Join(r.errs...)
}

// object takes an object, or the items of a list.
func (r *reader) addObject(at Position, content map[string]any) {
	o, err := newObject(at, content)
	if err != nil {
		r.fail(err)
		return
	}
	items, isList := content["items"].([]any)
	if !isList && o.Kind.Kind == "List" && content["items"] != nil {
		r.fail(at.errorf("items must be a list, not %s", typeName(content["items"])))
		return
	}
	if !isList || !strings.HasSuffix(o.Kind.Kind, "List") {
		r.set.Objects = append(r.set.Objects, o)
		return
	}
	for i, item := range items {
		at.Item = i + 1
		object, ok := item.(map[string]any)
		if !ok {
			r.fail(at.errorf("%w: an object must be here, not %s", ErrFormat, typeName(item)))
			continue
		}
		r.addObject(at, o.item(object))
	}
}

// item returns an item of a typed list with the kind that an answer of the API
// server leaves out.
func (o *Object) item(object map[string]any) map[string]any {
	kind := strings.TrimSuffix(o.Kind.Kind, "List")
	if kind == "" || object["kind"] != nil {
		return object
	}
	out := maps.Clone(object)
	out["kind"], out["apiVersion"] = kind, o.content["apiVersion"]
	return out
}

func newObject(at Position, content map[string]any) (*Object, error) {
	o := &Object{At: at, content: content}
	var errs []error
	text := func(in map[string]any, name, path string) string {
		value, ok := in[name].(string)
		if !ok && in[name] != nil {
			errs = append(errs, at.errorf("%s must be a text, not %s", path, typeName(in[name])))
		}
		return value
	}
	o.Kind.Kind = text(content, "kind", "kind")
	version := text(content, "apiVersion", "apiVersion")
	metadata, ok := content["metadata"].(map[string]any)
	if !ok && content["metadata"] != nil {
		errs = append(errs, at.errorf("metadata must be a map, not %s", typeName(content["metadata"])))
	}
	o.Name, o.Namespace = text(metadata, "name", "metadata.name"), text(metadata, "namespace", "metadata.namespace")
	o.created = text(metadata, "creationTimestamp", "metadata.creationTimestamp")
	switch {
	case len(errs) > 0:
	case o.Kind.Kind == "":
		errs = append(errs, at.errorf("kind is missing; is this a Kubernetes manifest?"))
	case version == "":
		errs = append(errs, at.errorf("apiVersion is missing beside kind %s", o.Kind.Kind))
	}
	if group, _, found := strings.Cut(version, "/"); found {
		o.Kind.Group = group
	}
	return o, errors.Join(errs...)
}

// Ref names the object. One of a namespaced kind that names no namespace is in
// the given one.
func (o *Object) Ref(kinds *Kinds, namespace string) api.Ref {
	ref := api.Ref{Group: o.Kind.Group, Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name}
	switch {
	case kinds.ClusterScoped(o.Kind):
		ref.Namespace = ""
	case ref.Namespace == "":
		ref.Namespace = namespace
	}
	return ref
}

// String names the object as messages do.
func (o *Object) String() string {
	return api.Ref{Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// Decode reads the object for the store. created stands in for the creation
// time of a policy that has none; forget takes the one that it has away.
//
// The error is store.ErrKind for a kind that the store does not hold, else an
// *Error.
func (o *Object) Decode(kinds *Kinds, namespace string, created int64, forget bool) (snapshot.Object, error) {
	if !kinds.Reads(o.Kind) {
		return nil, fmt.Errorf("%s: %w", o.Kind, snapshot.ErrKind)
	}
	if o.Name == "" {
		return nil, o.At.errorf("%s has no metadata.name; give it one", o.Kind.Kind)
	}
	if _, err := time.Parse(time.RFC3339, o.created); o.created != "" && err != nil {
		return nil, o.At.errorf("%s has metadata.creationTimestamp %q: write it like 2026-01-31T12:00:00Z, or leave it out", o, o.created)
	}
	data, err := json.Marshal(o.withNamespace(o.Ref(kinds, namespace).Namespace, forget))
	if err != nil {
		return nil, o.At.errorf("write %s as JSON: %w", o, err)
	}
	err = validateTypes(o.Kind, data)
	var out snapshot.Object
	if err == nil {
		out, err = snapshot.Decode(o.Kind, kinds.Of(o.Kind), data, created)
	}
	if err != nil {
		return nil, o.At.errorf("%s does not fit its kind: %w; correct the field", o, err)
	}
	return out, nil
}

// placed returns the content with the namespace that the API server would give
// it.
func (o *Object) withNamespace(namespace string, forget bool) map[string]any {
	out := maps.Clone(o.content)
	given, _ := out["metadata"].(map[string]any)
	metadata := maps.Clone(given)
	delete(metadata, "namespace")
	if namespace != metav1.NamespaceNone {
		metadata["namespace"] = namespace
	}
	if forget {
		delete(metadata, "creationTimestamp")
	}
	out["metadata"] = metadata
	return out
}

// Coerced returns the object as the API server would read it by the schema of its
// kind: without what that does not have, and with its defaults. was is the schema
// before (policykind.Schema.Coerce).
func (o *Object) Coerced(k *policykind.Kind, was *policykind.Schema) *Object {
	out := *o
	out.content = runtime.DeepCopyJSON(o.content)
	k.Schema().Coerce(out.content, was)
	return &out
}

// Annotation returns an annotation of the object, "" if it does not have it.
func (o *Object) Annotation(name string) string { return o.unstructured().GetAnnotations()[name] }

// Owners returns the ownerReferences of the object.
func (o *Object) Owners() []metav1.OwnerReference { return o.unstructured().GetOwnerReferences() }

func (o *Object) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.content}
}
