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

// profileOptions are those of the profiles command.
type profileOptions struct {
	*app
	paths       []string
	all, export bool
}

func profilesCommand(a *app) *cobra.Command {
	o := profileOptions{app: a}
	cmd := &cobra.Command{
		Use:   "profiles [KIND]",
		Short: "Show the profiles of policy kinds",
		Long: `Show the profiles of policy kinds, by which their policies are read and merged. A
profile is a PolicyProfile of the cluster, is built in, or is derived from the label
gateway.networking.k8s.io/policy of the kind's CustomResourceDefinition.

By default the kinds that are installed on the cluster and those of its PolicyProfiles
are shown; with -f the kinds that are defined in the manifests or have a policy there.
--all shows every kind that has a profile, KIND only that kind. -o yaml prints the
whole profile.

--export prints the profile of KIND as the manifest of a PolicyProfile. Edit and apply
it to replace the one in effect.`,
		Example: `  # List the policy kinds of the cluster
  kubectl overrule profiles

  # List all policy kinds that are known, with those of a directory of manifests
  kubectl overrule profiles --all -f manifests/

  # Export the profile of a kind in order to change it
  kubectl overrule profiles AuthPolicy -o yaml --export > authpolicy-profile.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd.Context(), args) },
	}
	pathsFlag(cmd, &o.paths, "read these manifests instead of the cluster")
	cmd.Flags().BoolVar(&o.all, "all", false, "also show kinds that are not installed")
	cmd.Flags().BoolVar(&o.export, "export", false, "print the profile as the manifest of a PolicyProfile")
	return cmd
}

func (o *profileOptions) show(ctx context.Context, args []string) error {
	items, s, err := o.inForce(ctx)
	if err != nil && o.export && len(o.paths) == 0 && len(args) > 0 {
		return o.exportBuiltin(args[0], err)
	}
	if err != nil {
		return err
	}
	shown := items
	switch {
	case len(args) > 0:
		if shown, err = profilesOfKind(s, items, args[0]); err != nil {
			return err
		}
	case !o.all:
		shown = slices.DeleteFunc(slices.Clone(items), func(p api.ProfileInForce) bool { return !s.hasProfiled(p) })
	}
	switch {
	case !o.export:
		err = o.printer().Profiles(shown)
	case len(args) == 0 || len(shown) != 1:
		return errors.New("invalid --export: requires exactly one kind; specify KIND, or KIND.GROUP if several groups have it")
	default:
		return o.printer().Manifest(exportedManifest(s, shown[0]))
	}
	if hidden := len(items) - len(shown); err == nil && len(args) == 0 && hidden > 0 {
		o.infof("%d more policy kinds have a profile but are not installed; use --all to show them", hidden)
	}
	return err
}

// exportBuiltin exports the built-in profile of a kind if the cluster cannot be
// read because of readErr.
func (o *profileOptions) exportBuiltin(word string, readErr error) error {
	s := &source{kinds: manifest.NewKinds(nil)}
	items, err := profilesOfKind(s, s.kinds.InForce(), word)
	if err != nil || len(items) != 1 {
		return readErr
	}
	o.warnf("cannot read the cluster, exporting the built-in profile, which may not be the one in effect: %v", readErr)
	return o.printer().Manifest(exportedManifest(s, items[0]))
}

// inForce returns the profiles in effect on the cluster or, with paths, in the manifests.
func (o *profileOptions) inForce(ctx context.Context) ([]api.ProfileInForce, *source, error) {
	if len(o.paths) > 0 {
		s, err := o.loadSource(ctx, o.paths)
		if err != nil {
			return nil, nil, err
		}
		return s.kinds.InForce(), s, nil
	}
	config, err := o.clusterConfig()
	if err != nil {
		return nil, nil, err
	}
	items, problems, err := o.listProfiles(ctx, config)
	if err != nil {
		return nil, nil, clusterError(err)
	}
	o.warnProblems(problems)
	return items, &source{kinds: manifest.NewKinds(nil)}, nil
}

// hasProfiled reports whether the kind of a profile is present, or the profile is not built in.
func (s *source) hasProfiled(p api.ProfileInForce) bool {
	return p.Installed || p.Source != string(policykind.Builtin) || len(p.Refused) > 0 || s.view != nil && s.isPresent(p.PolicyKind)
}

// profilesOfKind returns the profiles of the kinds of a name.
func profilesOfKind(s *source, items []api.ProfileInForce, word string) ([]api.ProfileInForce, error) {
	var known []api.PolicyKind
	for _, p := range items {
		known = append(known, p.PolicyKind)
	}
	found := s.kindsNamed(word, known)
	out := slices.DeleteFunc(items, func(p api.ProfileInForce) bool { return !slices.Contains(found, p.PolicyKind) })
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: profile %w, and no CustomResourceDefinition has the label %s; create a PolicyProfile for the kind",
			unknownKind(word), errNotFound, policykind.LabelPolicy)
	}
	return out, nil
}

// exportedManifest returns a profile as the manifest of a PolicyProfile.
func exportedManifest(s *source, p api.ProfileInForce) printers.Exported {
	out := printers.Exported{TypeMeta: metav1.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindPolicyProfile}, Spec: p.Spec}
	out.Metadata.Name = p.Profile
	if out.Metadata.Name == "" {
		name := plural(p.PolicyKind)
		if names := s.kinds.Names(p.PolicyKind); len(names) > 0 {
			name = names[0]
		}
		out.Metadata.Name = name + "." + p.PolicyKind.Group
	}
	return out
}
