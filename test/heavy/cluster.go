// Package heavy has writes that are expensive because of their size, and the
// clusters for them: a webhook must evaluate each in time, or deny it with a
// reason.
package heavy

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// World builds a cluster.
type World struct {
	Store   *snapshot.Store
	kinds   map[api.PolicyKind]*policykind.Kind
	changes []snapshot.Change
	err     error // the first
}

// newWorld has the built-in kinds, and one whose lists are merged item by item.
func newWorld() *World {
	w := &World{Store: snapshot.New(), kinds: make(map[api.PolicyKind]*policykind.Kind)}
	kinds, err := policykind.BuiltinKinds()
	w.fail(err)
	lists, err := listKind()
	w.fail(err)
	if w.err != nil {
		return w
	}
	for _, k := range append(kinds, lists) {
		w.kinds[k.Ref()] = k
		w.Store.AddKind(k)
		w.Store.KindListed(k.Ref())
	}
	return w
}

func (w *World) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// object is an object as the API server returns it.
type object = map[string]any

// put adds objects to the cluster, read as watch events are.
func (w *World) put(objects ...object) {
	for _, o := range objects {
		if read := w.read(o); read != nil {
			w.changes = append(w.changes, snapshot.Put(read))
		}
	}
}

func (w *World) read(o object) snapshot.Object {
	data, err := json.Marshal(o)
	if err != nil {
		w.fail(err)
		return nil
	}
	kind := kindOf(o)
	read, err := snapshot.Decode(kind, w.kinds[kind], data, 0)
	w.fail(err)
	if p, ok := read.(*policykind.Policy); ok {
		return p.Pack() // as a watched one
	}
	return read
}

// putAlike adds a policy to each of the routes. Their content is in memory only
// once: only the evaluation is measured.
func (w *World) putAlike(first object, routes int) {
	p, ok := w.read(first).(*policykind.Policy)
	if !ok || p.Invalid != nil || len(p.Targets) != 1 {
		w.fail(fmt.Errorf("%v is not a policy with one target", first["kind"]))
		return
	}
	for i := range routes {
		one := *p
		one.Name, one.Version = routeName(i), policykind.NextVersion()
		one.Targets = []policykind.Target{p.Targets[0]}
		one.Targets[0].Ref.Name = routeName(i)
		w.changes = append(w.changes, snapshot.Put(&one))
	}
}

// kindOf returns the kind of an object.
func kindOf(o object) api.PolicyKind {
	version, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	group, _, ok := strings.Cut(version, "/")
	if !ok {
		group = ""
	}
	return api.PolicyKind{Group: group, Kind: kind}
}

// Write is a write of one object. Before is nil on a create, After on a delete.
type Write struct{ Before, After object }

// Review returns the AdmissionReview of a write, as an API server sends it.
func (w Write) Review(uid types.UID) ([]byte, error) {
	r := &admissionv1.AdmissionRequest{UID: uid, UserInfo: authenticationv1.UserInfo{Username: "jane"}}
	for _, side := range []struct {
		object
		raw *runtime.RawExtension
	}{{w.Before, &r.OldObject}, {w.After, &r.Object}} {
		if side.object == nil {
			continue
		}
		var err error
		if side.raw.Raw, err = json.Marshal(side.object); err != nil {
			return nil, err
		}
		kind := kindOf(side.object)
		r.Kind = metav1.GroupVersionKind{Group: kind.Group, Version: "v1", Kind: kind.Kind}
		meta, _ := side.object["metadata"].(object)
		r.Namespace, _ = meta["namespace"].(string)
		r.Name, _ = meta["name"].(string)
	}
	r.Operation = w.operation()
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: r,
	})
}

func (w Write) operation() admissionv1.Operation {
	switch {
	case w.Before == nil:
		return admissionv1.Create
	case w.After == nil:
		return admissionv1.Delete
	default:
		return admissionv1.Update
	}
}
