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

// ViewsInOtherVersions returns the views as they would be if the policies of a kind were written
// in another version than the one that is read (guard.VersionReader): in each version that
// the write of the definition adds or changes. v is the view after that write. Versions
// that change no policy are omitted.
func (w *Watcher) ViewsInOtherVersions(ctx context.Context, v *snapshot.View, before, after *policykind.Definition) ([]snapshot.VersionView, error) {
	kind, earlier := v.Kind(after.Defines()), parseDefinition(&before.CustomResourceDefinition)
	added := newVersions(&before.CustomResourceDefinition, &after.CustomResourceDefinition)
	if kind == nil || !earlier.served() || len(added) == 0 || v.Count(kind.Ref()) == 0 {
		return nil, nil
	}
	var changes [][]snapshot.Change
	var errs []error
	for _, version := range listableVersions(&before.CustomResourceDefinition) {
		var err error
		if changes, err = w.rewrittenFrom(ctx, v, kind, &before.CustomResourceDefinition, version, added); err == nil {
			break
		}
		errs = append(errs, err)
		changes = nil
	}
	if changes == nil {
		return nil, errors.Join(errs...)
	}
	var out []snapshot.VersionView
	for i, b := range added {
		if len(changes[i]) > 0 {
			out = append(out, snapshot.VersionView{Version: b.name, View: v.With(changes[i]...)})
		}
	}
	return out, nil
}

// rewrittenFrom lists the policies of a kind in a version that its definition served,
// and returns for each new version the policies that it would store differently.
func (w *Watcher) rewrittenFrom(ctx context.Context, v *snapshot.View, kind *policykind.Kind, before *apiextensionsv1.CustomResourceDefinition,
	version string, added []versionSchema,
) ([][]snapshot.Change, error) {
	changes := make([][]snapshot.Change, len(added))
	leavesOut := objectTarget{exempt: w.registry.exemptNamespace}.isExempt
	from, schema := resource(before, version), policykind.PackSchema(schemaOf(before, version))
	err := w.eachPolicy(ctx, from, func(obj runtime.Object) {
		for i, b := range added {
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

// listableVersions returns the versions in which the policies of a kind can be listed,
// first the one that is read. The others are used if a conversion webhook is
// configured: if it fails, its definition can still be repaired, since the storage
// version needs no conversion.
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

// rewritten converts a policy as it would be read after it was written in a version.
func rewritten(kind *policykind.Kind, obj runtime.Object, before, version *policykind.Schema) (out *policykind.Policy, err error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("got %T, want %T", obj, u)
	}
	defer background.RecoverError(&err, "decode it in another version")
	u = u.DeepCopy()
	version.Coerce(u.Object, before)
	kind.Schema().Coerce(u.Object, nil)
	return kind.Read(u.Object, merge.Newest).Pack(), nil
}

type versionSchema struct {
	name   string
	schema *policykind.Schema
}

// newVersions returns the versions other than the one that is read which a definition
// serves, and did not serve with the same schema before. The effect of a conversion
// webhook is not known.
func newVersions(before, after *apiextensionsv1.CustomResourceDefinition) []versionSchema {
	if converts(after) {
		return nil
	}
	var out []versionSchema
	readVersion := servedVersion(after)
	for _, v := range after.Spec.Versions {
		if !v.Served || v.Name == readVersion || v.Schema == nil {
			continue
		}
		now := versionSchema{v.Name, policykind.PackSchema(v.Schema.OpenAPIV3Schema)}
		if converts(before) || !servesSchema(before, now) {
			out = append(out, now)
		}
	}
	return out
}

func converts(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// servesSchema reports whether a definition serves a version with the same schema.
func servesSchema(crd *apiextensionsv1.CustomResourceDefinition, version versionSchema) bool {
	for _, v := range crd.Spec.Versions {
		if v.Served && v.Name == version.name && v.Schema != nil {
			return policykind.PackSchema(v.Schema.OpenAPIV3Schema).Same(version.schema)
		}
	}
	return false
}
