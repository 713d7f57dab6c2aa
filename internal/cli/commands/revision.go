package commands

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	metaunstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
)

// revisionFlags name two revisions of manifests, whose difference is the change.
type revisionFlags struct{ from, to []string }

var (
	errOneRevision   = errors.New("invalid --from and --to: both are required; --from has the manifests before the change, --to those after it")
	errRevisionFlags = errors.New("invalid --from and --to: cannot be used with --filename, --against or --delete; the change is the difference of the two revisions")
	errNoChange      = errors.New(`required flag(s) "filename" not set: specify the change with --filename, or with --from and --to`)
)

func (f *revisionFlags) isSet() bool { return len(f.from)+len(f.to) > 0 }

// readRevision reads the manifests of a revision, which may have none.
func (r *reader) readRevision(flag string, paths []string) (*manifest.Set, error) {
	set, err := r.readManifests(paths)
	var errs []error
	for _, e := range flattenErrors(err) {
		switch {
		case e == nil:
		case errors.Is(e, manifest.ErrEmpty):
			r.warnf("%s: %v", flag, e)
			r.notes = append(r.notes, flag+" has no manifests")
		default:
			errs = append(errs, e)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, manifestErrors(err)
	}
	return set, nil
}

// readRevisions returns the source of the first revision, and the steps from it to the
// second in the order in which GitOps tools apply them.
func (r *reader) readRevisions(ctx context.Context, f revisionFlags) (*source, []step, error) {
	from, err := r.readRevision("--from", f.from)
	if err != nil {
		return nil, nil, err
	}
	to, err := r.readRevision("--to", f.to)
	if err != nil {
		return nil, nil, err
	}
	if len(from.Objects)+len(to.Objects) == 0 {
		return nil, nil, fmt.Errorf("--from and --to: %w", manifest.ErrEmpty)
	}
	r.reportsProblems = true // of the change only
	s, err := r.manifestSource(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	kinds := s.kinds.Clone()
	_ = to.Define(kinds) // errors are those of steps
	if err := to.Duplicates(kinds, s.namespace); err != nil {
		return nil, nil, manifestErrors(err)
	}
	both := revisions{source: s, kinds: kinds}
	steps := both.steps(from, to)
	if both.common == 0 && both.deleted > 0 {
		r.notef("no object is in both --from and --to: the change deletes %d and creates %d; check that both are of the same manifests", both.deleted, len(steps)-both.deleted)
	}
	r.noteDeletedNamespaces(&both, steps, to)
	var written []*manifest.Object
	for _, s := range steps {
		if !s.remove {
			written = append(written, s.object)
		}
	}
	if err := r.warnUnvalidated(unvalidatedKinds(written, kinds), "to --from and --to"); err != nil {
		return nil, nil, err
	}
	if len(steps) == 0 {
		r.infof("no difference between --from and --to affects effective policies")
	}
	return s, steps, nil
}

// noteDeletedNamespaces prints which Namespaces the change deletes although the second
// revision has objects in them.
func (t *terminal) noteDeletedNamespaces(r *revisions, steps []step, to *manifest.Set) {
	for _, s := range steps {
		if !s.remove || s.object.Kind != kindNamespace {
			continue
		}
		n := 0
		for _, o := range to.Objects {
			if r.ref(o).Namespace == s.object.Name {
				n++
			}
		}
		if n > 0 {
			t.notef("the change deletes Namespace %s, and with it %d objects that --to has there; keep its manifest, or remove theirs", s.object.Name, n)
		}
	}
}

// revisions compares two sets of manifests.
type revisions struct {
	*source
	kinds           *manifest.Kinds // of both sets
	common, deleted int
}

// steps returns the writes that lead from one set to another, in the order of compare.
func (r *revisions) steps(from, to *manifest.Set) []step {
	before := make(map[api.Ref]*manifest.Object)
	for _, o := range from.Objects {
		if r.reads(o) {
			before[r.ref(o)] = o
		}
	}
	var out []step
	for _, o := range to.Objects {
		if !r.reads(o) {
			continue
		}
		ref := r.ref(o)
		old, found := before[ref]
		delete(before, ref)
		if found {
			r.common++
		}
		if !found || !r.sameContent(old, o) {
			out = append(out, step{object: o, isNew: !found})
		}
	}
	for _, o := range before {
		out = append(out, step{object: o, remove: true})
	}
	r.deleted = len(before)
	slices.SortFunc(out, r.compare)
	return out
}

func (r *revisions) reads(o *manifest.Object) bool {
	why, _ := r.kinds.NotRead(o)
	return o.Kind == manifest.KindCRD || why != "" || r.kinds.Reads(o.Kind) || r.source.kinds.Reads(o.Kind)
}

func (r *revisions) ref(o *manifest.Object) api.Ref { return o.Ref(r.kinds, r.namespace) }

// sameContent reports whether two manifests of an object are equal but for what the API
// server sets, and the file that kustomize rendered them from.
func (r *revisions) sameContent(a, b *manifest.Object) bool {
	return reflect.DeepEqual(r.applied(a), r.applied(b))
}

// serverFields are the fields of metadata that the API server sets.
var serverFields = []string{"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

// applied returns a copy of the content of a manifest without what the API server sets.
func (r *revisions) applied(o *manifest.Object) map[string]any {
	out := metaunstructured.Unstructured{Object: withoutServerFields(o.Content())}
	if out.GetNamespace() == "" {
		out.SetNamespace(r.ref(o).Namespace)
	}
	if annotations := out.GetAnnotations(); annotations[manifest.OriginAnnotation] != "" {
		if delete(annotations, manifest.OriginAnnotation); len(annotations) == 0 {
			annotations = nil
		}
		out.SetAnnotations(annotations)
	}
	return out.Object
}

// withoutServerFields returns a copy of an object without what the API server sets.
func withoutServerFields(content map[string]any) map[string]any {
	out := runtime.DeepCopyJSON(content)
	delete(out, "status")
	for _, name := range serverFields {
		metaunstructured.RemoveNestedField(out, "metadata", name)
	}
	return out
}
