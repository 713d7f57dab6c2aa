package policykind

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/merge"
)

// Read reads a policy. created, in seconds since 1970, stands in for a
// creation time that the object does not have: the time of the request, or
// merge.Newest. What is wrong with the policy is in its Invalid; what can be
// read of it, its targets above all, is there even then.
//
// The policy keeps parts of the object: it must not be edited afterwards.
func (k *Kind) Read(object map[string]any, created int64) *Policy {
	u := unstructured.Unstructured{Object: object}
	p := &Policy{Kind: k, Version: versions.Add(1)}
	p.Namespace, p.Name, p.Created = u.GetNamespace(), u.GetName(), created
	if t := u.GetCreationTimestamp(); !t.IsZero() {
		p.Created = t.Unix()
	}
	r := reader{kind: k, policy: p}
	root := field.NewPath("spec")
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		r.wrong(root, object["spec"], "an object")
	} else {
		r.targets(root, spec)
		r.unset(root, spec)
		r.blocks(root, spec)
	}
	// Maps are walked in any order; the message is the same each time.
	slices.SortFunc(r.errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := r.errs.ToAggregate(); err != nil {
		p.Invalid = err
	}
	return p
}

// InFlight returns the creation time of a create that is under way.
func InFlight(now time.Time) int64 { return metav1.NewTime(now).Unix() }

type reader struct {
	kind   *Kind
	policy *Policy
	errs   field.ErrorList
}

func (r *reader) invalid(at *field.Path, value any, format string, args ...any) {
	r.errs = append(r.errs, field.Invalid(at, value, fmt.Sprintf(format, args...)))
}

// wrong books a value of the wrong type.
func (r *reader) wrong(at *field.Path, value any, want string) {
	if value == nil {
		r.errs = append(r.errs, field.Required(at, "must be "+want))
		return
	}
	r.errs = append(r.errs, field.TypeInvalid(at, typeName(value), "must be "+want))
}

func typeName(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case string:
		return "string"
	case bool:
		return "boolean"
	default:
		return "number"
	}
}

// unset reads the lists of rules to take out of higher defaults.
func (r *reader) unset(root *field.Path, spec map[string]any) {
	for _, name := range r.kind.Unset {
		value, ok := spec[name]
		if !ok || value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			r.wrong(root.Child(name), value, "a list of rule names")
			continue
		}
		for i, entry := range list {
			r.unsetOne(root.Child(name).Index(i), entry)
		}
	}
}

func (r *reader) unsetOne(at *field.Path, entry any) {
	text, ok := entry.(string)
	if !ok {
		r.wrong(at, entry, "a rule name")
		return
	}
	name, err := merge.ParseName(text)
	if err != nil {
		r.invalid(at, text, "%v", err)
		return
	}
	r.policy.Unset = append(r.policy.Unset, name)
}

// blocks reads the defaults, the bare rules and the overrides: what is in
// neither a block nor another field that the profile names is bare.
func (r *reader) blocks(root *field.Path, spec map[string]any) {
	k := r.kind
	bare := maps.Clone(spec)
	for _, name := range slices.Concat(k.Targets.Fields, k.Unset) {
		delete(bare, name)
	}
	defaults := r.stanzas(root, bare, k.Blocks.Defaults)
	overrides := r.stanzas(root, bare, k.Blocks.Overrides)
	r.stanza(root, defaults, merge.Defaults)
	r.block(root, bare, merge.Bare, r.strategy(root, bare, k.Blocks.Strategy.BareField))
	r.stanza(root, overrides, merge.Overrides)
}

// stanza is a block under the name that the policy gives it.
type stanza struct {
	name    string
	content map[string]any
}

// stanzas takes out of spec a block that may be spelled in several ways, and
// says so if more than one is there.
func (r *reader) stanzas(root *field.Path, spec map[string]any, names []string) (s stanza) {
	for _, name := range names {
		value, ok := spec[name]
		if !ok {
			continue
		}
		content, ok := value.(map[string]any)
		if !ok && value != nil && r.kind.Source == Label {
			continue // a guess: the field may be anything, and stays content
		}
		delete(spec, name)
		switch {
		case value == nil:
		case !ok:
			r.wrong(root.Child(name), value, "an object")
		case s.name != "":
			r.errs = append(r.errs, field.Forbidden(root.Child(name), "stands beside "+s.name+": use one of the two"))
		default:
			s = stanza{name, maps.Clone(content)}
		}
	}
	return s
}

func (r *reader) stanza(root *field.Path, s stanza, block merge.Block) {
	if s.name == "" {
		return
	}
	at := root.Child(s.name)
	r.block(at, s.content, block, r.strategy(at, s.content, r.kind.Blocks.Strategy.Field))
}

// strategy takes the strategy out of the content of a block.
func (r *reader) strategy(at *field.Path, content map[string]any, name string) merge.Strategy {
	k := r.kind
	value, ok := content[name]
	if name == "" || !ok {
		return k.strategies[0]
	}
	if value == nil {
		delete(content, name)
		return k.strategies[0]
	}
	text, _ := value.(string)
	s, ok := merge.ParseStrategy(text)
	ok = ok && slices.Contains(k.strategies, s)
	if !ok && k.Source == Label {
		return k.strategies[0] // a guess: the field may be anything, and stays content
	}
	delete(content, name)
	if !ok {
		r.errs = append(r.errs, field.NotSupported(at.Child(name), value, k.Blocks.Strategy.Allowed))
	}
	return s
}

// block reads the rules of one block; content is the caller's to give away.
func (r *reader) block(at *field.Path, content map[string]any, block merge.Block, s merge.Strategy) {
	b := merge.Rules{Block: block, Strategy: s}
	b.When = r.when(at, content)
	split := splitter{kind: r.kind}
	split.walk(at, merge.Key{}, content, 0, r.kind.patterns)
	r.errs = append(r.errs, split.errs...)
	slices.SortFunc(split.rules, func(a, b merge.Rule) int { return a.Key.Compare(b.Key) })
	b.Rules = slices.Clip(split.rules)
	if len(b.Rules) > 0 {
		r.policy.Blocks = append(r.policy.Blocks, b)
	}
}

// when takes the condition out of the content of a block. A list there is
// content: what a request is asked, one by one.
func (r *reader) when(at *field.Path, content map[string]any) merge.Condition {
	name := r.kind.Blocks.When
	value, ok := content[name]
	if _, isList := value.([]any); name == "" || !ok || isList {
		return nil
	}
	delete(content, name)
	text, ok := value.(string)
	switch {
	case value == nil:
		return nil
	case !ok:
		r.wrong(at.Child(name), value, "a condition in CEL, as a string")
		return nil
	}
	condition, err := cel.Compile(text)
	if err != nil {
		r.invalid(at.Child(name), text, "%v", err)
		return nil
	}
	return condition
}

// splitter takes the content of a block apart into rules.
type splitter struct {
	kind  *Kind
	rules []merge.Rule
	errs  field.ErrorList
}

// walk goes down while some pattern goes on; live are those that match so far.
func (s *splitter) walk(at *field.Path, key merge.Key, value any, depth int, live []pattern) {
	content, isMap := value.(map[string]any)
	switch {
	case depth > 0 && s.kind.leaves:
		s.leaf(key, value, depth)
		return
	case depth > 0 && ends(live, depth):
		s.rules = append(s.rules, merge.Rule{Key: key, Value: value})
		return
	case value == nil:
		return // an absent container
	case !isMap:
		s.errs = append(s.errs, field.TypeInvalid(at, typeName(value), "must be a map of rules by name"))
		return
	}
	for name, child := range content {
		s.walk(at.Child(name), key.Child(name), child, depth+1, matching(live, depth, name))
	}
}

// leaf goes down to the leaves, or to a map that is one value.
func (s *splitter) leaf(key merge.Key, value any, depth int) {
	content, isMap := value.(map[string]any)
	if !isMap || slices.ContainsFunc(s.kind.whole, func(p pattern) bool { return p.is(key) }) {
		s.rules = append(s.rules, merge.Rule{Key: key, Value: value})
		return
	}
	if len(content) == 0 {
		s.rules = append(s.rules, merge.Rule{Key: key, Value: content, Hollow: true})
	}
	for name, child := range content {
		s.leaf(key.Child(name), child, depth+1)
	}
}

// ends reports whether a rule ends here: a pattern does, or none goes on.
func ends(live []pattern, depth int) bool {
	return len(live) == 0 || slices.ContainsFunc(live, func(p pattern) bool { return len(p) == depth })
}

// matching returns the patterns that go on with a segment.
func matching(live []pattern, depth int, segment string) []pattern {
	var out []pattern
	for _, p := range live {
		if len(p) > depth && (p[depth] == "*" || p[depth] == segment) {
			out = append(out, p)
		}
	}
	return out
}

// is reports whether the pattern is the address of a key.
func (p pattern) is(k merge.Key) bool {
	return slices.EqualFunc(p, k.Segments(), func(a, b string) bool { return a == "*" || a == b })
}
