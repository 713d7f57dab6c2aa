package replay

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"strconv"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// Object is an object as it is stored, with its resource version.
type Object = unstructured.Unstructured

// Write is a write that was stored.
type Write struct {
	// Version is its resource version.
	Version int64
	Ref     api.Ref
	// Object is the object as it was stored, nil if it was deleted.
	Object *Object
}

// History is what was stored in a cluster: all objects at one moment, and the writes
// after it, in the order of their resource versions.
type History struct {
	Objects []*Object
	// Writes yields the writes, or an error for one that cannot be decoded. They are
	// decoded each time: a long history has more than fits into memory.
	Writes iter.Seq2[Write, error]
}

// newHistory decodes the content of etcd and the changes after it.
func newHistory(content []keyValue, changes []change) (*History, error) {
	out, known := &History{}, make(map[string]api.Ref) // by key
	for _, kv := range content {
		o, err := decodeObject(kv)
		if err != nil {
			return nil, err
		}
		if o != nil {
			known[string(kv.Key)] = refOf(o)
			out.Objects = append(out.Objects, o)
		}
	}
	out.Writes = func(yield func(Write, error) bool) {
		names := maps.Clone(known)
		for _, c := range changes {
			w, err := decodeWrite(c, names)
			if (w != Write{} || err != nil) && !yield(w, err) {
				return
			}
		}
	}
	return out, nil
}

// decodeWrite decodes a change. names are the objects by key, and are updated. It returns
// the zero Write for what is not a write of an object.
func decodeWrite(c change, names map[string]api.Ref) (Write, error) {
	key := string(c.KeyValue.Key)
	if c.Type == typeDelete {
		ref, ok := names[key]
		if !ok {
			return Write{}, nil
		}
		delete(names, key)
		return Write{Version: c.KeyValue.Revision, Ref: ref}, nil
	}
	o, err := decodeObject(c.KeyValue)
	if o == nil || err != nil {
		return Write{}, err
	}
	names[key] = refOf(o)
	return Write{c.KeyValue.Revision, refOf(o), o}, nil
}

// protobufPrefix is that of objects that are stored as protobuf. All others are JSON.
var protobufPrefix = []byte("k8s\x00")

// decodeObject decodes a value of etcd. It returns nil for what is not an object, and
// for protobuf of a kind that client-go does not have.
func decodeObject(kv keyValue) (*Object, error) {
	if !isRecorded(kv.Key) {
		return nil, nil
	}
	o := &Object{}
	var err error
	switch {
	case bytes.HasPrefix(kv.Value, protobufPrefix):
		o.Object, err = decodeProtobuf(kv.Value)
	case bytes.HasPrefix(kv.Key, []byte(registryOfDefinitions)):
		o.Object, err = decodeDefinition(kv.Value)
	default:
		o.Object, err = decode.Object(kv.Value)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s of etcd: %w", kv.Key, err)
	}
	if o.GetKind() == "" || o.GetName() == "" {
		return nil, nil
	}
	o.SetResourceVersion(strconv.FormatInt(kv.Revision, 10))
	o.SetManagedFields(nil)
	return o, nil
}

func decodeProtobuf(value []byte) (map[string]any, error) {
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return withKind(typed, *kind)
}

// definitions is the scheme of CustomResourceDefinitions.
var definitions = sync.OnceValue(func() *runtime.Scheme {
	known := runtime.NewScheme()
	install.Install(known)
	return known
})

// decodeDefinition decodes a CustomResourceDefinition. It is stored as v1beta1, which has
// the schema of a single version in another field.
func decodeDefinition(value []byte) (map[string]any, error) {
	known := definitions()
	internal, err := runtime.Decode(serializer.NewCodecFactory(known).UniversalDecoder(), value)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := known.Convert(internal, crd, nil); err != nil {
		return nil, err
	}
	return withKind(crd, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
}

func withKind(typed runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	(&Object{Object: content}).SetGroupVersionKind(kind)
	return content, nil
}

// registry is the prefix of the keys of objects. Events and Leases are written all the
// time and have no effect on policies.
const (
	registry              = "/registry/"
	registryOfDefinitions = registry + "apiextensions.k8s.io/customresourcedefinitions/"
)

func isRecorded(key []byte) bool {
	resource, ok := bytes.CutPrefix(key, []byte(registry))
	return ok && !bytes.HasPrefix(resource, []byte("events/")) && !bytes.HasPrefix(resource, []byte("leases/"))
}

func refOf(o *Object) api.Ref {
	kind := o.GroupVersionKind()
	return api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}
