package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// validateMode is what to do about fields of manifests that are not in the schema of
// their kind, as of kubectl.
type validateMode string

// validateModes are the modes; true is strict, and false is ignore.
var validateModes = []validateMode{"strict", "warn", "ignore", "true", "false"}

func (m validateMode) strict() bool { return m == "strict" || m == "true" }

func (m validateMode) ignores() bool { return m == "ignore" || m == "false" }

// reported returns the problems that are reported: all, or with ignore, those for which
// the API server rejects an object.
func (m validateMode) reported(all []manifest.Problem) []manifest.Problem {
	if !m.ignores() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(p manifest.Problem) bool { return p.Unknown })
}

// storeSource returns the manifests of a source as the API server would store them, and
// what is wrong with them. With --validate=strict, unknown fields are errors.
func (r *reader) storeSource(ctx context.Context, s *source, set *manifest.Set) (*manifest.Set, []manifest.Problem, error) {
	stored, problems, errs := set.Store(ctx, s.kinds, s.namespace)
	for _, err := range errs {
		if errors.Is(err, customresource.ErrDefinition) { // others are reported by View
			r.warnf("%v; its objects are not validated", err)
		}
	}
	problems = r.validate.reported(problems)
	if r.reportsProblems {
		stored = s.decodable(stored, problems)
	}
	if !r.validate.strict() || r.reportsProblems {
		return stored, problems, nil
	}
	var unknown []error
	for _, p := range problems {
		if p.Unknown {
			unknown = append(unknown, errors.New(problemText(p)))
		}
	}
	return stored, problems, errors.Join(unknown...)
}

// unvalidatedKinds returns the policy kinds of objects that have no definition.
func unvalidatedKinds(objects []*manifest.Object, kinds *manifest.Kinds) []api.PolicyKind {
	var out []api.PolicyKind
	for _, o := range objects {
		if kinds.Of(o.Kind) != nil && !kinds.Validates(o.Kind) && !slices.Contains(out, o.Kind) {
			out = append(out, o.Kind)
		}
	}
	return out
}

// warnUnvalidated prints policy kinds whose fields are not validated, since they have no
// definition: each kind once. With --validate=strict that is an error. where is where the
// definition can be added.
func (r *reader) warnUnvalidated(kinds []api.PolicyKind, where string) error {
	if r.validate.ignores() {
		return nil
	}
	kinds = slices.DeleteFunc(kinds, func(k api.PolicyKind) bool { return !r.isNew(k.String()) })
	if len(kinds) == 0 {
		return nil
	}
	slices.SortFunc(kinds, func(a, b api.PolicyKind) int { return strings.Compare(a.String(), b.String()) })
	names := kindList(slices.Compact(kinds))
	if r.validate.strict() {
		return fmt.Errorf("--validate=strict: fields of %s cannot be validated: add the CustomResourceDefinition %s", names, where)
	}
	remark := fmt.Sprintf("fields of %s are not validated, so that a misspelled one is not found: add the CustomResourceDefinition %s", names, where)
	r.remarks = append(r.remarks, remark)
	r.warnf("%s", remark)
	return nil
}

// decodable returns the set without the objects that cannot be decoded and have problems
// that say why.
func (s *source) decodable(set *manifest.Set, problems []manifest.Problem) *manifest.Set {
	invalid := make(map[manifest.Position]bool)
	for _, p := range problems {
		invalid[p.Object.At] = invalid[p.Object.At] || !p.Unknown
	}
	return &manifest.Set{Objects: slices.DeleteFunc(slices.Clone(set.Objects), func(o *manifest.Object) bool {
		if !invalid[o.At] || o.Kind == policykind.KindProfile {
			return false
		}
		_, err := o.Decode(s.kinds, s.namespace, merge.Undated, false)
		return err != nil && !errors.Is(err, snapshot.ErrKind)
	})}
}

// isOf reports whether a problem is that of an object. It compares the names first: many
// objects may have problems.
func (s *source) isOf(p manifest.Problem, ref api.Ref) bool {
	return p.Object.Name == ref.Name && p.Object.Ref(s.kinds, s.namespace) == ref
}

// maxProblemWarnings is the number of problems that are printed as warnings.
const maxProblemWarnings = 20

// warnManifestProblems prints what is wrong with manifests.
func (r *reader) warnManifestProblems(problems []manifest.Problem) {
	for _, p := range problems[:min(len(problems), maxProblemWarnings)] {
		if r.redact {
			p.Message = redactedMessage(finding(p).Code, "", nil, p.Message)
		}
		r.warnf("%s", problemText(p))
	}
	if more := len(problems) - maxProblemWarnings; more > 0 {
		r.warnf("and %d more problems of manifests; run kubectl overrule violations -f to see all", more)
	}
}

// problemText returns a problem with its position and object.
func problemText(p manifest.Problem) string {
	return fmt.Sprintf("%s: %s: %s", report.Location(p.Location()), p.Object, p.Message)
}
