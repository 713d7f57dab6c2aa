package policykind

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// levels are all levels, from the root to the leaf.
var levels = []api.LevelName{
	api.LevelMesh, api.LevelGatewayClass, api.LevelGatewayNamespace, api.LevelGateway, api.LevelListenerSet, api.LevelListener,
	api.LevelServiceNamespace, api.LevelService, api.LevelRouteNamespace, api.LevelRoute, api.LevelRule, api.LevelBackend,
}

// defaultLevels are the levels of a profile without spec.levels.
var defaultLevels = []api.LevelName{
	api.LevelGatewayClass, api.LevelGateway, api.LevelListenerSet, api.LevelListener, api.LevelRoute, api.LevelRule,
}

// Compile validates a profile, sets its defaults and returns its kind. The error
// lists every invalid field as a field.Error.
func Compile(p api.PolicyProfileSpec, source Source) (*Kind, error) {
	k := &Kind{PolicyProfileSpec: p, Source: source}
	c := compiler{kind: k, spec: field.NewPath("spec")}
	c.groupKind()
	c.controllers(c.spec.Child("controllers"), p.Controllers)
	c.controllers(c.spec.Child("targets", "equalSections"), p.Targets.EqualSections)
	c.controllers(c.spec.Child("targets", "wholeBackends"), p.Targets.WholeBackends)
	c.controllers(c.spec.Child("targets", "alone"), p.Targets.Alone)
	c.controllers(c.spec.Child("targets", "allBackends"), p.Targets.AllBackends)
	c.controllers(c.spec.Child("targets", "numberedSections"), p.Targets.NumberedSections)
	c.levels()
	c.class()
	c.targets()
	c.waypoints()
	c.strategies()
	c.content()
	c.ignoreOn()
	c.rules()
	c.groups()
	c.protection()
	c.binding()
	c.order()
	c.fields()
	c.routeOverrides()
	c.actions()
	if err := c.errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("invalid profile for %s: %w", k.Ref(), err)
	}
	return k, nil
}

// compiler validates the spec of a profile and sets the compiled fields of its kind.
type compiler struct {
	kind *Kind
	spec *field.Path
	errs field.ErrorList
}

func (c *compiler) required(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Required(at, detail))
}

func (c *compiler) invalid(at *field.Path, value any, detail string) {
	c.errs = append(c.errs, field.Invalid(at, value, detail))
}

func (c *compiler) forbidden(at *field.Path, detail string) {
	c.errs = append(c.errs, field.Forbidden(at, detail))
}

// fieldPath parses the field path in a field of the profile, which is in a part of the
// kind's objects.
func (c *compiler) fieldPath(at *field.Path, text string, in part) fieldPath {
	p, err := parseFieldPath(text)
	if err != nil {
		c.invalid(at, text, err.Error())
	}
	c.kind.addPath(at, p, in)
	return p
}

func (c *compiler) fieldPaths(at *field.Path, texts []string, in part) []fieldPath {
	out := make([]fieldPath, 0, len(texts))
	for i, text := range texts {
		out = append(out, c.fieldPath(at.Index(i), text, in))
	}
	return out
}

// singlePath parses a field path without wildcards.
func (c *compiler) singlePath(at *field.Path, text string, in part) fieldPath {
	p := c.fieldPath(at, text, in)
	if slices.Contains(p, "*") {
		c.invalid(at, text, "must be the path of one field, without *")
	}
	return p
}

func (c *compiler) singlePaths(at *field.Path, texts []string, in part) []fieldPath {
	out := make([]fieldPath, 0, len(texts))
	for i, text := range texts {
		out = append(out, c.singlePath(at.Index(i), text, in))
	}
	return out
}

// fieldName validates an optional field name: a path of one segment.
func (c *compiler) fieldName(at *field.Path, text string, in part) {
	if text == "" {
		return
	}
	p, _ := parseFieldPath(text)
	if len(p) != 1 || p[0] != text || text == "*" {
		c.invalid(at, text, "must be the name of a field, not a path; set spec.content to the path of its parent")
	}
	c.kind.addPath(at, p, in)
}

// oneOf validates an enum. An empty value that is among those supported is the
// default, and is not listed in the error.
func oneOf[T ~string](c *compiler, at *field.Path, value T, supported ...T) {
	if !slices.Contains(supported, value) {
		listed := slices.DeleteFunc(slices.Clone(supported), func(s T) bool { return s == "" })
		c.errs = append(c.errs, field.NotSupported(at, value, listed))
	}
}

func (c *compiler) groupKind() {
	k := c.kind
	switch {
	case k.Kind == "":
		c.required(c.spec.Child("kind"), "set the kind of the policies")
	case !isCustom(k.Group):
		c.invalid(c.spec.Child("group"), k.Group, "must be the group of a CustomResourceDefinition, not a built-in group of Kubernetes")
	case k.Group == api.GatewayGroup && !strings.HasSuffix(k.Kind, "Policy"):
		c.invalid(c.spec.Child("kind"), k.Kind, "must be a policy kind, not a kind that policies attach to")
	}
}

// isCustom reports whether a group can hold policy kinds: Kubernetes' own have
// no dot or end in .k8s.io.
func isCustom(group string) bool {
	return strings.Contains(group, ".") &&
		(!strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".networking.k8s.io"))
}

func (c *compiler) controllers(at *field.Path, patterns []string) {
	for i, name := range patterns {
		if start := strings.TrimSuffix(name, "*"); start == "" || strings.Contains(start, "*") {
			c.invalid(at.Index(i), name, "must be a controllerName, or the start of one followed by *")
		}
	}
}

func (c *compiler) levels() {
	k := c.kind
	if len(k.Levels) == 0 {
		k.Levels = defaultLevels
	}
	last := -1
	for i, l := range k.Levels {
		at, index := c.spec.Child("levels").Index(i), slices.Index(levels, l)
		switch {
		case index < 0:
			oneOf(c, at, l, levels...)
		case slices.Contains(k.Levels[:i], l):
			c.errs = append(c.errs, field.Duplicate(at, l))
		case index < last:
			c.invalid(at, l, fmt.Sprintf("must come before %s; list levels from the root to the leaf", k.Levels[i-1]))
		}
		if l != api.LevelBackend || i+1 == len(k.Levels) || k.Levels[i+1] != api.LevelRoute { // the one level with a choice
			last = max(last, index)
		}
	}
}

func (c *compiler) class() {
	k := c.kind
	oneOf(c, c.spec.Child("class"), k.Class, api.Inherited, api.Direct)
	if k.SameTarget == "" {
		k.SameTarget = api.Hierarchical
		if k.Class == api.Direct {
			k.SameTarget = api.None
		}
	}
	oneOf(c, c.spec.Child("sameTarget"), k.SameTarget, api.Hierarchical, api.OldestWins, api.None, api.Alone, api.FieldConflict, api.Collect)
	if k.Class == api.Direct && len(k.Blocks.Defaults)+len(k.Blocks.Overrides) > 0 {
		c.forbidden(c.spec.Child("blocks"), "a direct kind has no defaults and overrides; set spec.class to inherited, or remove them")
	}
}

func (c *compiler) targets() {
	t, at := &c.kind.Targets, c.spec.Child("targets")
	if len(t.Fields)+len(t.Selectors) == 0 && t.Implicit == nil && !c.kind.Attaches() {
		c.required(at, "set fields or selectors to the fields of spec that hold the target, or spec.attachment")
	}
	if c.kind.Attachment.ExtensionRef && !c.kind.Has(api.LevelRule) {
		c.forbidden(c.spec.Child("attachment", "extensionRef"), "requires level Rule; add it to spec.levels")
	}
	if through := c.kind.Attachment.Through; through != nil {
		c.kind.through = merge.KeyOf(c.singlePath(c.spec.Child("attachment", "through", "field"), through.Field, notChecked)...)
	}
	if len(t.Alone) > 0 && !slices.Equal(c.kind.Levels, []api.LevelName{api.LevelBackend}) {
		c.forbidden(at.Child("alone"), "requires that Backend is the only level")
	}
	if t.Namespaces == "" {
		t.Namespaces = api.NamespacesOwn
	}
	for i, trait := range t.Listeners {
		oneOf(c, at.Child("listeners").Index(i), trait, api.ListenerOwn, api.ListenerHostname, api.ListenerTLS, api.ListenerOwnTLS, api.ListenerFirst)
	}
	for i, part := range t.NotShared {
		oneOf(c, at.Child("notShared").Index(i), part, api.SharedPort, api.SharedPath)
	}
	oneOf(c, at.Child("namespaces"), t.Namespaces, api.NamespacesOwn, api.NamespacesIgnored, api.NamespacesReferenceGrant, api.NamespacesConsumer, api.NamespacesFree)
	for i, k := range t.Kinds {
		at := at.Child("kinds").Index(i)
		if k.Kind == "" {
			c.required(at.Child("kind"), "set the kind of the target")
		}
		oneOf(c, at.Child("section"), k.Section, "",
			api.SectionNone, api.SectionListener, api.SectionRule, api.SectionPortName, api.SectionPortNumber)
	}
}

func (c *compiler) waypoints() {
	k, at := c.kind, c.spec.Child("waypoints")
	w := k.Waypoints
	if w == nil {
		return
	}
	if !k.Has(api.LevelService) && !k.Has(api.LevelServiceNamespace) || slices.ContainsFunc(routeLevels, k.Has) {
		c.forbidden(at, "requires that paths end at Services: set spec.levels with ServiceNamespace or Service, and none below them")
	}
	if w.Label == "" {
		c.required(at.Child("label"), "set the label that names the waypoint")
	}
	if w.Protocol == "" {
		c.required(at.Child("protocol"), "set the protocol of the listeners of waypoints")
	}
}

func (c *compiler) strategies() {
	k, at := c.kind, c.spec.Child("strategy")
	for i, name := range k.Strategy.Allowed {
		s, _ := c.strategy(at.Child("allowed").Index(i), name)
		k.strategies = append(k.strategies, s)
	}
	if len(k.strategies) == 0 {
		k.strategies = []merge.Strategy{merge.Atomic}
	}
	k.rulesAreLeaves = slices.Contains(k.strategies, merge.Patch)
	k.spellings = make(map[string]merge.Strategy)
	for _, spelling := range sortedKeys(k.Strategy.Spellings) {
		at, name := at.Child("spellings").Key(spelling), k.Strategy.Spellings[spelling]
		s, ok := c.strategy(at, name)
		if ok && !slices.Contains(k.strategies, s) {
			c.invalid(at, name, "must be one of spec.strategy.allowed")
		}
		k.spellings[spelling] = s
	}
	oneOf(c, at.Child("by"), k.Strategy.By, "", api.StrategyByHigher, api.StrategyByLower)
	if len(k.Strategy.MergeOn) > 0 && k.Strategy.By != api.StrategyByLower {
		c.forbidden(at.Child("mergeOn"), "requires by: lower")
	}
}

func (c *compiler) strategy(at *field.Path, name api.StrategyName) (s merge.Strategy, ok bool) {
	s, ok = merge.ParseStrategy(string(name))
	if !ok {
		oneOf(c, at, string(name), merge.Atomic.String(), merge.Merge.String(), merge.Patch.String())
	}
	return s, ok
}

// content compiles the paths of the content, and of the fields beside and inside
// it that are not content.
func (c *compiler) content() {
	k, targets := c.kind, c.spec.Child("targets")
	k.nonContent = slices.Concat(
		c.singlePaths(targets.Child("fields"), k.Targets.Fields, inSpec),
		c.singlePaths(targets.Child("selectors"), k.Targets.Selectors, inSpec),
		c.singlePaths(targets.Child("workloads"), k.Targets.Workloads, inSpec),
	)
	k.root = fieldPath{"spec"}
	switch k.Content {
	case "":
	case wholeObject:
		k.root = nil
		k.nonContent = append(k.nonContent, fieldPath{"apiVersion"}, fieldPath{"kind"}, fieldPath{"metadata"}, fieldPath{"status"})
	default:
		k.content = c.singlePath(c.spec.Child("content"), k.Content, inSpec)
	}
	c.named()
	k.ignored = c.singlePaths(c.spec.Child("ignore"), k.Ignore, inContent)
	c.blocks()
	k.nonContent = append(k.nonContent, c.singlePaths(c.spec.Child("unset"), k.Unset, inSpec)...)
	if d, at := k.Directions, c.spec.Child("directions"); d != nil {
		k.directedLists, k.direction = c.fieldPaths(at.Child("lists"), d.Lists, notChecked), c.singlePath(at.Child("field"), d.Field, notChecked)
		if k.SameTarget == api.Collect || k.RouteContents != nil || len(k.Blocks.Defaults)+len(k.Blocks.Overrides) > 0 {
			c.forbidden(at, "requires a kind without blocks and routeContents that does not collect")
		}
	}
	if p, at := k.RouteContents, c.spec.Child("routeContents"); p != nil {
		k.nonContent = append(k.nonContent, c.singlePath(at.Child("field"), p.Field, notChecked))
		c.singlePath(at.Child("route"), p.Route, notChecked)
		c.singlePath(at.Child("content"), p.Content, notChecked)
		if k.SameTarget == api.Collect || k.Blocks.Bare != nil || len(k.Blocks.Defaults)+len(k.Blocks.Overrides) > 0 {
			c.forbidden(at, "requires a kind without blocks that does not collect")
		}
	}
}

// ignoreOn compiles which rules have no effect on some paths.
func (c *compiler) ignoreOn() {
	k, at := c.kind, c.spec.Child("ignoreOn")
	if k.Ports != "" {
		k.portItems = c.singlePath(c.spec.Child("ports"), k.Ports, notChecked)
		if !slices.ContainsFunc(k.Lists, func(list api.KeyedList) bool { return list.Path == k.Ports }) {
			c.invalid(c.spec.Child("ports"), k.Ports, "must be the path of one of spec.lists")
		}
	}
	k.ignoringRoutes = slices.Clone(k.Strategy.MergeOn)
	two := false // other kinds
	for i, e := range k.IgnoreOn {
		at := at.Index(i)
		k.ignoredOn = append(k.ignoredOn, subtrees(c.fieldPaths(at.Child("rules"), e.Rules, anywhere)))
		oneOf(c, at.Child("where"), e.Where, "", api.IgnoredMerged, api.IgnoredPortItem, api.IgnoredListener, api.IgnoredAboveListener, api.IgnoredNoBackends)
		if kind, group, ok := strings.Cut(e.Beside, "."); ok {
			two = two || k.ignoresBeside() && k.beside.String() != e.Beside
			k.beside = api.PolicyKind{Group: group, Kind: kind}
		}
		set := slices.DeleteFunc([]string{e.Route, string(e.Where), e.Beside}, func(text string) bool { return text == "" })
		switch {
		case len(set) != 1:
			c.invalid(at, e.Route, "set one of route, where and beside")
		case e.Refused && e.Route == "":
			c.forbidden(at.Child("refused"), "requires route")
		case e.Beside != "" && !strings.Contains(e.Beside, "."):
			c.invalid(at.Child("beside"), e.Beside, "must be a kind with its group, as KIND.GROUP")
		case e.Route != "" && !slices.Contains(k.ignoringRoutes, e.Route):
			k.ignoringRoutes = append(k.ignoringRoutes, e.Route)
		}
		k.ignoresMerged = k.ignoresMerged || e.Where == api.IgnoredMerged
		k.ignoresUnserved = k.ignoresUnserved || e.Where == api.IgnoredNoBackends
		k.ignoresListener = k.ignoresListener || e.Where == api.IgnoredListener || e.Where == api.IgnoredAboveListener
	}
	if two {
		c.forbidden(at, "names more than one kind in beside")
	}
	if k.HasPlaces() && (k.SameTarget == api.Collect || k.RouteContents != nil || k.Directions != nil) {
		c.forbidden(at, "requires a kind without routeContents and directions that does not collect")
	}
}

func (c *compiler) named() {
	k, at := c.kind, c.spec.Child("named")
	if k.Named == nil {
		return
	}
	k.name = c.singlePath(at.Child("field"), k.Named.Field, inContent)
	if k.Named.Disabled != "" {
		k.disabled = c.singlePath(at.Child("disabled"), k.Named.Disabled, inContent)
	}
	if k.SameTarget == api.Collect || k.RouteContents != nil || k.Directions != nil || len(k.Blocks.Defaults)+len(k.Blocks.Overrides) > 0 {
		c.forbidden(at, "requires a kind without blocks, routeContents and directions that does not collect")
	}
}

func (c *compiler) blocks() {
	k, at := c.kind, c.spec.Child("blocks")
	used := slices.Concat(k.Targets.Fields, k.Targets.Selectors, k.Targets.Workloads, k.Unset)
	block := func(at *field.Path, name string) {
		c.fieldName(at, name, inContent)
		if slices.Contains(used, name) {
			c.invalid(at, name, "is already a target, an unset list or another block; list each field once")
		}
		used = append(used, name)
	}
	for i, name := range k.Blocks.Defaults {
		block(at.Child("defaults").Index(i), name)
	}
	for i, name := range k.Blocks.Overrides {
		block(at.Child("overrides").Index(i), name)
	}
	c.fieldName(at.Child("when"), k.Blocks.When, anywhere)
	if b, at := k.Blocks.Bare, at.Child("bare"); b != nil {
		k.nonContent = append(k.nonContent, c.singlePath(at.Child("field"), b.Field, inSpec))
		for i, l := range b.Levels {
			oneOf(c, at.Child("levels").Index(i), l, k.Levels...)
		}
	}
	c.fieldName(c.spec.Child("strategy", "field"), k.Strategy.Field, inBlocks)
	c.fieldName(c.spec.Child("strategy", "bareField"), k.Strategy.BareField, inContent)
}

func (c *compiler) rules() {
	k := c.kind
	k.rules, k.wholeMaps = c.fieldPaths(c.spec.Child("rules"), k.Rules, anywhere), c.fieldPaths(c.spec.Child("whole"), k.Whole, anywhere)
	k.falseIsUnset = c.fieldPaths(c.spec.Child("falseIsUnset"), k.FalseIsUnset, notChecked)
	k.gates = subtrees(c.fieldPaths(c.spec.Child("gates"), k.Gates, anywhere))
	k.alternatives = subtrees(c.fieldPaths(c.spec.Child("alternatives"), k.Alternatives, anywhere))
	for i, l := range k.Lists {
		at := c.spec.Child("lists").Index(i)
		list := keyedList{path: c.fieldPath(at.Child("path"), l.Path, anywhere), defaultKey: l.Default}
		if l.Key == "" && l.Default == "" {
			c.required(at.Child("key"), "set the field that identifies an item")
		} else if l.Key != "" {
			list.key = c.singlePath(at.Child("key"), l.Key, notChecked)
		}
		k.addPath(at.Child("key"), slices.Concat(list.path, fieldPath{"*"}, list.key), anywhere)
		k.lists = append(k.lists, list)
	}
	slices.SortStableFunc(k.lists, func(a, b keyedList) int { return len(b.path) - len(a.path) }) // Shape goes from the inside out
	if !k.rulesAreLeaves {
		if len(k.Lists) > 0 {
			c.forbidden(c.spec.Child("lists"), "requires patch in spec.strategy.allowed")
		}
		if len(k.Whole) > 0 {
			c.forbidden(c.spec.Child("whole"), "requires patch in spec.strategy.allowed")
		}
	}
	if k.rulesAreLeaves && len(k.Rules) > 0 {
		c.forbidden(c.spec.Child("rules"), "the rules of a kind with strategy patch are its leaves; remove rules, or the strategy")
	}
}

func (c *compiler) binding() {
	b, at := c.kind.Binding, c.spec.Child("binding")
	if b == nil {
		return
	}
	c.kind.binding = c.fieldPath(at.Child("rules"), b.Rules, notChecked)
	if !slices.Contains(c.kind.Rules, b.Rules) {
		c.invalid(at.Child("rules"), b.Rules, "must be one of spec.rules")
	}
	if b.Version == "" {
		c.required(at.Child("version"), fmt.Sprintf("set the version of %s whose rules have triggers", c.kind.Kind))
	}
	if !c.kind.Has(api.LevelRule) {
		c.forbidden(at, "requires level Rule; add it to spec.levels")
	}
}

func (c *compiler) order() {
	o, at := c.kind.Order, c.spec.Child("order")
	if o == nil {
		return
	}
	c.orderKey(at, &o.OrderKey)
	if o.Then != nil {
		c.orderKey(at.Child("then"), o.Then)
	}
	if o.AcrossLevels && c.kind.SameTarget != api.Collect {
		c.forbidden(at.Child("acrossLevels"), "requires spec.sameTarget to be collect")
	}
	if o.MeshLast && !o.AcrossLevels {
		c.forbidden(at.Child("meshLast"), "requires acrossLevels")
	}
}

func (c *compiler) orderKey(at *field.Path, o *api.OrderKey) {
	switch {
	case o.Field == "" && o.Annotation == "":
		c.required(at, "set one of field and annotation")
	case o.Field != "" && o.Annotation != "":
		c.forbidden(at.Child("annotation"), "may not be set together with field")
	}
	if o.Field != "" {
		c.singlePath(at.Child("field"), o.Field, inSpec)
	}
	if o.Default == "" {
		return
	}
	if _, err := parseOrderValue(at.Child("default"), o, o.Default); err != nil {
		c.errs = append(c.errs, err)
	}
}

func (c *compiler) fields() {
	k, all := c.kind, c.spec.Child("fields")
	lists := make(map[string]bool)
	for i, f := range k.Fields {
		at := all.Index(i)
		key, err := merge.ParseKey(f.Rule)
		if err != nil {
			c.invalid(at.Child("rule"), f.Rule, err.Error())
			continue
		}
		route, err := parseRouteField(f.Route)
		if err != nil {
			c.invalid(at.Child("route"), f.Route, err.Error())
			continue
		}
		var unless []Segment
		if f.Unless != "" {
			if unless, err = parseRouteField(f.Unless); err != nil {
				c.invalid(at.Child("unless"), f.Unless, err.Error())
				continue
			}
		}
		kinds := f.Kinds
		if len(kinds) == 0 {
			kinds = []string{"HTTPRoute"}
		}
		k.addPath(at.Child("rule"), key.Segments(), anywhere)
		k.fields = append(k.fields, Field{Rule: key, Kinds: kinds, Route: route, Unless: unless})
		lists[listOf(route)] = true
	}
	if len(lists) > 1 {
		c.forbidden(all, "all fields must be in the items of the same list of a rule, or in no list")
	}
	if len(k.fields) > 0 && !k.Has(api.LevelRule) {
		c.forbidden(all, "requires level Rule; add it to spec.levels")
	}
}

// listOf returns the path of the list of a rule that holds the field in its items,
// empty if there is none.
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

// routeLevels are the levels at which an override is one of a route.
var routeLevels = []api.LevelName{api.LevelRouteNamespace, api.LevelRoute, api.LevelRule, api.LevelBackend}

func (c *compiler) routeOverrides() {
	k, at := c.kind, c.spec.Child("routeOverridesBind")
	oneOf(c, at, k.RouteOverridesBind, "", api.BoundSameNamespace, api.BoundAllNamespaces)
	if k.BindsAllNamespaces() && !slices.ContainsFunc(routeLevels, k.Has) {
		c.forbidden(at, "AllNamespaces requires level RouteNamespace, Route, Rule or Backend; add one to spec.levels")
	}
}

func (c *compiler) actions() {
	if b := c.kind.BlastRadius; b != nil && *b < 0 {
		c.invalid(c.spec.Child("blastRadius"), *b, "must be greater than or equal to 0, where 0 sets no limit")
	}
	at := c.spec.Child("actions")
	for _, code := range slices.Sorted(maps.Keys(c.kind.Actions)) {
		oneOf(c, at, code, slices.Sorted(maps.Keys(api.DefaultActions))...)
		oneOf(c, at.Key(string(code)), c.kind.Actions[code], api.Deny, api.Warn, api.Audit)
	}
}
