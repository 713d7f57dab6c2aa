package policykind

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/ratelimit"
	"overrule.dev/overrule/merge"
)

// Read reads a policy. created, in seconds since 1970, is used if the object has no
// creation time: it is the time of the request, or merge.Newest. The error of an
// invalid policy is in its Invalid; the fields that could be read, its targets above
// all, are set even then.
//
// The policy shares parts of the object, which must not be edited afterwards.
func (k *Kind) Read(object map[string]any, created int64) *Policy {
	u := unstructured.Unstructured{Object: object}
	p := &Policy{Kind: k, Version: NextVersion(), None: k.Source == Label}
	p.Namespace, p.Name, p.Created = u.GetNamespace(), u.GetName(), created
	p.State = State{string(u.GetUID()), u.GetResourceVersion()}
	if t := u.GetCreationTimestamp(); !t.IsZero() {
		p.Created = t.Unix()
	}
	if k.Ageless {
		p.Created = 0
	}
	for _, o := range u.GetOwnerReferences() {
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		p.Owners = append(p.Owners, api.Ref{Group: gvk.Group, Kind: gvk.Kind, Name: o.Name})
	}
	metadata, _ := object["metadata"].(map[string]any)
	p.Deleting = metadata["deletionTimestamp"] != nil || len(p.Owners) > 0
	r := reader{kind: k, policy: p, version: u.GroupVersionKind().Version, labels: u.GetLabels()}
	root := field.NewPath("spec")
	spec, ok := object["spec"].(map[string]any)
	if k.Content == wholeObject {
		root, spec, ok = nil, object, true
	}
	if ok {
		r.targets(root, spec)
	}
	switch {
	case p.None:
	case !ok:
		r.wrongType(root, object["spec"], "an object")
	default:
		r.rank(root, spec, u.GetAnnotations())
		r.unset(root, spec)
		r.blocks(root, spec)
		r.routeContents(root, spec)
		r.places(root)
		r.backends(spec)
		slices.SortFunc(p.Backends, func(a, b Backend) int {
			return cmp.Or(api.CompareRefs(a.Object, b.Object), cmp.Compare(a.Port, b.Port))
		})
		p.Backends = slices.Compact(p.Backends)
	}
	// maps are iterated in random order: sort, so that the message is always the same
	slices.SortFunc(r.errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	if err := r.errs.ToAggregate(); err != nil {
		p.Invalid = err
	}
	return p
}

// InFlight returns the creation time of an object whose CREATE is in flight.
func InFlight(now time.Time) int64 { return metav1.NewTime(now).Unix() }

type reader struct {
	kind    *Kind
	policy  *Policy
	version string // the API version of the object
	labels  map[string]string
	errs    field.ErrorList
	limits  ratelimit.Budget // of the rules that bind
}

func (r *reader) invalid(at *field.Path, value any, format string, args ...any) {
	r.errs = append(r.errs, field.Invalid(at, value, fmt.Sprintf(format, args...)))
}

// wrongType adds the error of a value that is missing or of the wrong type.
func (r *reader) wrongType(at *field.Path, value any, want string) {
	if value == nil {
		r.errs = append(r.errs, field.Required(at, "must be "+want))
		return
	}
	r.errs = append(r.errs, field.TypeInvalid(at, decode.TypeName(value), "must be "+want))
}

// unset reads the lists of rules to remove from higher defaults.
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
	r.policy.Unset, r.policy.fields.unset = append(r.policy.Unset, name), append(r.policy.fields.unset, at.String())
}

// lookup returns the value at a field path of the profile, nil if there is none, and
// its path for errors.
func lookup(root *field.Path, spec map[string]any, text string) (any, *field.Path) {
	a := cachedFieldPath(text)
	value, _ := a.lookup(spec)
	at := root
	for _, segment := range a {
		at = at.Child(segment)
	}
	return value, at
}

// blocks reads the defaults, the bare rules and the overrides. Fields outside the
// blocks that the profile does not name otherwise are bare rules.
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
	r.checkOwnFields(root, bare, slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides, []string{k.Strategy.BareField}))
	strategy := r.strategy(root, bare, k.Strategy.BareField)
	r.setStrategyOnHigher(strategy.Strategy)
	if bareAs == merge.Overrides && len(k.Blocks.Bare.Levels) > 0 {
		r.policy.BareOverrides, bareAs = &merge.Reading{Block: merge.Overrides, Strategy: strategy.Strategy}, merge.Bare
	}
	r.addNamedBlock(root, defaults, merge.Defaults)
	above := len(r.policy.Blocks)
	r.directions(root, bare, bareAs, strategy)
	if defaults.name != "" || overrides.name != "" {
		r.dropLoneGates(above)
	}
	r.addNamedBlock(root, overrides, merge.Overrides)
}

// setStrategyOnHigher sets the strategy of the next higher policy, if the lower policy
// decides it.
func (r *reader) setStrategyOnHigher(s merge.Strategy) {
	if r.kind.LowerDecidesStrategy() {
		r.policy.StrategyOnHigher = &s
	}
}

// dropLoneGates removes the bare block, which is at index i if there is one, if all
// its rules are gates: beside a block they are not applied (SEMANTICS section 3).
func (r *reader) dropLoneGates(i int) {
	p := r.policy
	if i == len(p.Blocks) || slices.ContainsFunc(p.Blocks[i].Rules, func(one merge.Rule) bool { return !r.kind.IsGate(one.Key) }) {
		return
	}
	for _, gate := range p.Blocks[i].Rules {
		p.IgnoredGates = append(p.IgnoredGates, gate.Key.String())
	}
	p.Blocks, p.fields.blocks = p.Blocks[:i], p.fields.blocks[:i]
}

// content returns a copy of the content of spec, and its path.
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
	for _, v := range r.kind.Variants {
		if value, _ := content[v.Name].(map[string]any); value[v.Field] == v.Value {
			content[v.As] = value
			delete(content, v.Name)
		}
	}
	for _, a := range r.kind.ignored {
		content = a.without(content)
	}
	if r.kind.Named != nil {
		return r.named(root, content), nil
	}
	return content, root
}

// named returns the content as one rule, nil if it has no effect.
func (r *reader) named(at *field.Path, content map[string]any) map[string]any {
	k := r.kind
	if k.disabled != nil {
		if off, _ := k.disabled.lookup(content); off == true {
			return nil
		}
		content = k.disabled.without(content)
	}
	value, at := lookup(at, content, k.Named.Field)
	name, _ := value.(string)
	if name == "" {
		r.errs = append(r.errs, field.Required(at, "must be a string, the key of the rule"))
		return nil
	}
	return map[string]any{name: k.name.without(content)}
}

// bareBlock returns the block that the bare rules act as.
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

// collect makes one rule of the whole content under the policy's own name, so that
// it does not conflict with those of other policies. Empty content is a rule too.
func (r *reader) collect(content map[string]any, block merge.Block) {
	name := r.policy.Name
	if r.policy.Namespace != "" {
		name = r.policy.Namespace + "/" + name
	}
	r.policy.Blocks = []merge.Rules{{
		Block: block, Strategy: r.kind.strategies[0],
		Rules: []merge.Rule{{Key: merge.Key{}.Child(name), Value: content}},
	}}
	r.policy.fields.blocks = []string{""}
}

// namedBlock is the content of a block, and the name of its field.
type namedBlock struct {
	name    string
	content map[string]any
}

// takeBlock removes a block from spec and returns it. The block has one of several
// names; more than one of them is an error.
func (r *reader) takeBlock(root *field.Path, spec map[string]any, names []string) (s namedBlock) {
	for _, name := range names {
		value, ok := spec[name]
		if !ok {
			continue
		}
		content, ok := value.(map[string]any)
		if !ok && value != nil && r.kind.Source == Label {
			continue // in a derived profile the field may be anything: it stays content
		}
		delete(spec, name)
		switch {
		case value == nil:
		case !ok:
			r.wrongType(root.Child(name), value, "an object")
		case s.name != "":
			r.errs = append(r.errs, field.Forbidden(root.Child(name), "may not be set together with "+s.name+"; use one of the two"))
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
	r.checkOwnFields(at, s.content, []string{r.kind.Strategy.Field, r.kind.Blocks.When})
	r.block(at, s.content, block, r.strategy(at, s.content, r.kind.Strategy.Field))
}

// checkOwnFields adds an error for each field that is a misspelled one of those that are
// no rules. The API server removes it if the kind has a schema, so only without one it
// would be read as a rule.
func (r *reader) checkOwnFields(at *field.Path, content map[string]any, own []string) {
	if r.kind.Schema() != nil || r.kind.Source == Label {
		return
	}
	own = slices.DeleteFunc(own, func(name string) bool { return name == "" })
	for name := range content {
		if meant := editdistance.Closest(name, own); meant != "" && meant != name && !slices.Contains(own, name) {
			r.errs = append(r.errs, field.Forbidden(at.Child(name), fmt.Sprintf("unknown field: did you mean %q?", meant)))
		}
	}
}

// blockStrategy is how a block is merged.
type blockStrategy struct {
	merge.Strategy
	wholeLists bool // it replaces the lists of the kind whole
}

// strategy removes the strategy from the content of a block and returns it.
func (r *reader) strategy(at *field.Path, content map[string]any, name string) blockStrategy {
	k := r.kind
	byDefault := blockStrategy{Strategy: k.strategies[0]}
	value, ok := content[name]
	if name == "" || !ok {
		return byDefault
	}
	if value == nil {
		delete(content, name)
		return byDefault
	}
	text, _ := value.(string)
	s, ok := k.spellings[text]
	if len(k.spellings) == 0 {
		s, ok = merge.ParseStrategy(text)
		ok = ok && slices.Contains(k.strategies, s)
	}
	if !ok && k.Source == Label {
		return byDefault // in a derived profile the field may be anything: it stays content
	}
	delete(content, name)
	if !ok {
		r.errs = append(r.errs, field.NotSupported(at.Child(name), value, k.strategyNames()))
	}
	return blockStrategy{s, slices.Contains(k.Strategy.WholeLists, text)}
}

// block reads the rules of one block. It edits content.
func (r *reader) block(at *field.Path, content map[string]any, block merge.Block, s blockStrategy) {
	b := merge.Rules{Block: block, Strategy: s.Strategy}
	b.When = r.when(at, content)
	split := splitter{kind: r.kind, wholeLists: s.wholeLists}
	split.walk(at, merge.Key{}, content, 0, r.kind.rules)
	r.errs = append(r.errs, split.errs...)
	split.rules = slices.DeleteFunc(split.rules, func(rule merge.Rule) bool {
		unset := rule.Value == false && slices.ContainsFunc(r.kind.falseIsUnset, func(p fieldPath) bool { return p.matches(rule.Key) })
		if unset {
			r.policy.False = append(r.policy.False, rule)
		}
		return unset
	})
	if !s.wholeLists {
		r.kind.setGroups(&r.policy.Policy, split.rules)
	}
	b.When = r.kind.withLists(b.When)
	slices.SortFunc(split.rules, func(a, b merge.Rule) int { return a.Key.Compare(b.Key) })
	b.Rules = slices.Clip(split.rules)
	r.bindings(at, b.Rules)
	if len(b.Rules) > 0 {
		place := ""
		if at != nil {
			place = at.String()
		}
		r.policy.Blocks, r.policy.fields.blocks = append(r.policy.Blocks, b), append(r.policy.fields.blocks, place)
	}
}

// bindings validates the rules that bind to rules of routes, and sets their defaults
// as the API server does.
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
		value, errs := r.limits.Validate(place, name, rule.Value)
		r.errs = append(r.errs, errs...)
		if len(errs) == 0 {
			rule.Value = value
		}
	}
}

// when removes the condition from the content of a block and compiles it. A list in
// its place is content: conditions on requests.
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

// withLists returns a condition that is evaluated on specs with their keyed lists
// restored.
func (k *Kind) withLists(c merge.Condition) merge.Condition {
	if c == nil || len(k.lists)+len(k.groups) == 0 {
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
	return c.Condition.Evaluate(c.kind.Shape(merge.UnpackMaps(spec))) // values of a list are never packed
}

// strategyNames returns all names of the strategies of the kind: those that its profile
// spells, or else their own.
func (k *Kind) strategyNames() []string {
	if len(k.spellings) > 0 {
		return sortedKeys(k.spellings)
	}
	var out []string
	for _, s := range k.strategies {
		out = append(out, s.String())
	}
	return out
}
