package policykind_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/messages"
)

func TestWeakenedBy(t *testing.T) {
	acting := func(code api.ReasonCode, a api.Action) func(*api.PolicyProfileSpec) {
		return func(p *api.PolicyProfileSpec) { p.Actions = map[api.ReasonCode]api.Action{code: a} }
	}
	gated := func(gates ...string) func(*api.PolicyProfileSpec) {
		return func(p *api.PolicyProfileSpec) { p.Gates = gates }
	}
	readBy := func(controllers ...string) func(*api.PolicyProfileSpec) {
		return func(p *api.PolicyProfileSpec) { p.Controllers = controllers }
	}
	among := func(alternatives ...string) func(*api.PolicyProfileSpec) {
		return func(p *api.PolicyProfileSpec) { p.Alternatives = alternatives }
	}
	for name, c := range map[string]struct {
		was, now func(*api.PolicyProfileSpec)
		want     []string
	}{
		"the same":                     {},
		"a removal is a warning":       {nil, acting(api.ReasonOverrideRemoved, api.Warn), []string{"OverrideRemoved would be Warn"}},
		"an evasion is recorded alone": {nil, acting(api.ReasonOverrideEvaded, api.Audit), []string{"OverrideEvaded would be Audit"}},
		"a weakening is a warning":     {nil, acting(api.ReasonOverrideWeakened, api.Warn), []string{"OverrideWeakened would be Warn"}},
		"what cannot be read passes":   {nil, acting(api.ReasonInvalid, api.Warn), []string{"Invalid would be Warn"}},
		"what no gateway can use passes": {
			nil, acting(api.ReasonEffectiveInvalid, api.Warn), []string{"EffectiveInvalid would be Warn"},
		},
		"from a warning to a record":     {acting(api.ReasonOverrideEvaded, api.Warn), acting(api.ReasonOverrideEvaded, api.Audit), []string{"OverrideEvaded would be Audit"}},
		"from a warning to a denial":     {acting(api.ReasonOverrideEvaded, api.Warn), acting(api.ReasonOverrideEvaded, api.Deny), nil},
		"from a warning to the default":  {acting(api.ReasonOverrideEvaded, api.Warn), nil, nil},
		"a denial is spelt out":          {nil, acting(api.ReasonOverrideRemoved, api.Deny), nil},
		"a conflict takes no override":   {nil, acting(api.ReasonConflicted, api.Warn), nil},
		"nor does a value that is lost":  {nil, acting(api.ReasonConstraintViolated, api.Warn), nil},
		"a gate less":                    {gated("when", "enabled"), gated("when"), []string{"gate enabled"}},
		"a controller less":              {readBy("a.org/a", "a.org/b"), readBy("a.org/b"), []string{"controller a.org/a"}},
		"a controller more":              {readBy("a.org/a"), readBy("a.org/b", "a.org/a"), nil},
		"all controllers":                {readBy("a.org/a"), nil, nil},
		"only some controllers":          {nil, readBy("a.org/a"), []string{"only be read by gateways of a.org/a"}},
		"gates in another order":         {gated("when", "enabled"), gated("enabled", "when"), nil},
		"a gate more":                    {gated("when"), gated("enabled", "when"), nil},
		"alternatives less":              {among("rules"), among(), []string{"rules"}},
		"alternatives more":              {among("rules"), among("rules", "other"), nil},
		"a group of alternatives before": {among("rules.ways"), among("rules", "rules.ways"), []string{"rules.ways"}},
		"how far a write may reach":      {nil, func(p *api.PolicyProfileSpec) { p.BlastRadius = new(int32(0)) }, nil},
		"an empty list in place of none": {nil, func(p *api.PolicyProfileSpec) { p.Ignore = []string{} }, nil},
		"another field, and an action": {nil, func(p *api.PolicyProfileSpec) {
			p.Ignore = []string{"a"}
			acting(api.ReasonOverrideRemoved, api.Warn)(p)
		}, []string{"OverrideRemoved would be Warn", "(ignore)"}},
		"a target that may stand higher":  {nil, func(p *api.PolicyProfileSpec) { p.Targets.ClassFrom = []string{"*"} }, []string{"(targets)"}},
		"another order on one level":      {nil, func(p *api.PolicyProfileSpec) { p.Order = &api.ProfileOrder{OrderKey: api.OrderKey{Field: "priority"}} }, []string{"(order)"}},
		"paths that end above the others": {nil, func(p *api.PolicyProfileSpec) { p.Levels = []api.LevelName{api.LevelGateway} }, []string{"(levels)"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := compiled(t, c.was).WeakenedBy(compiled(t, c.now))
			messages.Golden(t, got...)
			require.Len(t, got, len(c.want), "%v", got)
			for i, part := range c.want {
				assert.Contains(t, got[i], part)
			}
		})
	}
}

// Overrides of routes are less protected, too, if they bind fewer writes than before.
func TestRouteOverridesWeakenedBy(t *testing.T) {
	binding := func(where api.BoundNamespaces) func(*api.PolicyProfileSpec) {
		return func(p *api.PolicyProfileSpec) { p.RouteOverridesBind = where }
	}
	const unbound = "it would not bind writes of routes in other namespaces"
	for name, c := range map[string]struct {
		was, now func(*api.PolicyProfileSpec)
		want     []string // of routes
		others   []string
	}{
		"from all namespaces to one":          {binding("AllNamespaces"), binding("SameNamespace"), []string{unbound}, nil},
		"from all namespaces to the default":  {binding("AllNamespaces"), nil, []string{unbound}, nil},
		"all namespaces, as before":           {binding("AllNamespaces"), binding("AllNamespaces"), nil, nil},
		"from one namespace to all":           {binding("SameNamespace"), binding("AllNamespaces"), nil, nil},
		"from the default to all":             {nil, binding("AllNamespaces"), nil, nil},
		"the default is spelt out":            {nil, binding("SameNamespace"), nil, nil},
		"the default in place of what it is":  {binding("SameNamespace"), nil, nil, nil},
		"to one namespace, and another field": {binding("AllNamespaces"), func(p *api.PolicyProfileSpec) { p.Ignore = []string{"a"} }, []string{"(ignore)", unbound}, []string{"(ignore)"}},
	} {
		t.Run(name, func(t *testing.T) {
			was, now := compiled(t, c.was), compiled(t, c.now)
			for of, got := range map[string]struct{ got, want []string }{
				"routes": {was.RouteOverridesWeakenedBy(now), c.want}, "others": {was.WeakenedBy(now), c.others},
			} {
				require.Len(t, got.got, len(got.want), "%s: %v", of, got.got)
				for i, part := range got.want {
					assert.Contains(t, got.got[i], part)
				}
			}
		})
	}
}

// Each new field of a profile counts, unless it is listed as one that does not affect
// the protection of overrides.
func TestWeakenedByComparesEachField(t *testing.T) {
	harmless := map[string]bool{"Group": true, "Kind": true, "BlastRadius": true, "Gates": true, "Actions": true, "RouteOverridesBind": true, "Protection": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[api.PolicyProfileSpec]()) {
		t.Run(f.Name, func(t *testing.T) {
			was, now := &policykind.Kind{}, &policykind.Kind{}
			fill(t, reflect.ValueOf(&now.PolicyProfileSpec).Elem().FieldByIndex(f.Index))
			if f.Name == "Alternatives" { // one more is stricter
				was, now = now, was
			}
			assert.Equal(t, harmless[f.Name], was.WeakenedBy(now) == nil)
		})
	}
}

// fill sets a field to a non-zero value.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("x").Convert(v.Type().Key()), reflect.ValueOf("x").Convert(v.Type().Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Struct:
		fill(t, v.Field(0))
	default:
		require.Fail(t, "a field of another sort", v.Kind().String())
	}
}
