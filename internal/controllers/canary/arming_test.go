package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// overloadedResult is a run for which Overrule was overloaded.
func overloadedResult() Result {
	return newResult(api.Deny, []Attempt{{Outcome: Untried, overloaded: true}, {Outcome: Passed}})
}

func resultOf(o Outcome) Result { return newResult(api.Deny, []Attempt{{Outcome: o}}) }

func TestArming(t *testing.T) {
	p, f, u, b := resultOf(Passed), resultOf(Failed), resultOf(Untried), overloadedResult()
	for name, c := range map[string]struct {
		adopted bool
		runs    []Result
		want    bool
	}{
		"nothing yet":                           {runs: nil, want: false},
		"two that pass are not enough":          {runs: []Result{p, p}, want: false},
		"three in a row are":                    {runs: []Result{p, p, p}, want: true},
		"three that are not in a row are not":   {runs: []Result{p, p, f, p}, want: false},
		"one that could not be tried begins it": {runs: []Result{p, p, u, p, p}, want: false},
		"three again":                           {runs: []Result{p, p, u, p, p, p}, want: true},
		"one failure may be a lost packet":      {runs: []Result{p, p, p, f}, want: true},
		"two in a row are none":                 {runs: []Result{p, p, p, f, f}, want: false},
		"nor are two that could not be tried":   {runs: []Result{p, p, p, u, u}, want: false},
		"nor one of each":                       {runs: []Result{p, p, p, u, f}, want: false},
		"failures apart do not disarm":          {runs: []Result{p, p, p, f, p, f}, want: true},
		"a flaky one does not arm":              {runs: []Result{p, f, f, p, p, f, p, p, f}, want: false},
		"after a fault it takes three again":    {runs: []Result{p, p, p, f, f, p, p}, want: false},
		"and then it is armed":                  {runs: []Result{p, p, p, f, f, p, p, p}, want: true},
		"overload does not disarm":              {runs: []Result{p, p, p, b, b, b}, want: true},
		"overload hides no failures":            {runs: []Result{p, p, p, f, b, f}, want: false},
		"overload does not arm":                 {runs: []Result{p, p, b, b}, want: false},
		"overload forgets no pass":              {runs: []Result{p, p, b, p}, want: true},
		"what was armed before stays so":        {adopted: true, runs: []Result{f}, want: true},
		"until it is shown that it does not":    {adopted: true, runs: []Result{f, f}, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewArming()
			a.Adopt(c.adopted)
			for _, r := range c.runs {
				a.Observe(r)
			}
			assert.Equal(t, c.want, a.Armed())
		})
	}
}

func TestAdoptAfterRunIsIgnored(t *testing.T) {
	a := NewArming()
	a.Observe(resultOf(Failed))
	a.Observe(resultOf(Failed))
	a.Adopt(true)
	assert.False(t, a.Armed())
}

func TestNextTermAdoptsAgain(t *testing.T) {
	a := NewArming()
	rep := &Reporter{Record: NewRecord(true), Pod: &Pod{}, Arm: a}
	a.Adopt(false)
	for range armingPasses {
		a.Observe(resultOf(Passed))
	}
	rep.Stopped(t.Context())
	assert.False(t, a.Armed(), "another leader decides now")
	a.Adopt(true)
	assert.True(t, a.Armed())
	a.Observe(resultOf(Failed))
	assert.True(t, a.Armed(), "the results of the first term do not count")
	rep.Stopped(t.Context())
	a.Adopt(false)
	a.Observe(resultOf(Passed))
	a.Observe(resultOf(Passed))
	assert.False(t, a.Armed())
}

func TestChangedIsSignaledOnce(t *testing.T) {
	a := NewArming()
	for range armingPasses + 2 {
		a.Observe(resultOf(Passed))
	}
	assert.Len(t, a.Changed(), 1)
	<-a.Changed()
	a.Observe(resultOf(Passed))
	assert.Empty(t, a.Changed(), "it is armed as before")
	a.Observe(resultOf(Failed))
	assert.Empty(t, a.Changed())
	a.Observe(resultOf(Failed))
	assert.Len(t, a.Changed(), 1)
}

func TestResultBusy(t *testing.T) {
	assert.True(t, overloadedResult().Busy())
	assert.False(t, resultOf(Passed).Busy())
	assert.False(t, resultOf(Untried).Busy())
	assert.False(t, newResult(api.Deny, []Attempt{{Outcome: Untried, overloaded: true}, {Outcome: Failed}}).Busy())
	assert.False(t, newResult(api.Deny, []Attempt{{Outcome: Untried, overloaded: true}, {Outcome: Untried}}).Busy())
}
