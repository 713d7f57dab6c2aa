package cases

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Row is a row of the files in guardrails: one write or more beside an override.
type Row struct {
	// File is the name of its file, without its extension. Name is unique in all files.
	File string `json:"-"`
	Name string `json:"name"`
	// AdmissionOnly: check does not give this verdict, since it does not regard the owners
	// and the deletions of profiles.
	AdmissionOnly bool `json:"admissionOnly,omitempty"`
	// With are the names of fixtures, whose objects come before those of Against.
	With []string `json:"with,omitempty"`
	// Given are merge patches of the objects of the fixtures, by reference.
	Given map[string]json.RawMessage `json:"given,omitempty"`
	// Against are more existing objects, the oldest first.
	Against []Object `json:"against,omitempty"`
	// Write is the only step of a row without Steps.
	Write
	// Steps are writes one after another, each on top of those allowed before.
	Steps []Write `json:"steps,omitempty"`
}

// Write is one of Create, Update with a Patch, and Delete. Update and Delete are
// references to the object, such as "Gateway infra/edge".
type Write struct {
	Create *Object `json:"create,omitempty"`
	Update string  `json:"update,omitempty"`
	// Patch is a merge patch, or a JSON patch if it is a list.
	Patch  json.RawMessage `json:"patch,omitempty"`
	Delete string          `json:"delete,omitempty"`
	// Denied is the code by which the write is denied. Users with the right to override
	// get a warning instead, if the code is of a lost override. Warned is the code of a
	// warning that all users get. Without both, the write is allowed without a warning
	// about an override. Says are parts of the message of that code.
	Denied api.ReasonCode `json:"denied,omitempty"`
	Warned api.ReasonCode `json:"warned,omitempty"`
	Says   []string       `json:"says,omitempty"`

	// Change is the same change as that of a case, without the expected verdict.
	Change Change `json:"-"`
}

// lossCodes are the codes of lost or weakened overrides.
var lossCodes = []api.ReasonCode{api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened}

// Guardrails returns the rows of guardrails, in the order of their files.
func Guardrails(tb testing.TB) []Row {
	tb.Helper()
	var fixtures map[string][]Object
	read(tb, "fixtures.yaml", &fixtures)
	names, err := fs.Glob(files, "guardrails/*.yaml")
	require.NoError(tb, err)
	require.NotEmpty(tb, names)
	var out []Row
	for _, name := range names {
		var rows []Row
		read(tb, name, &rows)
		for i := range rows {
			r := &rows[i]
			r.File = strings.TrimSuffix(path.Base(name), ".yaml")
			require.NoError(tb, r.complete(fixtures), "%s: %s", name, r.Name)
		}
		out = append(out, rows...)
	}
	return out
}

// complete adds the fixtures and the creation times, and computes the changes.
func (r *Row) complete(fixtures map[string][]Object) error {
	if len(r.Steps) == 0 {
		r.Steps = []Write{r.Write}
	}
	stored, err := r.existing(fixtures)
	if err != nil {
		return err
	}
	for i := range r.Steps {
		if err := r.Steps[i].complete(stored); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// existing adds the objects of the fixtures and the creation times, makes the patches, and
// returns the objects by their ids.
func (r *Row) existing(fixtures map[string][]Object) (map[string]*Object, error) {
	c := Case{With: r.With, Against: r.Against}
	stored, err := c.existing(fixtures)
	if err != nil {
		return nil, err
	}
	for ref, patch := range r.Given {
		o, err := find(stored, ref)
		if err == nil {
			err = patchObject(o, patch)
		}
		if err != nil {
			return nil, fmt.Errorf("given %s: %w", ref, err)
		}
	}
	r.Against = c.Against
	return stored, nil
}

func (w *Write) complete(stored map[string]*Object) error {
	c := &w.Change
	switch {
	case w.Create != nil:
		c.Operation, c.Object = "CREATE", *w.Create
		if stored[id(&c.Object)] != nil {
			return fmt.Errorf("%s exists", id(&c.Object))
		}
	case w.Update != "" || w.Delete != "":
		old, err := find(stored, w.Update+w.Delete)
		if err != nil {
			return err
		}
		c.Old, c.Object, c.Operation = old, *old.DeepCopy(), "DELETE"
		if w.Update != "" {
			c.Operation = "UPDATE"
			if err := patchObject(&c.Object, w.Patch); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("a step must create, update or delete an object")
	}
	c.Verdict.Allowed = w.Denied == ""
	c.store(stored)
	if after := w.After(nil); len(after) > 0 {
		stored[id(&after[0])] = &after[0]
	}
	return nil
}

// find returns the object of a reference.
func find(stored map[string]*Object, ref string) (*Object, error) {
	var found *Object
	for _, o := range stored {
		name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		if o.GetKind()+" "+name == ref {
			if found != nil {
				return nil, fmt.Errorf("%s is ambiguous", ref)
			}
			found = o
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no %s", ref)
	}
	return found, nil
}

func patchObject(o *Object, patch json.RawMessage) error {
	before, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var after []byte
	if strings.HasPrefix(string(patch), "[") {
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(before)
		}
	} else {
		after, err = jsonpatch.MergePatch(before, patch)
	}
	if err != nil {
		return err
	}
	if string(before) == string(after) {
		return fmt.Errorf("patch without an effect")
	}
	o.Object = nil
	return json.Unmarshal(after, o)
}

// Overridable reports whether the right to override turns the denial into a warning.
func (w *Write) Overridable() bool { return slices.Contains(lossCodes, w.Denied) }

// After returns the objects after the write.
func (w *Write) After(objects []Object) []Object {
	if !w.Change.Verdict.Allowed {
		return objects
	}
	out := slices.DeleteFunc(slices.Clone(objects), func(o Object) bool { return id(&o) == id(&w.Change.Object) })
	if w.Change.Operation == "DELETE" {
		return out
	}
	after := w.Change.Object.DeepCopy()
	if w.Create != nil {
		after.SetCreationTimestamp(metav1.NewTime(Now))
	}
	return append(out, *after)
}

// Mismatch returns how a verdict for a writer differs from the expected one, "" if it
// does not.
func (w *Write) Mismatch(got api.Verdict, mayOverride bool) string {
	denied := w.Denied != "" && (!mayOverride || !w.Overridable())
	if got.Allowed == denied {
		return fmt.Sprintf("allowed: %t", got.Allowed)
	}
	code, in := w.Denied, got.Warnings
	switch {
	case denied:
		in = got.Reasons
	case w.Denied == "" && w.Warned == "":
		for _, r := range got.Warnings {
			if slices.Contains(lossCodes, r.Code) {
				return "unexpected warning: " + string(r.Code)
			}
		}
		return ""
	case w.Denied == "":
		code = w.Warned
	}
	for _, r := range in {
		if r.Code == code && !slices.ContainsFunc(w.Says, func(part string) bool { return !strings.Contains(r.Message, part) }) {
			return ""
		}
	}
	return fmt.Sprintf("no %s that says %q", code, w.Says)
}

// Holds returns the deletions of the existing policies, if no step of the row is denied.
// At least one of them is: otherwise no override holds, and the row says nothing.
func (r *Row) Holds() []Change {
	var out []Change
	if slices.ContainsFunc(r.Steps, func(w Write) bool { return w.Denied != "" }) {
		return nil
	}
	for i := range r.Against {
		o := &r.Against[i]
		spec, _ := o.Object["spec"].(map[string]any)
		if _, ok := spec["targetRef"]; !ok && spec["targetRefs"] == nil && spec["targetSelectors"] == nil {
			continue
		}
		out = append(out, Change{Operation: "DELETE", Object: *o, Old: o})
	}
	return out
}

// Entries are the rows that need an API server.
type Entries struct {
	// Definitions are the objects of the cluster that the entries share.
	Definitions []Object `json:"definitions"`
	Entries     []Entry  `json:"entries"`
	// Sequences are the names of those that are written in Go.
	Sequences []string `json:"sequences"`
}

// Entry is a row that needs an API server, with calls of kubectl.
type Entry struct {
	Name    string                     `json:"name"`
	With    []string                   `json:"with,omitempty"`
	Given   map[string]json.RawMessage `json:"given,omitempty"`
	Against []Object                   `json:"against,omitempty"`
	Steps   []Command                  `json:"steps"`
}

// Command is a call of kubectl. One that is denied is made by the writer and then by
// the overrider, who has the right to override, unless As names one of them.
type Command struct {
	As string `json:"as,omitempty"`
	// Kubectl are the arguments, without the patch.
	Kubectl  string          `json:"kubectl"`
	Patch    json.RawMessage `json:"patch,omitempty"`
	Manifest json.RawMessage `json:"manifest,omitempty"`
	// Dry: the call that is allowed is a dry run.
	Dry bool `json:"dry,omitempty"`
	// Slow: the calls are dry runs, repeated until they have the expected result: the API
	// server admits a write if the answer takes longer than the webhook's timeout.
	Slow bool `json:"slow,omitempty"`
	// Gone: the call is repeated until it fails, since the object does not exist.
	Gone   bool           `json:"gone,omitempty"`
	Denied api.ReasonCode `json:"denied,omitempty"`
	Says   []string       `json:"says,omitempty"`
}

// Overridable reports whether the right to override turns the denial into a warning.
func (c *Command) Overridable() bool { return slices.Contains(lossCodes, c.Denied) }

// LoadEntries returns the rows that need an API server.
func LoadEntries(tb testing.TB) Entries {
	tb.Helper()
	var fixtures map[string][]Object
	read(tb, "fixtures.yaml", &fixtures)
	var out Entries
	read(tb, "entries.yaml", &out)
	for i := range out.Entries {
		e := &out.Entries[i]
		r := Row{With: e.With, Given: e.Given, Against: e.Against}
		_, err := r.existing(fixtures)
		require.NoError(tb, err, e.Name)
		e.Against = r.Against
	}
	return out
}
