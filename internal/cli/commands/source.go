package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// source holds the objects that a command works on: those of a cluster, or of
// manifests.
type source struct {
	view  *snapshot.View
	kinds *manifest.Kinds
	// namespace is the default namespace. namespaceSet is true if the user has set
	// it with -n.
	namespace    string
	namespaceSet bool
	// set holds the manifests, nil on a cluster. installed are the policy kinds of
	// a cluster, nil for manifests.
	set *manifest.Set
	// problems are what is wrong with the manifests by the definitions of their kinds.
	problems []manifest.Problem
	// strict is set if unknown fields are rejected.
	strict    bool
	installed map[api.PolicyKind]bool
	// unread are the resources of a cluster that could not be read.
	unread []cache.Problem
}

// reader reads the objects that a command works on.
type reader struct {
	terminal
	connection
	// redact is set if the values of policies are omitted.
	redact bool
	// validate is what to do about unknown fields of manifests.
	validate validateMode
	// reportsProblems is set if the command reports what is wrong with manifests
	// itself.
	reportsProblems bool
}

// loadSource reads manifests, or the cluster if there are no paths.
func (r *reader) loadSource(ctx context.Context, paths []string) (*source, error) {
	if len(paths) == 0 {
		return r.clusterSource(ctx)
	}
	set, err := r.readManifests(paths)
	if err != nil {
		return nil, manifestErrors(err)
	}
	s, err := r.manifestSource(ctx, set)
	if err != nil {
		return nil, err
	}
	return s, r.warnUnvalidated(unvalidatedKinds(set.Objects, s.kinds), "to the manifests")
}

// manifestSource returns the source of the objects of manifests.
func (r *reader) manifestSource(ctx context.Context, set *manifest.Set) (*source, error) {
	s := &source{namespace: metav1.NamespaceDefault, strict: r.validate.strict()}
	if *r.config.Namespace != "" {
		s.namespace, s.namespaceSet = *r.config.Namespace, true
	}
	s.kinds = manifest.NewKinds(nil)
	var err error
	if set, s.problems, err = r.storeSource(ctx, s, set); err != nil {
		return nil, manifestErrors(err)
	}
	s.set = set
	if !r.reportsProblems {
		r.warnManifestProblems(s.problems)
	}
	if s.view, err = set.View(s.kinds, s.namespace); err != nil {
		return nil, manifestErrors(err)
	}
	r.warnNotRead(set, s.kinds)
	r.warnOrderByName(s.view)
	r.reportRead(set, s.kinds)
	r.warnRejectedProfiles(s.kinds)
	return s, nil
}

func (r *reader) clusterSource(ctx context.Context) (*source, error) {
	config, err := r.clusterConfig()
	if err != nil {
		return nil, err
	}
	view, problems, err := r.list(ctx, config)
	if err != nil {
		return nil, clusterError(err)
	}
	r.warnProblems(problems)
	return r.sourceOf(view, problems)
}

// sourceOf returns the source of the objects of a cluster.
func (r *reader) sourceOf(view *snapshot.View, problems []cache.Problem) (s *source, err error) {
	s = &source{unread: problems}
	if s.namespace, _, err = r.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("read the namespace from the kubeconfig: %w", err)
	}
	s.namespaceSet = *r.config.Namespace != ""
	s.kinds = manifest.NewKinds(view.KindConfig())
	s.installed = make(map[api.PolicyKind]bool)
	for _, k := range view.Kinds() {
		s.installed[k.Ref()] = true
	}
	s.view = view.WithKindConfig(s.kinds.Kinds).WithKinds(s.kinds.All())
	return s, nil
}

func (c *connection) clusterConfig() (*rest.Config, error) {
	config, err := c.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w; check --kubeconfig and --context, or specify manifests with -f or --against", err)
	}
	return config, nil
}

// errReadCluster is the start of the error of a cluster that cannot be listed.
var errReadCluster = errors.New("read the cluster")

func clusterError(err error) error {
	return fmt.Errorf("%w: %w; or specify manifests with -f or --against", errReadCluster, err)
}

// warnProblems prints which resources of the cluster could not be read.
func (t *terminal) warnProblems(problems []cache.Problem) {
	for _, p := range problems {
		t.warnf("%v", p)
	}
}

// warnRejectedProfiles prints which PolicyProfiles of the manifests are not in
// effect, and why.
func (t *terminal) warnRejectedProfiles(kinds *manifest.Kinds) {
	for _, r := range kinds.Rejected() {
		t.warnf("PolicyProfile %s is not in effect: %s", r.Name, r.Message)
	}
}

// maxManifestErrors is the number of errors of manifests that are printed.
const maxManifestErrors = 20

// flattenErrors returns the errors that were joined.
func flattenErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flattenErrors(e)...)
	}
	return out
}

// manifestErrors returns the errors of manifests below a heading, cut to
// maxManifestErrors.
func manifestErrors(err error) error {
	if all := flattenErrors(err); len(all) > maxManifestErrors {
		more := fmt.Errorf("and %d more", len(all)-maxManifestErrors)
		err = errors.Join(append(all[:maxManifestErrors:maxManifestErrors], more)...)
	}
	if strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("invalid manifests:\n%w", err)
	}
	return err
}

// readManifests reads manifests, and prints which of them are kustomizations.
func (r *reader) readManifests(paths []string) (*manifest.Set, error) {
	set, err := manifest.Read(paths, r.In)
	r.warnKustomizations(set)
	return set, err
}

// warnKustomizations prints which files are kustomizations: the objects below them are
// read as they are, without its patches.
func (t *terminal) warnKustomizations(set *manifest.Set) {
	for _, o := range set.Objects {
		if o.Kind.Group == "kustomize.config.k8s.io" {
			t.notef("%s is a kustomization, and is not applied: render it first with kubectl kustomize, or kustomize build", o.At.File)
		}
	}
}

// warnControllers prints which GatewayClasses have a controller that is not known: their
// gateways may not read all kinds of policies.
func (t *terminal) warnControllers(v *snapshot.View) {
	for _, u := range effective.UnknownControllers(v) {
		why := fmt.Sprintf("controller %s is not known", u.Controller)
		if u.Controller == "" {
			why = "it was not found"
		}
		t.warnf("GatewayClass %s: %s, so policies of all kinds count on its gateways", u.Class, why)
	}
}

// warnNotRead prints which kinds of manifests are not read, though they were probably meant
// to have an effect.
func (t *terminal) warnNotRead(set *manifest.Set, kinds *manifest.Kinds) {
	objects := make(map[api.PolicyKind][]*manifest.Object)
	for _, o := range set.Objects {
		if why, _ := kinds.NotRead(o); why != "" {
			objects[o.Kind] = append(objects[o.Kind], o)
		}
	}
	for _, kind := range slices.SortedFunc(maps.Keys(objects), api.ComparePolicyKinds) {
		first := objects[kind][0]
		why, advice := kinds.NotRead(first)
		t.warnf("%s: %s%s: %s; %s", first.At, first, api.More(" and ", len(objects[kind])-1, ""), why, advice)
	}
}

// reportRead prints how many objects were read and ignored, with --verbose.
func (t *terminal) reportRead(set *manifest.Set, kinds *manifest.Kinds) {
	if !t.verbose {
		return
	}
	ignored, sum := set.Ignored(kinds), 0
	for _, kind := range slices.SortedFunc(maps.Keys(ignored), api.ComparePolicyKinds) {
		sum += ignored[kind]
		t.infof("ignored %s: %d", kind, ignored[kind])
	}
	t.infof("read %d objects, ignored %d of kinds that effective policies do not depend on", len(set.Objects), sum)
}

// pathsFlag adds the flag --filename.
func pathsFlag(cmd *cobra.Command, paths *[]string, what string) {
	cmd.Flags().StringArrayVarP(paths, "filename", "f", nil, what+"; a file, a directory or - for stdin (repeatable)")
}
