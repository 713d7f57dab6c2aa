package printers

import (
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// Format is an output format.
type Format string

// The output formats.
const (
	Table Format = "table"
	Tree  Format = "tree"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats are the formats of all results except rendered limits.
var Formats = []Format{Table, Tree, JSON, YAML}

// Printer writes results.
type Printer struct {
	Out    io.Writer
	Format Format
	// Color enables colors in tables and trees.
	Color bool
}

// write writes a document of the JSON contract in the format of the printer. show writes the
// human-readable formats.
func write[D any](p Printer, list D, show func(*textWriter, D)) error {
	var text []byte
	var err error
	switch p.Format {
	case JSON:
		text, err = decode.Encode(list, "  ")
		text = append(text, '\n')
	case YAML:
		text, err = yaml.Marshal(list)
	default:
		w := textWriter{color: p.Color, tree: p.Format == Tree}
		show(&w, list)
		text, err = []byte(w.text.String()), w.err
	}
	if err != nil {
		return fmt.Errorf("write %T as %s: %w", list, p.Format, err)
	}
	if _, err := p.Out.Write(text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

func meta(kind string) api.TypeMeta { return api.TypeMeta{APIVersion: api.APIVersion, Kind: kind} }

// nonNil returns the items, never nil: an empty list is [] in JSON.
func nonNil[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// Effective writes effective policies and the outcomes of policies.
func (p Printer) Effective(l api.EffectivePolicyList) error {
	l.TypeMeta, l.Items, l.Outcomes = meta(api.KindEffectivePolicyList), nonNil(l.Items), nonNil(l.Outcomes)
	return write(p, &l, writeEffective)
}

// Explanations writes explanations.
func (p Printer) Explanations(l api.ExplanationList) error {
	l.TypeMeta, l.Items = meta(api.KindExplanationList), nonNil(l.Items)
	return write(p, &l, writeExplanations)
}

// Outcomes writes the outcomes of policies.
func (p Printer) Outcomes(items []api.Outcome) error {
	items = slices.Clone(items)
	for i := range items {
		items[i].Conditions = items[i].State.Conditions()
	}
	return write(p, &api.OutcomeList{TypeMeta: meta(api.KindOutcomeList), Items: nonNil(items)}, writeOutcomes)
}

// Verdicts writes the verdicts on changes.
func (p Printer) Verdicts(items []api.Verdict) error {
	return write(p, &api.VerdictList{TypeMeta: meta(api.KindVerdictList), Items: nonNil(items)}, writeVerdicts)
}

// Changes writes the differences that the changes of objects make, of which there are the
// verdicts. Objects without differences are listed, too.
func (p Printer) Changes(items []api.Change, objects []api.Verdict) error {
	return write(p, &api.ChangeList{TypeMeta: meta(api.KindChangeList), Items: nonNil(items)}, func(w *textWriter, l *api.ChangeList) {
		w.nodes(w.changeNodes(l, objects))
	})
}

// Reaches writes where policies have an effect.
func (p Printer) Reaches(items []api.Reach) error {
	return write(p, &api.ReachList{TypeMeta: meta(api.KindReachList), Items: nonNil(items)}, writeReaches)
}

// Violations writes violations.
func (p Printer) Violations(items []api.Violation) error {
	return write(p, &api.ViolationList{TypeMeta: meta(api.KindViolationList), Items: nonNil(items)}, writeViolations)
}

// Profiles writes the profiles of policy kinds.
func (p Printer) Profiles(items []api.ProfileInForce) error {
	return write(p, &api.ProfileList{TypeMeta: meta(api.KindProfileList), Items: nonNil(items)}, writeProfiles)
}

// Exported is the manifest of a PolicyProfile, without the fields that the API
// server sets.
type Exported struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        ExportedMetadata      `json:"metadata"`
	Spec            api.PolicyProfileSpec `json:"spec"`
}

// ExportedMetadata is the metadata of an exported object.
type ExportedMetadata struct {
	Name string `json:"name"`
}

// Manifest writes a manifest as JSON, else as YAML.
func (p Printer) Manifest(e Exported) error {
	if p.Format != JSON {
		p.Format = YAML
	}
	return write(p, &e, nil)
}
