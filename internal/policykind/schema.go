package policykind

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// Schema is the schema of the version of a kind that is read, from its
// CustomResourceDefinition. It is stored compressed, since a cluster has hundreds of
// definitions and few of them are policy kinds, and is decoded once, when it is first
// used. It is immutable, and safe for concurrent use.
type Schema struct {
	packed  []byte // JSON, deflated
	unpack  sync.Once
	content *structuralschema.Structural
	err     error
}

// PackSchema returns the schema of a whole object without its documentation, nil for
// nil. Structural returns the error of an invalid one.
func PackSchema(props *apiextensionsv1.JSONSchemaProps) *Schema {
	if props == nil {
		return nil
	}
	packed, err := pack(props)
	return &Schema{packed: packed, err: err}
}

func pack(props *apiextensionsv1.JSONSchemaProps) ([]byte, error) {
	data, err := json.Marshal(stripDocs(props))
	if err != nil {
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // it fails for an invalid level only
	_, _ = w.Write(data)                              // a buffer returns no error
	_ = w.Close()
	return packed.Bytes(), nil
}

// Same reports whether two schemas are equal, documentation aside. Either may be nil.
func (s *Schema) Same(o *Schema) bool {
	return s == o || s != nil && o != nil && bytes.Equal(s.packed, o.packed)
}

// Structural returns the schema of the whole object, or an error if it is not
// structural. The result is shared and must not be edited.
func (s *Schema) Structural() (*structuralschema.Structural, error) {
	s.unpack.Do(func() {
		if s.err == nil {
			s.content, s.err = s.structural()
		}
	})
	return s.content, s.err
}

// Props returns a copy of the schema, nil if s is nil.
func (s *Schema) Props() (*apiextensionsv1.JSONSchemaProps, error) {
	if s == nil {
		return nil, nil
	}
	data, err := io.ReadAll(flate.NewReader(bytes.NewReader(s.packed)))
	if err != nil {
		return nil, fmt.Errorf("decompress schema: %w", err)
	}
	out := new(apiextensionsv1.JSONSchemaProps)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	return out, nil
}

func (s *Schema) structural() (*structuralschema.Structural, error) {
	props, err := s.Props()
	if err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		return nil, fmt.Errorf("decode schema: %w", err)
	}
	out, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	if errs := structuralschema.ValidateStructural(nil, out); len(errs) > 0 {
		return nil, fmt.Errorf("the schema is not structural: %w", errs.ToAggregate())
	}
	return out, nil
}

// stripDocs returns a copy of a schema without descriptions and examples: they are
// most of it, and schemas that differ only there are the same.
func stripDocs(p *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	out := p.DeepCopy()
	removeDocs(out)
	return out
}

// removeDocs edits a schema, which may be nil.
func removeDocs(p *apiextensionsv1.JSONSchemaProps) {
	if p == nil {
		return
	}
	p.Description, p.Title, p.ExternalDocs, p.Example = "", "", nil, nil
	for _, below := range []map[string]apiextensionsv1.JSONSchemaProps{p.Properties, p.PatternProperties, p.Definitions} {
		for name, child := range below {
			removeDocs(&child)
			below[name] = child
		}
	}
	lists := [][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.OneOf, p.AnyOf}
	if p.Items != nil {
		removeDocs(p.Items.Schema)
		lists = append(lists, p.Items.JSONSchemas)
	}
	for _, below := range lists {
		for i := range below {
			removeDocs(&below[i])
		}
	}
	if p.AdditionalProperties != nil {
		removeDocs(p.AdditionalProperties.Schema)
	}
	removeDocs(p.Not)
}

// WithSchema returns a copy of the kind with the schema of its objects, which may be
// nil. It does not edit k: kinds are shared.
func (k *Kind) WithSchema(s *Schema) *Kind {
	if k.schema == s {
		return k
	}
	out := *k
	out.schema = s
	return &out
}

// Schema returns the schema of the kind's objects, nil if it is unknown.
func (k *Kind) Schema() *Schema { return k.schema }

// Layout is where the rules are in the objects of a kind. Field paths are lists of
// segments; in those of rules, * matches any name.
type Layout struct {
	// Content is the path of the content in the object.
	Content []string
	// NotContent are the paths in the object that are not content, such as target
	// references.
	NotContent [][]string
	// NotRules are the paths below the content that are not bare rules: the blocks,
	// and their strategies. A condition is not among them, since a list in its place
	// is a rule.
	NotRules [][]string
	// Leaves is set if the leaves of the content are the rules. A map at a path of
	// Whole, below the content of a block, is one rule, and a list at a path of Lists
	// is split by key.
	Leaves       bool
	Whole, Lists [][]string
	// Rules are the paths of the rules otherwise, below the content of a block. A
	// field that none of them matches is a rule.
	Rules [][]string
}

// Layout returns where the kind's rules are. The result is shared and must not be
// edited.
func (k *Kind) Layout() Layout {
	out := Layout{
		Content: slices.Concat(k.root, k.content), NotRules: segments(k.ignored),
		Leaves: k.rulesAreLeaves, Whole: segments(k.wholeMaps), Rules: segments(k.rules),
	}
	names := slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides, []string{k.Strategy.Field, k.Strategy.BareField})
	for _, name := range names {
		if name != "" {
			out.NotRules = append(out.NotRules, []string{name})
		}
	}
	for _, a := range k.nonContent {
		out.NotContent = append(out.NotContent, slices.Concat(k.root, a))
	}
	for _, l := range k.lists {
		out.Lists = append(out.Lists, l.path)
	}
	return out
}

func segments(all []fieldPath) [][]string {
	var out [][]string
	for _, a := range all {
		out = append(out, a)
	}
	return out
}
