package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/snapshot"
)

// scene is the objects that a command works on.
type scene struct {
	view  *snapshot.View
	kinds *manifest.Kinds
	// namespace of objects that name none; given tells that the user named it.
	namespace string
	given     bool
	// set is the manifests, nil on a cluster; installed are the policy kinds of
	// a cluster, nil for manifests.
	set       *manifest.Set
	installed map[api.PolicyKind]bool
}

// scene reads manifests, or the cluster if there are no paths.
func (a *app) scene(ctx context.Context, paths []string) (*scene, error) {
	if len(paths) == 0 {
		return a.clusterScene(ctx)
	}
	s := &scene{namespace: metav1.NamespaceDefault}
	if *a.config.Namespace != "" {
		s.namespace, s.given = *a.config.Namespace, true
	}
	var err error
	if s.kinds, err = manifest.NewKinds(); err != nil {
		return nil, err
	}
	set, err := manifest.Read(paths, a.In)
	if err != nil {
		return nil, unreadable(err)
	}
	if s.view, err = set.View(s.kinds, s.namespace); err != nil {
		return nil, unreadable(err)
	}
	s.set = set
	a.tellRead(set, s.kinds)
	a.tellRefused(s.kinds)
	return s, nil
}

func (a *app) clusterScene(ctx context.Context) (*scene, error) {
	config, err := a.clusterConfig()
	if err != nil {
		return nil, err
	}
	s := &scene{}
	if s.namespace, _, err = a.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	s.given = *a.config.Namespace != ""
	view, problems, err := a.list(ctx, config)
	if err != nil {
		return nil, unreachable(err)
	}
	a.tellProblems(problems)
	if s.kinds, err = manifest.NewKinds(view.Kinds()...); err != nil {
		return nil, err
	}
	s.installed = make(map[api.PolicyKind]bool)
	for _, k := range view.Kinds() {
		s.installed[k.Ref()] = true
	}
	s.view = view.WithKinds(s.kinds.All())
	return s, nil
}

func (a *app) clusterConfig() (*rest.Config, error) {
	config, err := a.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w; check --kubeconfig and --context, or name manifests to read instead", err)
	}
	return config, nil
}

func unreachable(err error) error {
	return fmt.Errorf("read the cluster: %w, or name manifests to read instead (--help)", err)
}

// tellProblems tells what of the cluster could not be read.
func (a *app) tellProblems(problems []cache.Problem) {
	for _, p := range problems {
		a.tell("warning: %v", p)
	}
}

// tellRefused tells which PolicyProfiles of the manifests are not in force.
func (a *app) tellRefused(kinds *manifest.Kinds) {
	for _, r := range kinds.Refused() {
		a.tell("warning: PolicyProfile %s is not in force: %s", r.Name, r.Message)
	}
}

// mostUnreadable is how many errors of manifests are shown.
const mostUnreadable = 20

// parts returns the errors that were joined.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var out []error
	for _, one := range joined.Unwrap() {
		out = append(out, parts(one)...)
	}
	return out
}

// unreadable heads the errors of manifests, which may be many.
func unreadable(err error) error {
	if all := parts(err); len(all) > mostUnreadable {
		more := fmt.Errorf("and %d more", len(all)-mostUnreadable)
		err = errors.Join(append(all[:mostUnreadable:mostUnreadable], more)...)
	}
	if strings.Contains(err.Error(), "\n") {
		return fmt.Errorf("the manifests cannot be read:\n%w", err)
	}
	return err
}

// tellRead tells what was read of manifests, if the user wants to know.
func (a *app) tellRead(set *manifest.Set, kinds *manifest.Kinds) {
	if !a.verbose {
		return
	}
	ignored := 0
	for _, c := range set.Ignored(kinds) {
		ignored += c.Objects
		a.tell("ignored %s: %d", c.Kind, c.Objects)
	}
	a.tell("read %d objects, ignored %d of kinds that effective policies do not depend on", len(set.Objects), ignored)
}

// pathsFlag adds -f.
func pathsFlag(cmd *cobra.Command, paths *[]string, what string) {
	cmd.Flags().StringArrayVarP(paths, "filename", "f", nil, what+"; a file, a folder or - for stdin (repeatable)")
}
