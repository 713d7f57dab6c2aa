package cases

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Now is the time of the changes of all cases.
var Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// firstCreated is the creation time of the first existing object; each after it
// is a minute younger.
var firstCreated = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Case is one case.
type Case struct {
	// File is its name, without its extension.
	File string `json:"-"`
	// Name is a sentence; Spec is the part of the semantics that it tests.
	Name string `json:"name"`
	Spec string `json:"spec"`
	// With are the names of fixtures whose objects come before those of Against.
	With []string `json:"with,omitempty"`
	// Against are the existing objects, the oldest first. All have a creation
	// time.
	Against []Object `json:"against,omitempty"`
	// MayOverride: the writer may remove overrides.
	MayOverride bool `json:"mayOverride,omitempty"`
	// BlastRadiusLimit is the most paths of a kind that one change may change
	// without an acknowledgement; 0 is no limit.
	BlastRadiusLimit int `json:"blastRadiusLimit,omitempty"`
	// MaxMatches is the most matches that the routes of one namespace may have on one
	// hostname; 0 is no limit.
	MaxMatches int `json:"maxMatches,omitempty"`
	// Changes are made one after another, each on top of those allowed before.
	// Either all of them are a DELETE or none is.
	Changes []Change `json:"changes"`
}

// Object is an object of a manifest.
type Object = unstructured.Unstructured

// Change is a change, and its expected verdict.
type Change struct {
	Operation string `json:"operation"`
	Object    Object `json:"object"`
	Verdict   Want   `json:"verdict"`
	// Old is the object as it is stored before the change; nil on a CREATE.
	Old *Object `json:"-"`
}

// Want is the expected verdict on a change.
type Want struct {
	Allowed  bool        `json:"allowed"`
	Reasons  []Finding   `json:"reasons,omitempty"`
	Warnings []Finding   `json:"warnings,omitempty"`
	Changes  api.Changes `json:"changes"`
}

// Finding is a reason or a warning without its message.
type Finding struct {
	Code api.ReasonCode `json:"code"`
	Rule string         `json:"rule,omitempty"`
	// Policy is the other policy as "Kind namespace/name".
	Policy string `json:"policy,omitempty"`
	// Whole marks a finding that the output combines for all rules.
	Whole bool `json:"whole,omitempty"`
	// Says are parts of the message.
	Says []string `json:"says,omitempty"`
}

// Of returns the findings of a verdict's reasons in the form of cases, each with
// those parts of want that its message has.
func Of(reasons []api.Reason, want []Finding) []Finding {
	var out []Finding
	for i, r := range reasons {
		f := Finding{Code: r.Code, Rule: r.Rule, Whole: r.Whole}
		if r.Policy != nil {
			f.Policy = r.Policy.String()
		}
		if i < len(want) {
			for _, part := range want[i].Says {
				if strings.Contains(r.Message, part) {
					f.Says = append(f.Says, part)
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// Shown returns the number of findings in the output.
func Shown(findings []Finding) int {
	n := 0
	for _, f := range findings {
		if !f.Whole || f.Rule == "" {
			n++
		}
	}
	return n
}

//go:embed data/*.yaml guardrails/*.yaml entries.yaml fixtures.yaml
var files embed.FS

// Load returns all cases, in the order of their files.
func Load(tb testing.TB) []Case {
	tb.Helper()
	var fixtures map[string][]Object
	read(tb, "fixtures.yaml", &fixtures)
	names, err := fs.Glob(files, "data/*.yaml")
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	out := make([]Case, len(names))
	for i, name := range names {
		c := &out[i]
		read(tb, name, c)
		c.File = strings.TrimSuffix(path.Base(name), ".yaml")
		require.NoError(tb, c.complete(fixtures), name)
	}
	return out
}

func read(tb testing.TB, name string, into any) {
	tb.Helper()
	data, err := files.ReadFile(name)
	require.NoError(tb, err)
	require.NoError(tb, yaml.UnmarshalStrict(data, into), name)
}

// complete adds the fixtures and the creation times, and finds the old objects.
func (c *Case) complete(fixtures map[string][]Object) error {
	if c.Name == "" || c.Spec == "" || len(c.Changes) == 0 {
		return fmt.Errorf("a case must have a name, a spec and changes")
	}
	stored, err := c.existing(fixtures)
	if err != nil {
		return err
	}
	for i := range c.Changes {
		if err := c.Changes[i].complete(stored, c.Changes[0].Operation); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
	}
	return nil
}

// existing adds the objects of the fixtures and the creation times to Against, and
// returns its objects by their ids.
func (c *Case) existing(fixtures map[string][]Object) (map[string]*Object, error) {
	var objects []Object
	for _, name := range c.With {
		if fixtures[name] == nil {
			return nil, fmt.Errorf("unknown fixture %q", name)
		}
		for i := range fixtures[name] {
			objects = append(objects, *fixtures[name][i].DeepCopy())
		}
	}
	c.Against = append(objects, c.Against...)
	stored := make(map[string]*Object)
	for i := range c.Against {
		o := &c.Against[i]
		metadata, _, err := unstructured.NestedMap(o.Object, "metadata")
		if err != nil || metadata == nil {
			return nil, fmt.Errorf("object %d has no metadata", i)
		}
		metadata["creationTimestamp"] = firstCreated.Add(time.Duration(i) * time.Minute).Format(time.RFC3339)
		o.Object["metadata"] = metadata
		stored[id(o)] = o
	}
	return stored, nil
}

func (c *Change) complete(stored map[string]*Object, first string) error {
	c.Old = stored[id(&c.Object)]
	if (c.Operation == "CREATE") != (c.Old == nil) {
		return fmt.Errorf("invalid operation %s: the object exists: %t", c.Operation, c.Old != nil)
	}
	if (c.Operation == "DELETE") != (first == "DELETE") {
		return fmt.Errorf("DELETE is combined with another operation")
	}
	c.store(stored)
	return nil
}

// store makes the change, if it is allowed.
func (c *Change) store(stored map[string]*Object) {
	switch {
	case !c.Verdict.Allowed:
	case c.Operation == "DELETE":
		delete(stored, id(&c.Object))
	default:
		stored[id(&c.Object)] = &c.Object
	}
}

func id(o *Object) string {
	return o.GroupVersionKind().GroupKind().String() + " " + o.GetNamespace() + "/" + o.GetName()
}
