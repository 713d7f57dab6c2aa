package cache

import (
	"context"
	"errors"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Rewritten returns the views as they would be if the policies of a kind were
// written by other versions than the one that is read (guard.Versions): by each that
// the write of its definition brings or changes. v is the view after that write. A
// version by which no policy changes is left out.
func (w *Watcher) Rewritten(ctx context.Context, v *snapshot.View, was, is *policykind.Definition) ([]snapshot.Rewritten, error) {
	kind, earlier := v.Kind(is.Defines()), parseDefinition(&was.CustomResourceDefinition)
	brought := newVersions(&was.CustomResourceDefinition, &is.CustomResourceDefinition)
	if kind == nil || !earlier.served() || len(brought) == 0 || v.Count(kind.Ref()) == 0 {
		return nil, nil
	}
	var changes [][]snapshot.Change
	var errs []error
	for _, version := range listableVersions(&was.CustomResourceDefinition) {
		var err error
		if changes, err = w.rewrittenFrom(ctx, v, kind, &was.CustomResourceDefinition, version, brought); err == nil {
			break
		}
		errs = append(errs, err)
		changes = nil
	}
	if changes == nil {
		return nil, errors.Join(errs...)
	}
	var out []snapshot.Rewritten
	for i, b := range brought {
		if len(changes[i]) > 0 {
			out = append(out, snapshot.Rewritten{Version: b.name, View: v.With(changes[i]...)})
		}
	}
	return out, nil
}

// rewrittenFrom lists the policies of a kind by a version that its definition served,
// and returns which of them each brought version would store otherwise.
func (w *Watcher) rewrittenFrom(ctx context.Context, v *snapshot.View, kind *policykind.Kind, was *apiextensionsv1.CustomResourceDefinition,
	version string, brought []versionSchema,
) ([][]snapshot.Change, error) {
	changes := make([][]snapshot.Change, len(brought))
	leavesOut := objectTarget{exempt: w.registry.exemptNamespace}.isExempt
	from, schema := resource(was, version), policykind.PackSchema(schemaOf(was, version))
	err := w.eachPolicy(ctx, from, func(obj runtime.Object) {
		for i, b := range brought {
			o, err := rewritten(kind, obj, schema, b.schema)
			if err != nil {
				w.registry.logger(from.Resource).Error(err, "cannot read object; treating it as absent")
			} else if p, ok := v.Get(o.Ref()).(*policykind.Policy); !leavesOut(o) && (!ok || !p.Same(o)) {
				changes[i] = append(changes[i], snapshot.Put(o))
			}
		}
	})
	return changes, err
}

// listedBy returns the versions by which the policies of a kind can be listed, the
// one that is read first. The others count where a webhook converts: one that is down
// must not keep its definition from being repaired, and the version in which the
// policies are stored needs no conversion.
func listableVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	out := []string{servedVersion(crd)}
	if !converts(crd) {
		return out
	}
	for _, v := range crd.Spec.Versions {
		if v.Served && v.Name != out[0] {
			out = append(out, v.Name)
		}
	}
	return out
}

// rewritten reads a policy as it would be read after it was written by a version.
func rewritten(kind *policykind.Kind, obj runtime.Object, was, version *policykind.Schema) (out *policykind.Policy, err error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("got %T, want %T", obj, u)
	}
	defer background.Recovered(&err, "read it by another version")
	u = u.DeepCopy()
	version.Coerce(u.Object, was)
	kind.Schema().Coerce(u.Object, nil)
	return kind.Read(u.Object, merge.Newest).Pack(), nil
}

type versionSchema struct {
	name   string
	schema *policykind.Schema
}

// broughtVersions returns those that a definition serves beside the one that is read,
// and that it did not serve in the same way before. What a conversion webhook does
// cannot be found out.
func newVersions(was, is *apiextensionsv1.CustomResourceDefinition) []versionSchema {
	if converts(is) {
		return nil
	}
	var out []versionSchema
	read := servedVersion(is)
	for _, v := range is.Spec.Versions {
		if !v.Served || v.Name == read || v.Schema == nil {
			continue
		}
		now := versionSchema{v.Name, policykind.PackSchema(v.Schema.OpenAPIV3Schema)}
		if converts(was) || !servesSchema(was, now) {
			out = append(out, now)
		}
	}
	return out
}

func converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// servesBy reports whether a definition serves a version by that very schema.
func servesSchema(crd *apiextensionsv1.CustomResourceDefinition, version versionSchema) bool {
	for _, v := range crd.Spec.Versions {
		if v.Served && v.Name == version.name && v.Schema != nil {
			return policykind.PackSchema(v.Schema.OpenAPIV3Schema).Same(version.schema)
		}
	}
	return false
}
