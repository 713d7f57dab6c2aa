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

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/ratelimit"
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
	p := &Policy{Kind: k, Version: NextVersion()}
	p.Namespace, p.Name, p.Created = u.GetNamespace(), u.GetName(), created
	p.State = State{string(u.GetUID()), u.GetResourceVersion()}
	if t := u.GetCreationTimestamp(); !t.IsZero() {
		p.Created = t.Unix()
	}
	metadata, _ := object["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	p.Deleting = metadata["deletionTimestamp"] != nil || len(owners) > 0
	r := reader{kind: k, policy: p, version: u.GroupVersionKind().Version}
	root := field.NewPath("spec")
	spec, ok := object["spec"].(map[string]any)
	if !ok {
		r.wrongType(root, object["spec"], "an object")
	} else {
		r.targets(root, spec)
		r.rank(root, spec, u.GetAnnotations())
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
	kind    *Kind
	policy  *Policy
	version string // of the kind's API that the object is written in
	errs    field.ErrorList
	limits  *ratelimit.Budget // of what binds, nil where nothing did
}

func (r *reader) invalid(at *field.Path, value any, format string, args ...any) {
	r.errs = append(r.errs, field.Invalid(at, value, fmt.Sprintf(format, args...)))
}

// wrong books a value of the wrong type.
func (r *reader) wrongType(at *field.Path, value any, want string) {
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
		value, at := lookup(root, spec, name)
		if value == nil {
			continue
		}
		list, ok := value.([]any)
		if !ok {
			r.wrongType(at, value, "a list of rule names")
			continue
		}
		for i, entry := range list {
			r.unsetOne(at.Index(i), entry)
		}
	}
}

func (r *reader) unsetOne(at *field.Path, entry any) {
	text, ok := entry.(string)
	if !ok {
		r.wrongType(at, entry, "a rule name")
		return
	}
	name, err := merge.ParseName(text)
	if err != nil {
		r.invalid(at, text, "%v", err)
		return
	}
	r.policy.Unset = append(r.policy.Unset, name)
}

// lookup returns the value at an address of the profile, nil if there is none,
// and the place for messages.
func lookup(root *field.Path, spec map[string]any, text string) (any, *field.Path) {
	a := cachedFieldPath(text)
	value, _ := a.lookup(spec)
	at := root
	for _, segment := range a {
		at = at.Child(segment)
	}
	return value, at
}

// blocks reads the defaults, the bare rules and the overrides: what is in
// neither a block nor another field that the profile names is bare.
func (r *reader) blocks(root *field.Path, spec map[string]any) {
	k := r.kind
	bareAs := r.bareBlock(root, spec)
	for _, a := range k.nonContent {
		spec = a.without(spec)
	}
	bare, root := r.content(root, spec)
	if bare == nil {
		r.setStrategyOnHigher(k.strategies[0])
		return
	}
	if k.SameTarget == api.Collect {
		r.collect(bare, bareAs)
		return
	}
	defaults := r.takeBlock(root, bare, k.Blocks.Defaults)
	overrides := r.takeBlock(root, bare, k.Blocks.Overrides)
	strategy := r.strategy(root, bare, k.Strategy.BareField)
	r.setStrategyOnHigher(strategy)
	r.addNamedBlock(root, defaults, merge.Defaults)
	above := len(r.policy.Blocks)
	r.block(root, bare, bareAs, strategy)
	if defaults.name != "" || overrides.name != "" {
		r.dropLoneGates(above)
	}
	r.addNamedBlock(root, overrides, merge.Overrides)
}

// onto sets how the policy meets the next higher one, where that is for it to say.
func (r *reader) setStrategyOnHigher(s merge.Strategy) {
	if r.kind.LowerDecidesStrategy() {
		r.policy.StrategyOnHigher = &s
	}
}

// idle takes the bare block, which may be at a place, out of the policy if it has
// nothing but gates: beside a block they take no part (SEMANTICS section 3).
func (r *reader) dropLoneGates(at int) {
	p := r.policy
	if at == len(p.Blocks) || slices.ContainsFunc(p.Blocks[at].Rules, func(one merge.Rule) bool { return !r.kind.IsGate(one.Key) }) {
		return
	}
	for _, gate := range p.Blocks[at].Rules {
		p.IgnoredGates = append(p.IgnoredGates, gate.Key.String())
	}
	p.Blocks = p.Blocks[:at]
}

// content returns what of spec is content, to be edited, and where it is.
func (r *reader) content(root *field.Path, spec map[string]any) (map[string]any, *field.Path) {
	for _, segment := range r.kind.content {
		root = root.Child(segment)
	}
	value, ok := r.kind.content.lookup(spec)
	content, isObject := value.(map[string]any)
	switch {
	case !ok || value == nil:
		return nil, root
	case !isObject:
		r.wrongType(root, value, "an object")
		return nil, root
	}
	content = maps.Clone(content)
	for _, a := range r.kind.ignored {
		content = a.without(content)
	}
	return content, root
}

// bareBlock tells as what the bare rules are applied.
func (r *reader) bareBlock(root *field.Path, spec map[string]any) merge.Block {
	b := r.kind.Blocks.Bare
	if b == nil {
		return merge.Bare
	}
	value, at := lookup(root, spec, b.Field)
	text, ok := value.(string)
	if value != nil && !ok {
		r.wrongType(at, value, "a string")
	}
	if slices.Contains(b.Overrides, text) {
		return merge.Overrides
	}
	return merge.Bare
}

// collect makes one rule of the whole content, under the policy's own name: it
// stands beside those of others. An empty one says something, too.
func (r *reader) collect(content map[string]any, block merge.Block) {
	name := r.policy.Name
	if r.policy.Namespace != "" {
		name = r.policy.Namespace + "/" + name
	}
	r.policy.Blocks = []merge.Rules{{
		Block: block, Strategy: r.kind.strategies[0],
		Rules: []merge.Rule{{Key: merge.Key{}.Child(name), Value: content}},
	}}
}

// stanza is a block under the name that the policy gives it.
type namedBlock struct {
	name    string
	content map[string]any
}

// stanzas takes out of spec a block that may be spelled in several ways, and
// says so if more than one is there.
func (r *reader) takeBlock(root *field.Path, spec map[string]any, names []string) (s namedBlock) {
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
			r.wrongType(root.Child(name), value, "an object")
		case s.name != "":
			r.errs = append(r.errs, field.Forbidden(root.Child(name), "stands beside "+s.name+": use one of the two"))
		default:
			s = namedBlock{name, maps.Clone(content)}
		}
	}
	return s
}

func (r *reader) addNamedBlock(root *field.Path, s namedBlock, block merge.Block) {
	if s.name == "" {
		return
	}
	at := root.Child(s.name)
	r.block(at, s.content, block, r.strategy(at, s.content, r.kind.Strategy.Field))
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
	s, ok := k.spellings[text]
	if !ok {
		s, ok = merge.ParseStrategy(text)
		ok = ok && slices.Contains(k.strategies, s)
	}
	if !ok && k.Source == Label {
		return k.strategies[0] // a guess: the field may be anything, and stays content
	}
	delete(content, name)
	if !ok {
		r.errs = append(r.errs, field.NotSupported(at.Child(name), value, k.strategyNames()))
	}
	return s
}

// block reads the rules of one block; content is the caller's to give away.
func (r *reader) block(at *field.Path, content map[string]any, block merge.Block, s merge.Strategy) {
	b := merge.Rules{Block: block, Strategy: s}
	b.When = r.when(at, content)
	split := splitter{kind: r.kind}
	split.walk(at, merge.Key{}, content, 0, r.kind.rules)
	r.errs = append(r.errs, split.errs...)
	b.When = r.kind.withLists(b.When)
	slices.SortFunc(split.rules, func(a, b merge.Rule) int { return a.Key.Compare(b.Key) })
	b.Rules = slices.Clip(split.rules)
	r.bindings(at, b.Rules)
	if len(b.Rules) > 0 {
		r.policy.Blocks = append(r.policy.Blocks, b)
	}
}

// bindings reads the rules that bind to rules of routes, to find what is wrong
// with them, and fills in what the API server would.
func (r *reader) bindings(at *field.Path, rules []merge.Rule) {
	for i := range rules {
		rule := &rules[i]
		name, ok := r.kind.Binds(rule.Key)
		if !ok || rule.Value == nil || r.version != r.kind.Binding.Version && !ratelimit.IsRateLimit(rule.Value) {
			continue
		}
		place := at
		for _, segment := range rule.Key.Segments() {
			place = place.Child(segment)
		}
		r.policy.Binds = true
		if r.limits == nil {
			r.limits = ratelimit.NewBudget()
		}
		_, errs := r.limits.Read(place, name, rule.Value)
		r.errs = append(r.errs, errs...)
		if len(errs) == 0 {
			rule.Value = ratelimit.Defaulted(rule.Value)
		}
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
		r.wrongType(at.Child(name), value, "a condition in CEL, as a string")
		return nil
	}
	condition, err := cel.Compile(text)
	if err != nil {
		r.invalid(at.Child(name), text, "%v", err)
		return nil
	}
	return condition
}

// shaped lets a condition see the lists that the rules took apart.
func (k *Kind) withLists(c merge.Condition) merge.Condition {
	if c == nil || len(k.lists) == 0 {
		return c
	}
	return listCondition{c, k}
}

type listCondition struct {
	merge.Condition
	kind *Kind
}

// Evaluate implements merge.Condition.
func (c listCondition) Evaluate(spec map[string]any) merge.Answer {
	return c.Condition.Evaluate(c.kind.Shape(merge.UnpackMaps(spec))) // a list has nothing packed in it
}

// strategyNames are all words for a strategy that the kind knows.
func (k *Kind) strategyNames() []string {
	out := sortedKeys(k.spellings)
	for _, s := range k.strategies {
		out = append(out, s.String())
	}
	return out
}
