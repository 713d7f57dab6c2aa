package limits

import (
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Finding is one thing to deny or to warn of, about the policies of a kind.
type Finding struct {
	Kind   *policykind.Kind
	Code   api.ReasonCode
	Action api.Action
	// Rule is the key of the limit.
	Rule string
	// Policy is the other policy, nil for none.
	Policy *api.Ref
	// What happened, and what to do about it; Short is What in fewer words.
	What, Short, Advice string
}

// group is findings of which only the first are reported one by one.
type group struct {
	kind   *policykind.Kind
	code   api.ReasonCode
	action api.Action
	more   string // what there are more of
}

// report reports a finding, unless many of its group were reported: then it is only
// counted, and not built. A write can bring thousands, and each looks up what is nearest
// to it.
func (t *Tracker) report(g group, build func() Finding) {
	if t.reported == nil {
		t.reported = make(map[group]int)
	}
	t.reported[g]++
	if t.reported[g] <= maxFindings {
		t.add(g, build())
	}
}

func (t *Tracker) add(g group, f Finding) {
	f.Kind, f.Code, f.Action = g.kind, g.code, g.action
	t.findings = append(t.findings, f)
}

// reportOmitted reports how many findings were only counted.
func (t *Tracker) reportOmitted() {
	for g, n := range t.reported {
		if n > maxFindings {
			t.add(g, Finding{What: fmt.Sprintf("%s: %d", g.more, n-maxFindings)})
		}
	}
}

// Exceptions are what makes a displaced override no finding, or only a warning.
type Exceptions struct {
	// Lost reports whether an override is reported as lost since it is not bound any
	// more.
	Lost func(policy api.Ref, rule string) bool
	// Permitted reports whether the writer is allowed to override a policy; nil where
	// permissions do not matter.
	Permitted func(policy api.Ref) (bool, error)
}

// Findings returns the findings of all paths that were added, in no order. The error is
// that of Permitted.
func (t *Tracker) Findings(x Exceptions) ([]Finding, error) {
	t.finishRoute()
	for _, k := range slices.SortedFunc(maps.Keys(t.totals), compareKeys) {
		if t.writes(k) {
			t.reportOwn(t.totals[k])
		} else {
			t.reportOther(t.totals[k])
		}
	}
	t.reportShadowed()
	t.reportWidened()
	if err := t.reportDisplaced(x); err != nil {
		return nil, err
	}
	t.reportOmitted()
	return t.findings, nil
}

// AddUnbound adds as findings the limits of policies on the route of a path, or on its
// rules, that bind to nothing of it. A limit of a gateway's policy may be meant for
// some of its routes only.
func (t *Tracker) AddUnbound(e *effective.Effective) {
	p := t.BindAfter(e)
	if p == nil {
		return
	}
	for i, r := range p.bound.Rules {
		level, bound := e.Level(r.From.Policy), p.limit(i)
		if level < gateway.LevelRoute || bound.Matches(e.Path.Rule) || level == gateway.LevelRoute && bound.MatchesAny() {
			continue
		}
		policy := p.policy(i)
		t.add(group{kind: e.Kind, code: api.ReasonTriggerUnmatched, action: api.Deny}, Finding{
			Rule: r.Key.String(), Policy: &policy,
			What: fmt.Sprintf("%s of %s binds to no rule of %s", r.Key, policy, routeText(e)),
		})
	}
}
