package conformance

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// checkMoves compares gateway.Moves with a request that a rule serves: where another rule
// serves it when that rule or its route is removed, and the first one again when it is
// restored, there must be a move between these rules.
func (s *server) checkMoves(v *snapshot.View, g *gateway.Gateway, q *gateway.Request, served gateway.Served) error {
	var edited []*gateway.Route
	without := []*snapshot.View{v.With(snapshot.Delete(served.Route.Ref()))}
	if r, err := withoutRule(served.Route, served.Rule); err != nil {
		return err
	} else if r != nil {
		edited, without = []*gateway.Route{r}, append(without, v.With(snapshot.Put(r)))
	}
	for i, w := range without {
		now := []*gateway.Route{served.Route}
		then := edited[:min(i, len(edited))]
		for _, reading := range append(slices.Clip(otherReadings), gateway.Reading{}) {
			before, after := gateway.NewRouter(listenersOf(v, g), v, reading), gateway.NewRouter(listenersOf(w, g), w, reading)
			from, to := before.Route(q), after.Route(q)
			if from.Route != served.Route || to.Route == nil {
				continue
			}
			s.countMove()
			if err := checkMove(before, after, gateway.Moves(before, after, now, then, gateway.MoveLimits{}), from, to); err != nil {
				return fmt.Errorf("%s is moved: %w", q, err)
			}
			if err := checkMove(after, before, gateway.Moves(after, before, then, now, gateway.MoveLimits{}), to, from); err != nil {
				return fmt.Errorf("%s is moved back: %w", q, err)
			}
		}
	}
	return nil
}

func (s *server) countMove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved++
}

// checkMove looks for the move from one rule to another, and sends the witnesses of all
// moves.
func checkMove(before, after *gateway.Router, moves iter.Seq[gateway.Move], from, to gateway.Served) error {
	found := false
	for m := range moves {
		found = found || m.From.Same(from) && m.To.Same(to)
		if m.Request != nil && (!before.Route(m.Request).Same(m.From) || !after.Route(m.Request).Same(m.To)) {
			return fmt.Errorf("%s does not move from %s to %s", m.Request, describe(m.From), describe(m.To))
		}
	}
	if !found {
		return fmt.Errorf("no move from %s to %s", describe(from), describe(to))
	}
	return nil
}

// withoutRule returns a route in which no request meets a rule, nil for routes whose rules
// have no conditions.
func withoutRule(r *gateway.Route, rule int) (*gateway.Route, error) {
	spec, ok := r.Spec().(map[string]any)
	if !ok || r.Kind != gateway.KindHTTPRoute && r.Kind != gateway.KindGRPCRoute {
		return nil, nil
	}
	never := map[string]any{"headers": []any{map[string]any{"name": "x-never", "value": "sent"}}}
	spec = maps.Clone(spec)
	rules, _ := spec["rules"].([]any)
	rules = slices.Clone(rules)
	edited, _ := rules[rule].(map[string]any)
	edited = maps.Clone(edited)
	edited["matches"] = []any{never}
	rules[rule] = edited
	spec["rules"] = rules
	return withSpec(r, spec)
}

// withSpec returns a route with another spec.
func withSpec(r *gateway.Route, spec map[string]any) (*gateway.Route, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return gateway.FromRoute(r.Kind, &gateway.RouteObject{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name, CreationTimestamp: metav1.Unix(r.Created, 0)},
		Spec:       data,
	})
}
