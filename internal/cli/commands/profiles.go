package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/policykind"
)

// profileFlags are those of profiles.
type profileFlags struct {
	paths       []string
	all, export bool
}

func (a *app) profilesCommand() *cobra.Command {
	var flags profileFlags
	cmd := &cobra.Command{
		Use:   "profiles [KIND]",
		Short: "Show how the kinds of policies are read, and why so.",
		Long: `Show how the kinds of policies are read, and why so: by a PolicyProfile of the
cluster, by the profile that comes with Overrule (built-in), or by a guess from the
label gateway.networking.k8s.io/policy of the kind's CustomResourceDefinition.

Shown are the kinds that the cluster has, and those of its PolicyProfiles; of
manifests (-f) those that are defined there or of which there is a policy. --all
shows every kind that has a profile, and KIND that kind wherever it is. -o yaml has
the whole profile.

--export prints the profile of KIND as the manifest of a PolicyProfile, to be edited
and applied: it then replaces the one in force.`,
		Example: `  kubectl overrule profiles
  kubectl overrule profiles --all -f manifests/
  kubectl overrule profiles AuthPolicy -o yaml --export > authpolicy-profile.yaml`,
		Args: withUsage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.profiles(cmd.Context(), flags, args) },
	}
	pathsFlag(cmd, &flags.paths, "read these manifests instead of the cluster")
	cmd.Flags().BoolVar(&flags.all, "all", false, "show the kinds that are not there, too")
	cmd.Flags().BoolVar(&flags.export, "export", false, "print the manifest of a PolicyProfile")
	return cmd
}

var errExport = errors.New("name the one kind to export, and write it with its group if there are several of its name")

func (a *app) profiles(ctx context.Context, flags profileFlags, args []string) error {
	items, s, err := a.profilesInForce(ctx, flags.paths)
	if err != nil && flags.export && len(flags.paths) == 0 && len(args) > 0 {
		return a.exportBuiltin(args[0], err)
	}
	if err != nil {
		return err
	}
	hidden := 0
	switch {
	case len(args) > 0:
		items, err = profilesOfKind(s, items, args[0])
	case !flags.all:
		items, hidden = presentProfiles(s, items)
	}
	switch {
	case err != nil:
		return err
	case !flags.export:
		err = a.printer().Profiles(items)
	case len(args) == 0 || len(items) != 1:
		return errExport
	default:
		return a.printer().Manifest(exportedManifest(s, items[0]))
	}
	if err == nil && hidden > 0 {
		a.infof("Overrule knows %d more kinds of policies that are not here: --all shows them", hidden)
	}
	return err
}

// exportBuiltin exports a profile that comes with Overrule, where the cluster cannot
// be asked for why.
func (a *app) exportBuiltin(word string, why error) error {
	kinds, err := manifest.NewKinds()
	if err != nil {
		return err
	}
	s := &source{kinds: kinds}
	items, err := profilesOfKind(s, kinds.Profiles(), word)
	if err != nil || len(items) != 1 {
		return why
	}
	a.warnf("the cluster cannot be read, so this is the built-in profile, whatever is in force: %v", why)
	return a.printer().Manifest(exportedManifest(s, items[0]))
}

// inForce reads the profiles of the cluster, or those of manifests.
func (a *app) profilesInForce(ctx context.Context, paths []string) ([]api.ProfileInForce, *source, error) {
	if len(paths) > 0 {
		s, err := a.loadSource(ctx, paths)
		if err != nil {
			return nil, nil, err
		}
		return s.kinds.Profiles(), s, nil
	}
	config, err := a.clusterConfig()
	if err != nil {
		return nil, nil, err
	}
	items, problems, err := a.listProfiles(ctx, config)
	if err != nil {
		return nil, nil, clusterError(err)
	}
	a.warnProblems(problems)
	s := &source{installed: make(map[api.PolicyKind]bool)}
	for _, p := range items {
		s.installed[p.PolicyKind] = p.Installed
	}
	s.kinds, err = manifest.NewKinds()
	return items, s, err
}

// present leaves out the kinds of which nothing is there, and counts them.
func presentProfiles(s *source, items []api.ProfileInForce) (out []api.ProfileInForce, hidden int) {
	for _, p := range items {
		if p.Installed || p.Source != string(policykind.Builtin) || len(p.Refused) > 0 || s.view != nil && s.isPresent(p.PolicyKind) {
			out = append(out, p)
		} else {
			hidden++
		}
	}
	return out, hidden
}

// ofKind returns the profiles of the kinds that a word names.
func profilesOfKind(s *source, items []api.ProfileInForce, word string) ([]api.ProfileInForce, error) {
	var known []api.PolicyKind
	for _, p := range items {
		known = append(known, p.PolicyKind)
	}
	found := s.kindsNamed(word, known)
	out := slices.DeleteFunc(items, func(p api.ProfileInForce) bool { return !slices.Contains(found, p.PolicyKind) })
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: there is no profile of it, and no CustomResourceDefinition with the label %s; write a PolicyProfile for it (%w)",
			unknownKind(word), policykind.LabelPolicy, errNotFound)
	}
	return out, nil
}

// exported returns a profile as the manifest of a PolicyProfile.
func exportedManifest(s *source, p api.ProfileInForce) printers.Exported {
	out := printers.Exported{TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindPolicyProfile}, Spec: p.Spec}
	out.Metadata.Name = p.Profile
	if out.Metadata.Name == "" {
		name := plural(p.PolicyKind)
		if given := s.kinds.Names(p.PolicyKind); len(given) > 0 {
			name = given[0]
		}
		out.Metadata.Name = name + "." + p.PolicyKind.Group
	}
	return out
}
