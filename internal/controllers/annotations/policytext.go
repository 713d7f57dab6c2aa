package annotations

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// policyAnnotation is the annotation of a policy.
type policyAnnotation struct {
	State api.State      `json:"state"`
	Paths api.PathCounts `json:"paths"`
	Lost  []lostRule     `json:"lost,omitempty"`
	// Hash of the content that was omitted because of its size.
	Hash string `json:"hash,omitempty"`
}

type lostRule struct {
	Rule  string `json:"rule"`
	To    string `json:"to"`
	Paths int    `json:"paths"`
}

// itself stands for another block of the same policy, whose name may still have to be
// generated.
const itself = "itself"

func policyText(through walk, v *snapshot.View, p *policykind.Policy) (string, error) {
	reaches := effective.NewReaches(v)
	var sum explain.Outcomes
	err := through(func(e *effective.Effective) error {
		if e.Kind == p.Kind {
			reaches.Mark(e)
			sum.Add(e)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	out := sum.Of(v, p)
	annotation := policyAnnotation{State: out.State, Paths: out.Paths}
	for _, l := range out.Lost {
		to := l.To.String()
		if l.To == p.Ref() {
			to = itself
		}
		// Whether values are equal must not be visible to all readers of the policy.
		if n := len(annotation.Lost) - 1; n >= 0 && annotation.Lost[n].Rule == l.Rule && annotation.Lost[n].To == to {
			annotation.Lost[n].Paths += l.Paths
			continue
		}
		annotation.Lost = append(annotation.Lost, lostRule{Rule: l.Rule, To: to, Paths: l.Paths})
	}
	return marshalLimited(annotation, func(hash string) any {
		return policyAnnotation{State: annotation.State, Paths: annotation.Paths, Hash: hash}
	})
}
