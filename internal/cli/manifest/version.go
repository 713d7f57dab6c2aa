package manifest

import (
	_ "embed" // the known versions
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
)

//go:embed versions.yaml
var versionsFile []byte

// knownVersions are the versions of policy kinds that some release of their implementation
// has served.
var knownVersions = sync.OnceValue(func() map[api.PolicyKind][]string {
	var groups map[string]map[string][]string // group, version, kinds
	_ = yaml.Unmarshal(versionsFile, &groups) // a test compares it with the built-in kinds
	out := make(map[api.PolicyKind][]string)
	for group, versions := range groups {
		for version, kinds := range versions {
			for _, kind := range kinds {
				ref := api.PolicyKind{Group: group, Kind: kind}
				out[ref] = append(out[ref], version)
			}
		}
	}
	for _, versions := range out {
		slices.Sort(versions)
	}
	return out
})

// unknownVersion returns that the version of an object is none of those of its kind that are
// known, without a definition of the kind; nothing for a kind whose versions are not known.
func (o *Object) unknownVersion() []Problem {
	known := knownVersions()[o.Kind]
	apiVersion, _ := o.content["apiVersion"].(string)
	_, version, _ := strings.Cut(apiVersion, "/")
	if len(known) == 0 || slices.Contains(known, version) {
		return nil
	}
	return []Problem{{Object: o, Unknown: true, Problem: customresource.Problem{
		Field:   "apiVersion",
		Message: fmt.Sprintf("version %q of kind %s is not read; the object is evaluated as one of those that are: %s", version, o.Kind, strings.Join(known, ", ")),
	}}}
}
