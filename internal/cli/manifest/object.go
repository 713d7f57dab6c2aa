package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Object is an undecoded object of a file.
type Object struct {
	At Position
	// Kind is the group and kind of the object.
	Kind api.PolicyKind
	// Namespace and Name are those in the file. Either may be empty.
	Namespace, Name string

	created string // metadata.creationTimestamp in the file
	content map[string]any
	origin  origin
}

// FromObjects returns a set of objects from an API server. from names their source
// in errors.
func FromObjects(from string, objects []map[string]any) (*Set, error) {
	var r reader
	for i, content := range objects {
		r.addObject(Position{File: from, Item: i + 1}, content, origin{})
	}
	return &r.set, errors.Join(r.errs...)
}

// addObject adds an object, or the items of a list.
func (r *reader) addObject(at Position, content map[string]any, from origin) {
	o, err := newObject(at, content)
	if err != nil {
		r.fail(err)
		return
	}
	o.origin = from
	items, isList := content["items"].([]any)
	if !isList && o.Kind.Kind == "List" && content["items"] != nil {
		r.fail(at.errorf("items must be of type array, not %s", typeName(content["items"])))
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
			r.fail(at.errorf("%w: must be of type object, not %s", ErrFormat, typeName(item)))
			continue
		}
		r.addObject(at, o.item(object), from.item(i))
	}
}

// item returns an item of a typed list with its apiVersion and kind, which lists of
// the API server omit.
func (o *Object) item(object map[string]any) map[string]any {
	kind := strings.TrimSuffix(o.Kind.Kind, "List")
	if kind == "" || object["kind"] != nil {
		return object
	}
	out := maps.Clone(object)
	out["kind"], out["apiVersion"] = kind, o.content["apiVersion"]
	return out
}

// renderHint returns how to render the manifests of a file that has none itself.
func renderHint(file string) string {
	switch strings.ToLower(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))) {
	case "kustomization":
		return "; this is a kustomization: render it first with kubectl kustomize, or kustomize build"
	case "chart", "values":
		return "; this looks like a file of a Helm chart: render it first with helm template"
	default:
		return ""
	}
}

func newObject(at Position, content map[string]any) (*Object, error) {
	o := &Object{At: at, content: content}
	var errs []error
	text := func(in map[string]any, name, path string) string {
		value, ok := in[name].(string)
		if !ok && in[name] != nil {
			errs = append(errs, at.errorf("%s must be of type string, not %s", path, typeName(in[name])))
		}
		return value
	}
	o.Kind.Kind = text(content, "kind", "kind")
	version := text(content, "apiVersion", "apiVersion")
	metadata, ok := content["metadata"].(map[string]any)
	if !ok && content["metadata"] != nil {
		errs = append(errs, at.errorf("metadata must be of type object, not %s", typeName(content["metadata"])))
	}
	o.Name, o.Namespace = text(metadata, "name", "metadata.name"), text(metadata, "namespace", "metadata.namespace")
	o.created = text(metadata, "creationTimestamp", "metadata.creationTimestamp")
	switch {
	case len(errs) > 0:
	case o.Kind.Kind == "":
		errs = append(errs, at.errorf("kind is required%s", renderHint(at.File)))
	case version == "":
		errs = append(errs, at.errorf("apiVersion is required for kind %s", o.Kind.Kind))
	}
	for _, value := range []string{o.Kind.Kind, version, o.Name, o.Namespace} {
		if strings.Contains(value, "{{") {
			errs = append(errs, at.errorf("%w: %q looks like a template: render it first, for example with helm template", ErrFormat, value))
			break
		}
	}
	if group, _, found := strings.Cut(version, "/"); found {
		o.Kind.Group = group
	}
	if o.Kind == kindSecret {
		o.content = withoutSecrets(content, metadata)
	}
	return o, errors.Join(errs...)
}

var kindSecret = api.PolicyKind{Kind: "Secret"}

// withoutSecrets returns what identifies a Secret. Nothing else of it is kept, so that it
// is in no output: annotations have copies of the data.
func withoutSecrets(content, metadata map[string]any) map[string]any {
	kept := make(map[string]any)
	for _, name := range []string{"name", "namespace"} {
		if value, ok := metadata[name]; ok {
			kept[name] = value
		}
	}
	return map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"], "metadata": kept}
}

// Ref returns the reference of the object. A namespaced object without a namespace
// gets the given one.
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

// String returns the kind, namespace and name of the object for messages.
func (o *Object) String() string {
	return api.Ref{Kind: o.Kind.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// Decode decodes the object for the snapshot. created, in seconds since 1970, is
// the creation time of a policy without one, or of any policy with resetCreation.
//
// The error is snapshot.ErrKind for a kind that is not read; any other has a position.
func (o *Object) Decode(kinds *Kinds, namespace string, created int64, resetCreation bool) (snapshot.Object, error) {
	if !kinds.Reads(o.Kind) {
		return nil, fmt.Errorf("%s: %w", o.Kind, snapshot.ErrKind)
	}
	if o.Name == "" {
		return nil, o.At.errorf("%s: metadata.name is required", o.Kind.Kind)
	}
	if _, err := time.Parse(time.RFC3339, o.created); o.created != "" && err != nil {
		return nil, o.At.errorf("%s: invalid metadata.creationTimestamp %q: must be an RFC 3339 time such as 2026-01-31T12:00:00Z", o, o.created)
	}
	var out snapshot.Object
	err := o.decode(o.withNamespace(o.Ref(kinds, namespace).Namespace, resetCreation), func(data []byte) error {
		err := validateTypes(o.Kind, data)
		switch {
		case err != nil:
		case kinds.Selectable(o.Kind):
			out, err = snapshot.DecodeLabels(o.Kind, data)
		default:
			out, err = snapshot.Decode(o.Kind, kinds.Of(o.Kind), data, created)
		}
		return err
	})
	return out, err
}

// decode decodes the content of the object, which is passed as JSON.
func (o *Object) decode(content map[string]any, into func([]byte) error) error {
	data, err := json.Marshal(content)
	if err != nil {
		return o.At.errorf("encode %s as JSON: %w", o, err)
	}
	if err := into(data); err != nil {
		return o.At.errorf("%s is invalid: %w; correct the field", o, err)
	}
	return nil
}

// withNamespace returns the content with the namespace that the API server would
// set, and with resetCreation without its creation time.
func (o *Object) withNamespace(namespace string, resetCreation bool) map[string]any {
	out := maps.Clone(o.content)
	given, _ := out["metadata"].(map[string]any)
	metadata := maps.Clone(given)
	delete(metadata, "namespace")
	if namespace != metav1.NamespaceNone {
		metadata["namespace"] = namespace
	}
	if resetCreation {
		delete(metadata, "creationTimestamp")
	}
	out["metadata"] = metadata
	return out
}

// Coerced returns the object as the API server would read it with the schema of its
// kind: with unknown fields pruned and defaults set.
func (o *Object) Coerced(k *policykind.Kind) *Object {
	out := *o
	out.content = runtime.DeepCopyJSON(o.content)
	k.Schema().Coerce(out.content)
	return &out
}

// Annotation returns an annotation of the object, "" if it does not have it.
func (o *Object) Annotation(name string) string { return o.unstructured().GetAnnotations()[name] }

// Owners returns the ownerReferences of the object.
func (o *Object) Owners() []metav1.OwnerReference { return o.unstructured().GetOwnerReferences() }

// Content returns the object as it was read. It must not be edited.
func (o *Object) Content() map[string]any { return o.unstructured().Object }

func (o *Object) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.content}
}
