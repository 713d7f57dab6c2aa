package effective_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// closestWorld is policies of a kind in which the closest one replaces, at most
// one for each target, from the leaf to the root.
type closestWorld []closestPolicy

type closestPolicy struct {
	target  string
	merges  bool
	content map[string]string
}

func newClosestWorld(seed uint64) closestWorld {
	r := rand.New(rand.NewPCG(seed, 16))
	var out closestWorld
	for i, target := range []string{onRule, onRoute, onListener, onGateway} {
		if r.IntN(4) == 0 {
			continue
		}
		p := closestPolicy{target: target, merges: r.IntN(2) == 0, content: make(map[string]string)}
		for _, key := range []string{"a", "b", "c"} {
			if r.IntN(5) == 0 {
				p.content[key] = fmt.Sprint(key, i)
			}
		}
		out = append(out, p)
	}
	return out
}

// effective implements SEMANTICS section 3 for such a kind: from the leaf up, until a
// policy does not merge, whether or not it has a rule.
func (w closestWorld) effective() map[string]string {
	out := make(map[string]string)
	for _, p := range w {
		for key, value := range p.content {
			if _, has := out[key]; !has {
				out[key] = value
			}
		}
		if !p.merges {
			break
		}
	}
	return out
}

func (w closestWorld) docs() string {
	var out []string
	for i, p := range w {
		spec := p.target
		if p.merges {
			spec += "mergeType: merge\n"
		}
		for _, key := range slices.Sorted(maps.Keys(p.content)) {
			spec += key + ": " + p.content[key] + "\n"
		}
		out = append(out, probeDoc(fmt.Sprint("p", i), 1+i, spec))
	}
	return docs(out...)
}

// The closest policy that does not merge replaces all above it, with or without a
// rule.
func TestClosestPolicyReplacesInRandomWorlds(t *testing.T) {
	profile := freeProbe("strategy: {allowed: [atomic, merge], bareField: mergeType, by: lower}\nsameTarget: none")
	for seed := range uint64(100) {
		w := newClosestWorld(seed)
		if len(w) == 0 {
			continue
		}
		want, err := json.Marshal(w.effective())
		require.NoError(t, err)
		got := specOf(t, world(t, docs(profile, chain, w.docs())))
		if !assert.JSONEq(t, string(want), got, "seed %d", seed) {
			t.Log(w.docs())
			return
		}
	}
}
