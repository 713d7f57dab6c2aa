package policykind

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// levels in their order.
var levels = []api.LevelName{
	api.LevelMesh, api.LevelGatewayClass, api.LevelGatewayNamespace, api.LevelGateway, api.LevelListenerSet, api.LevelListener,
	api.LevelServiceNamespace, api.LevelService, api.LevelRouteNamespace, api.LevelRoute, api.LevelRule, api.LevelBackend,
}

// defaultLevels are those of a profile that names none.
var defaultLevels = []api.LevelName{
	api.LevelGatewayClass, api.LevelGateway, api.LevelListenerSet, api.LevelListener, api.LevelRoute, api.LevelRule,
}

// Compile checks a profile and makes a kind of it. The error tells all that is
// wrong with it, and what to mend.
func Compile(p api.PolicyProfileSpec, source Source) (*Kind, error) {
	k := &Kind{PolicyProfileSpec: p, Source: source}
	c := compiler{kind: k}
	c.identity()
	c.levels()
	c.class()
	c.targets()
	c.strategies()
	c.content()
	c.rules()
	c.binding()
	c.order()
	c.fields()
	c.actions()
	if err := errors.Join(c.errs...); err != nil {
		return nil, k.errorf("%w", err)
	}
	return k, nil
}

type compiler struct {
	kind *Kind
	errs []error
}

func (c *compiler) errorf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// address reads the address in a field of the profile.
func (c *compiler) fieldPath(field, text string) fieldPath {
	a, err := parseFieldPath(text)
	if err != nil {
		c.errorf("%s: %w", field, err)
	}
	return a
}

// place reads the address of one place.
func (c *compiler) singlePath(field, text string) fieldPath {
	a := c.fieldPath(field, text)
	if slices.Contains(a, "*") {
		c.errorf("%s: address %q stands for many places: name one, without *", field, text)
	}
	return a
}

func (c *compiler) singlePaths(field string, texts []string) []fieldPath {
	out := make([]fieldPath, 0, len(texts))
	for i, text := range texts {
		out = append(out, c.singlePath(fmt.Sprintf("%s[%d]", field, i), text))
	}
	return out
}

// name checks the name of a field of a block, empty where there is none.
func (c *compiler) fieldName(field, text string) {
	if a, err := parseFieldPath(text); text != "" && (err != nil || len(a) != 1 || a[0] != text || text == "*") {
		c.errorf("%s: %q is no name of a field: what is deeper is named in content", field, text)
	}
}

func (c *compiler) fieldPaths(field string, texts []string) []fieldPath {
	out := make([]fieldPath, 0, len(texts))
	for i, text := range texts {
		out = append(out, c.fieldPath(fmt.Sprintf("%s[%d]", field, i), text))
	}
	return out
}

// oneOf books a value that is none of those allowed; empty is one where it has
// a default.
func oneOf[T ~string](c *compiler, field string, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		var texts []string
		for _, a := range allowed {
			if a != "" {
				texts = append(texts, string(a))
			}
		}
		c.errorf("%s %q is none of %s", field, value, strings.Join(texts, ", "))
	}
}

func (c *compiler) identity() {
	k := c.kind
	switch {
	case k.Kind == "":
		c.errorf("kind is missing")
	case !isCustom(k.Group):
		c.errorf("group %q is one of Kubernetes' own: a profile is for the kinds of a CustomResourceDefinition", k.Group)
	case k.Group == api.GatewayGroup && !strings.HasSuffix(k.Kind, "Policy"):
		c.errorf("kind %s of %s is one that policies are attached to: a profile is for policy kinds", k.Kind, k.Group)
	}
}

// isCustom reports whether a group can hold policy kinds: Kubernetes' own have
// no dot or end in .k8s.io.
func isCustom(group string) bool {
	return strings.Contains(group, ".") &&
		(!strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".networking.k8s.io"))
}

func (c *compiler) levels() {
	k := c.kind
	if len(k.Levels) == 0 {
		k.Levels = defaultLevels
	}
	last := -1
	for i, l := range k.Levels {
		at := slices.Index(levels, l)
		switch {
		case at < 0:
			oneOf(c, "levels:", l, levels...)
		case slices.Contains(k.Levels[:i], l):
			c.errorf("levels: %s stands twice: name each once", l)
		case at < last:
			c.errorf("levels: %s stands below %s: name them from the root to the leaf", l, k.Levels[i-1])
		}
		last = max(last, at)
	}
}

func (c *compiler) class() {
	k := c.kind
	oneOf(c, "class", k.Class, api.Inherited, api.Direct)
	if k.SameTarget == "" {
		k.SameTarget = api.Hierarchical
		if k.Class == api.Direct {
			k.SameTarget = api.None
		}
	}
	oneOf(c, "sameTarget", k.SameTarget, api.Hierarchical, api.OldestWins, api.None, api.FieldConflict, api.Collect)
	if k.Class == api.Direct && len(k.Blocks.Defaults)+len(k.Blocks.Overrides) > 0 {
		c.errorf("blocks: a direct kind has no defaults and overrides: set class to inherited, or leave them out")
	}
}

func (c *compiler) targets() {
	t := &c.kind.Targets
	if len(t.Fields)+len(t.Selectors) == 0 && t.Implicit == nil {
		c.errorf("targets: name the fields of spec that hold the target, in fields or selectors")
	}
	if t.Namespaces == "" {
		t.Namespaces = api.LeaveOwn
	}
	oneOf(c, "targets.namespaces", t.Namespaces, api.LeaveOwn, api.LeaveGrant, api.LeaveConsumer, api.LeaveFree)
	for i, k := range t.Kinds {
		if k.Kind == "" {
			c.errorf("targets.kinds[%d]: kind is missing", i)
		}
		oneOf(c, fmt.Sprintf("targets.kinds[%d].section", i), k.Section, "",
			api.SectionNone, api.SectionListener, api.SectionRule, api.SectionPortName, api.SectionPortNumber)
	}
}

func (c *compiler) strategies() {
	k := c.kind
	for _, name := range k.Strategy.Allowed {
		s, _ := c.strategy("strategy.allowed", name)
		k.strategies = append(k.strategies, s)
	}
	if len(k.strategies) == 0 {
		k.strategies = []merge.Strategy{merge.Atomic}
	}
	k.rulesAreLeaves = slices.Contains(k.strategies, merge.Patch)
	k.spellings = make(map[string]merge.Strategy)
	for _, word := range sortedKeys(k.Strategy.Spellings) {
		s, ok := c.strategy("strategy.spellings."+word, k.Strategy.Spellings[word])
		if ok && !slices.Contains(k.strategies, s) {
			c.errorf("strategy.spellings.%s: %s is not among strategy.allowed", word, s)
		}
		k.spellings[word] = s
	}
	oneOf(c, "strategy.by", k.Strategy.By, "", api.ByHigher, api.ByLower)
	c.annotation()
}

func (c *compiler) annotation() {
	k := c.kind
	a := k.Strategy.Annotation
	if a == nil {
		return
	}
	if a.Name == "" {
		c.errorf("strategy.annotation: name is missing")
	}
	k.readings = make(map[string]*merge.Reading)
	for _, value := range sortedKeys(a.Values) {
		r := a.Values[value]
		reading := &merge.Reading{Block: merge.Bare}
		reading.Strategy, _ = c.strategy("strategy.annotation.values."+value, r.Strategy)
		if r.Overrides {
			reading.Block = merge.Overrides
		}
		k.readings[value] = reading
		k.rulesAreLeaves = k.rulesAreLeaves || reading.Strategy == merge.Patch
	}
}

func (c *compiler) strategy(field string, name api.StrategyName) (s merge.Strategy, ok bool) {
	s, ok = merge.ParseStrategy(string(name))
	if !ok {
		c.errorf("%s: strategy %q is none of atomic, merge, patch", field, name)
	}
	return s, ok
}

// content finds out what of spec is no content.
func (c *compiler) content() {
	k := c.kind
	if k.Content != "" {
		k.content = c.singlePath("content", k.Content)
	}
	k.nonContent = slices.Concat(
		c.singlePaths("targets.fields", k.Targets.Fields),
		c.singlePaths("targets.selectors", k.Targets.Selectors),
		c.singlePaths("targets.workloads", k.Targets.Workloads),
		c.singlePaths("unset", k.Unset),
	)
	if k.Blocks.Bare != nil {
		k.nonContent = append(k.nonContent, c.singlePath("blocks.bare.field", k.Blocks.Bare.Field))
	}
	k.ignored = c.singlePaths("ignore", k.Ignore)
	c.blocks()
}

func (c *compiler) blocks() {
	k := c.kind
	names := slices.Concat(k.Blocks.Defaults, k.Blocks.Overrides)
	others := slices.Concat(k.Targets.Fields, k.Targets.Selectors, k.Targets.Workloads, k.Unset)
	for i, name := range names {
		c.fieldName("blocks", name)
		if slices.Contains(others, name) || slices.Contains(names[:i], name) {
			c.errorf("blocks: %q is named as a block and as something else: name each field once", name)
		}
	}
	c.fieldName("blocks.when", k.Blocks.When)
	c.fieldName("strategy.field", k.Strategy.Field)
	c.fieldName("strategy.bareField", k.Strategy.BareField)
}

func (c *compiler) rules() {
	k := c.kind
	k.rules, k.wholeMaps = c.fieldPaths("rules", k.Rules), c.fieldPaths("whole", k.Whole)
	k.gates, k.alternatives = subtrees(c.fieldPaths("gates", k.Gates)), subtrees(c.fieldPaths("alternatives", k.Alternatives))
	for i, l := range k.Lists {
		field := fmt.Sprintf("lists[%d]", i)
		if l.Key == "" {
			c.errorf("%s: key is missing", field)
		}
		k.lists = append(k.lists, keyedList{c.fieldPath(field+".path", l.Path), l.Key})
	}
	slices.SortStableFunc(k.lists, func(a, b keyedList) int { return len(b.path) - len(a.path) }) // Shape goes from the inside out
	if len(k.Lists)+len(k.Whole) > 0 && !k.rulesAreLeaves {
		c.errorf("lists and whole are for kinds whose strategy.allowed has patch")
	}
	if k.rulesAreLeaves && len(k.Rules) > 0 {
		c.errorf("rules are the leaves in a kind that allows patch: leave rules out, or patch")
	}
}

func (c *compiler) binding() {
	b := c.kind.Binding
	if b == nil {
		return
	}
	c.kind.binding = c.fieldPath("binding.rules", b.Rules)
	if !slices.Contains(c.kind.Rules, b.Rules) {
		c.errorf("binding.rules: %q is none of rules: name one of them, as it stands there", b.Rules)
	}
	if b.Version == "" {
		c.errorf("binding.version is missing: name the version of %s in which rules have triggers", c.kind.Kind)
	}
	if !c.kind.Has(api.LevelRule) {
		c.errorf("binding: add Rule to levels: it is rules of routes that they bind to")
	}
}

func (c *compiler) order() {
	o := c.kind.Order
	if o == nil {
		return
	}
	c.orderKey("order", &o.OrderKey)
	if o.Then != nil {
		c.orderKey("order.then", o.Then)
	}
	if o.AcrossLevels && c.kind.SameTarget != api.Collect {
		c.errorf("order.acrossLevels is for kinds whose sameTarget is collect")
	}
}

func (c *compiler) orderKey(at string, o *api.OrderKey) {
	if (o.Field == "") == (o.Annotation == "") {
		c.errorf("%s: set one of field and annotation", at)
	}
	if o.Field != "" {
		c.singlePath(at+".field", o.Field)
	}
	if _, err := parseOrderValue(o, o.Default); o.Default != "" && err != nil {
		c.errorf("%s.default: %w", at, err)
	}
}

func (c *compiler) fields() {
	k := c.kind
	lists := make(map[string]bool)
	for i, f := range k.Fields {
		at := fmt.Sprintf("fields[%d]", i)
		key, err := merge.ParseKey(f.Rule)
		if err != nil {
			c.errorf("%s.rule: %w", at, err)
			continue
		}
		route, err := parseRouteField(f.Route)
		if err != nil {
			c.errorf("%s.route: %w", at, err)
			continue
		}
		kinds := f.Kinds
		if len(kinds) == 0 {
			kinds = []string{"HTTPRoute"}
		}
		k.fields = append(k.fields, Field{Rule: key, Kinds: kinds, Route: route})
		lists[listOf(route)] = true
	}
	if len(lists) > 1 {
		c.errorf("fields: all have to be in the items of one list of a rule, or in none")
	}
	if len(k.fields) > 0 && !k.Has(api.LevelRule) {
		c.errorf("fields: add Rule to levels: the routes' own values are there")
	}
}

// listOf returns the address of the list of a rule whose items the field is
// in.
func listOf(route []Segment) string {
	var out []string
	for i, s := range route {
		out = append(out, s.Name)
		if s.List && (i != 1 || s.Name != "rules") {
			return strings.Join(out, ".")
		}
	}
	return ""
}

func (c *compiler) actions() {
	if b := c.kind.BlastRadius; b != nil && *b < 0 {
		c.errorf("blastRadius: %d is negative: write a number of paths, 0 for no limit", *b)
	}
	for _, code := range slices.Sorted(maps.Keys(c.kind.Actions)) {
		oneOf(c, "actions: reason", code, api.ChangeableReasons...)
		oneOf(c, "actions."+string(code), c.kind.Actions[code], api.Deny, api.Warn, api.Audit)
	}
}
