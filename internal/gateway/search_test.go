package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/gateway"
)

// fullRoute is a route with as many matches as Gateway API allows.
type fullRoute struct {
	name, hostname string
	rules          [16][8]fullMatch
}

// fullMatch is a match of an exact path, of a prefix, or of a regular expression that
// starts with a prefix.
type fullMatch struct {
	op, path, header string
}

func (m fullMatch) String() string {
	text := map[string]string{"exact": "=" + m.path, "prefix": m.path, "regex": "~" + m.path + "[a-z]+"}[m.op]
	if m.header != "" {
		text += " H=" + m.header
	}
	return text
}

// competesWith reports whether some path and header meet both matches.
func (m fullMatch) competesWith(o fullMatch) bool {
	under := func(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
	starts := strings.HasPrefix(m.path, o.path) || strings.HasPrefix(o.path, m.path)
	var paths bool
	switch ops := m.op + o.op; {
	case strings.Contains(ops, "regex"):
		paths = starts
	case ops == "exactexact":
		paths = m.path == o.path
	case m.op == "exact":
		paths = under(m.path, o.path)
	case o.op == "exact":
		paths = under(o.path, m.path)
	default:
		paths = under(m.path, o.path) || under(o.path, m.path)
	}
	return paths && (m.header == "" || o.header == "" || m.header == o.header)
}

func (r *fullRoute) route(t testing.TB) *gateway.Route {
	var rules []string
	for _, rule := range r.rules {
		var all []string
		for _, m := range rule {
			all = append(all, m.String())
		}
		rules = append(rules, strings.Join(all, " ; "))
	}
	return routeOf(t, fmt.Sprintf("%s 1 %s: %s", r.name, r.hostname, strings.Join(rules, " | ")))
}

// fullRoutes returns random routes, some of whose paths contain those of others.
func fullRoutes(r *rand.Rand, n int, regex, shared bool) []fullRoute {
	out := make([]fullRoute, n)
	for i := range out {
		out[i].name, out[i].hostname = fmt.Sprintf("r%d", i), "shop.example.com"
		if !shared {
			out[i].hostname = fmt.Sprintf("shop%d.example.com", i)
		}
		for rule := range out[i].rules {
			for k := range out[i].rules[rule] {
				m := fullMatch{op: pick(r, "prefix", "exact"), path: fmt.Sprintf("/%s/%d/%d", pick(r, "a", "b", out[i].name), rule, k), header: pick(r, "", "", "1", fmt.Sprint(i))}
				if regex && r.IntN(2) == 0 {
					m.op = "regex"
				}
				if r.IntN(16) == 0 {
					m.path = strings.TrimSuffix(m.path, fmt.Sprintf("/%d", k)) // all of the rule and others
				}
				out[i].rules[rule][k] = m
			}
		}
	}
	return out
}

// competition is, over all matches of a route that another version of it does not have, the
// sum of 1 and the matches that compete with it.
func competition(r, other *fullRoute, worlds ...[]fullRoute) int {
	sum := 0
	for i, rule := range r.rules {
		for k, m := range rule {
			if other != nil && other.hostname == r.hostname && other.rules[i][k] == m {
				continue
			}
			sum++
			for _, w := range worlds {
				for _, o := range w {
					for _, all := range o.rules {
						for _, n := range all {
							if o.hostname == r.hostname && m.competesWith(n) {
								sum++
							}
						}
					}
				}
			}
		}
	}
	return sum
}

// The work of a search is bounded by a small factor times the matches that are changed and
// those that compete with them; nothing is looked at where nothing is at stake.
func TestSearchIsBounded(t *testing.T) {
	const factor = 16
	kinds := []string{"one path edited", "edited", "created", "deleted", "moved to another hostname"}
	most := 0.0
	for i, n := range []int{1, 2, 6, 16, 200} {
		if n > 16 {
			kinds = kinds[:1]
		}
		for _, kind := range kinds {
			for _, regex := range []bool{false, true} {
				for _, shared := range []bool{false, true} {
					known := make(map[string]*gateway.Route)
					r := rand.New(rand.NewPCG(uint64(i), 34))
					was := fullRoutes(r, n, regex, shared)
					is := slices.Clone(was)
					at := r.IntN(n)
					before, after := &was[at], &is[at]
					switch kind {
					case "edited":
						is[at].rules = fullRoutes(r, n, regex, shared)[at].rules
					case "one path edited":
						is[at].rules[3][5].path += "/edited"
					case "created":
						is, before = append(is, fullRoutes(r, n+1, regex, shared)[n]), nil
						after = &is[n]
					case "deleted":
						is, after = slices.Delete(is, at, at+1), nil
					default:
						is[at].hostname = "other.example.com"
					}
					bound := 0
					if before != nil {
						bound += competition(before, after, was, is)
					}
					if after != nil {
						bound += competition(after, before, was, is)
					}
					steps := searchSteps(t, known, was, is, before, after, func(gateway.Served, bool) any { return 0 })
					name := fmt.Sprintf("%d routes, regex %t, shared %t, %s", n, regex, shared, kind)
					require.Zero(t, steps, name)
					steps = searchSteps(t, known, was, is, before, after, func(s gateway.Served, _ bool) any { return s.Route.Name })
					require.LessOrEqual(t, steps, factor*bound, name)
					most = max(most, float64(steps)/float64(bound))
				}
			}
		}
	}
	t.Logf("at most %.1f steps for each changed match and each that competes with it", most)
	assert.Positive(t, most)
}

// searchSteps returns the steps of a search between two worlds, given what is attached to
// rules. known are the routes that are compiled.
func searchSteps(t *testing.T, known map[string]*gateway.Route, was, is []fullRoute, before, after *fullRoute, policies func(gateway.Served, bool) any) int {
	t.Helper()
	compile := func(all []fullRoute) routes {
		var out routes
		for i := range all {
			key := fmt.Sprint(all[i].name, all[i].hostname, all[i].rules)
			if known[key] == nil {
				known[key] = all[i].route(t)
			}
			out = append(out, known[key])
		}
		return out
	}
	router := func(all []fullRoute) *gateway.Router {
		empty, _ := routerOf(t, "http: HTTP 80", "")
		return gateway.NewRouter(empty.Listeners(), compile(all), gateway.Reading{})
	}
	changed := func(r *fullRoute) []*gateway.Route {
		if r == nil {
			return nil
		}
		return compile([]fullRoute{*r})
	}
	steps := 0
	limits := gateway.MoveLimits{Work: &steps, Policies: policies, AtStake: func(from, to any) bool { return from != to }}
	a, b := router(was), router(is)
	for m := range gateway.Moves(a, b, changed(before), changed(after), limits) {
		require.False(t, m.Unsearched)
		if m.Request != nil {
			require.True(t, a.Route(m.Request).Same(m.From) && b.Route(m.Request).Same(m.To), m.Request)
		}
	}
	return steps
}

// Where so many matches compete that a search ends, there is a move for each pair of rules
// at which something is at stake, and for no other.
func TestSearchThatEndsNamesPairs(t *testing.T) {
	defer gateway.SetMaxWork(1)()
	w := "own 1 shop.example.com: /a/1 | /a/2 | /b\nother 2 shop.example.com: /a | /c\nlike 3 shop.example.com: /a ; /b"
	before, routesBefore := routerOf(t, "http: HTTP 80", w)
	after, _ := routerOf(t, "http: HTTP 80", strings.Join(strings.Split(w, "\n")[1:], "\n"))
	limits := gateway.MoveLimits{
		Policies: func(s gateway.Served, _ bool) any { return s.Route.Name == "other" },
		AtStake:  func(from, to any) bool { return from != to },
	}
	var got []string
	for m := range gateway.Moves(before, after, routesBefore[:1], nil, limits) {
		assert.True(t, m.Unsearched)
		got = append(got, servedText(m.From)+" to "+servedText(m.To))
	}
	assert.Equal(t, []string{"http own/1 to http other/1", "http own/2 to http other/1"}, got)
}

// A search that ends does not compare each match with each other one to find the pairs of
// rules, even if none has requests in common with another one.
func TestSearchThatEndsIsBounded(t *testing.T) {
	const n, work = 4, 1000
	all := fullRoutes(rand.New(rand.NewPCG(1, 34)), n, false, true)
	var compiled routes
	for i := range all {
		for rule := range all[i].rules {
			for k := range all[i].rules[rule] {
				all[i].rules[rule][k] = fullMatch{op: "prefix", path: "/a", header: fmt.Sprint(i, "-", rule, "-", k)}
			}
		}
		compiled = append(compiled, all[i].route(t))
	}
	defer gateway.SetMaxWork(work)()
	empty, _ := routerOf(t, "http: HTTP 80", "")
	router := func() *gateway.Router {
		return gateway.NewRouter(empty.Listeners(), compiled, gateway.Reading{})
	}
	done, moves := 0, 0
	limits := gateway.MoveLimits{
		Work:     &done,
		Policies: func(s gateway.Served, _ bool) any { return s.Route.Name },
		AtStake:  func(from, to any) bool { return from != to },
	}
	for m := range gateway.Moves(router(), router(), compiled, nil, limits) {
		require.True(t, m.Unsearched)
		moves++
	}
	rules := n * len(all[0].rules)
	assert.LessOrEqual(t, done, 2*work+4*rules*len(all[0].rules[0])*rules, "a few for each match and rule")
	assert.Positive(t, moves, "the search ends before all are compared")
}

// Where listeners change, a search is not slower with the routes of others that are on them
// before and after.
func TestListenerChangesMoveNothingBetweenTheSameMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 34))
	var all []*gateway.Route
	for _, f := range append(fullRoutes(r, 15, true, true), fullRoute{name: "own", hostname: "shop.example.com"}) {
		if f.name == "own" {
			all = append(all, routeOf(t, "own 1 shop.example.com: /a/1 ; /a/2"))
			continue
		}
		all = append(all, f.route(t))
	}
	listeners := func(text string) []gateway.ListenerMatch {
		empty, _ := routerOf(t, text, "")
		return empty.Listeners()
	}
	for name, c := range map[string]struct{ before, after string }{
		"renamed":               {"http: HTTP 80", "web: HTTP 80"},
		"another port":          {"http: HTTP 80", "http: HTTP 80\nalt: HTTP 81"},
		"a hostname of its own": {"http: HTTP 80", "http: HTTP 80\nshop: HTTP 80 shop.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			limits := gateway.MoveLimits{
				Work:     &steps,
				Policies: func(s gateway.Served, _ bool) any { return s.Route.Name == "own" },
				AtStake:  func(from, to any) bool { return from != to },
			}
			before := gateway.NewRouter(listeners(c.before), routes(all), gateway.Reading{})
			after := gateway.NewRouter(listeners(c.after), routes(all), gateway.Reading{})
			for m := range gateway.Moves(before, after, all, all, limits) {
				assert.Fail(t, "a request moves", "%v", m)
			}
			assert.LessOrEqual(t, steps, 8*15*128, "a few for each match")
		})
	}
}

// What is looked up for the paths of one write is bounded together, and its end is shown.
func TestLookupsAreBounded(t *testing.T) {
	const w = "own 1 shop.example.com: /a/1 ; ~/a/.* | /b\nother 2 shop.example.com: /a ; ~/.*"
	lookups := func() (witnesses []gateway.Move) {
		before, all := routerOf(t, "http: HTTP 80", w)
		after, _ := routerOf(t, "http: HTTP 80", w)
		at := before.Listeners()[0]
		for range 2 { // two paths
			witnesses = slices.AppendSeq(witnesses, before.Witnesses(&gateway.Path{Gateway: at.Gateway, Listener: at.Listener, Route: all[0], Rule: -1}, after))
		}
		return witnesses
	}
	witnesses := lookups()
	assert.Len(t, witnesses, 4, "one for each match that has requests")
	assert.False(t, slices.ContainsFunc(witnesses, func(w gateway.Move) bool { return w.Unsearched }))
	defer gateway.SetMaxWork(1)()
	witnesses = lookups()
	require.Len(t, witnesses, 3)
	assert.False(t, witnesses[0].Unsearched)
	assert.True(t, witnesses[1].Unsearched && witnesses[2].Unsearched)
}

// The searches under all readings of a write may do as much together as one alone.
func TestSearchesShareTheirWork(t *testing.T) {
	const w = "own 1 shop.example.com: /a/1 | /a/2\nother 2 shop.example.com: /a"
	plain, all := routerOf(t, "http: HTTP 80", w)
	empty, _ := routerOf(t, "http: HTTP 80", "other 2 shop.example.com: /a")
	work := 0
	search := func() (moves, unsearched int) {
		for m := range gateway.Moves(plain, empty, all[:1], nil, gateway.MoveLimits{Work: &work}) {
			moves++
			if m.Unsearched {
				unsearched++
			}
		}
		return moves, unsearched
	}
	moves, unsearched := search()
	assert.Equal(t, [2]int{2, 0}, [2]int{moves, unsearched})
	require.Positive(t, work)
	defer gateway.SetMaxWork(work - 1)()
	moves, unsearched = search()
	assert.Equal(t, [2]int{2, 2}, [2]int{moves, unsearched})
}

// What takes time counts as work: to look for texts that expressions have in common, to find which of many
// matches a request goes to, to look for those that take requests of another one, and to
// compare hosts with listeners.
func TestWorkOfSearchCounts(t *testing.T) {
	const n, hosts = 64, 256
	var exact, prefixes, headers []string
	listeners := "http: HTTP 80"
	for i := range n {
		path := strings.Repeat("/a", i+1)
		exact, prefixes, headers = append(exact, "="+path), append(prefixes, path), append(headers, fmt.Sprintf("/a H=%d", i))
	}
	for i := range hosts {
		listeners += fmt.Sprintf("\nl%d: HTTP 80 h%d.example.com", i, i)
	}
	for name, c := range map[string]struct {
		listeners, own, other string // own and other are matches
		least                 int
	}{
		"texts of two expressions":       {"http: HTTP 80", "~/[ab]*a[ab]{40}c", "~/[ab]*b[ab]{40}d", 1 << 9},
		"requests that n matches meet":   {"http: HTTP 80", strings.Join(exact, " ; "), strings.Join(prefixes, " ; "), n * n * 3 / 2},
		"n matches that precede another": {"http: HTTP 80", "/a", strings.Join(headers, " ; "), 7 * n},
		"hosts, each with all listeners": {listeners, "/a/b", "/a", hosts * hosts / 4},
	} {
		t.Run(name, func(t *testing.T) {
			other := "other 2 *.example.com: " + c.other
			before, all := routerOf(t, c.listeners, "own 1 *.example.com: "+c.own+"\n"+other)
			after, _ := routerOf(t, c.listeners, other)
			work := 0
			reading := gateway.Reading{Shared: true}
			for m := range gateway.Moves(before.With(reading), after.With(reading), all[:1], nil, gateway.MoveLimits{Work: &work}) {
				assert.False(t, m.Unsearched)
			}
			assert.GreaterOrEqual(t, work, c.least)
		})
	}
}

// The expressions of another route, however many, do not keep a search from finding where
// the requests of a match go.
func TestManyExpressionsAreSearched(t *testing.T) {
	const n = 64
	for name, row := range map[string]struct {
		own   string             // the match that is removed
		match func(i int) string // those of the other route, which come first
		also  string             // one more of them
		moves bool               // own has requests that none of these takes
	}{
		"paths":               {own: "~/.*", match: func(i int) string { return fmt.Sprintf("~/.{%d}", i) }, moves: true},
		"paths that take all": {own: "~/.*", match: func(i int) string { return fmt.Sprintf("~/.{%d}", i) }, also: fmt.Sprintf("~/.{%d}.*", n)},
		"letters that take all": {own: "~/[a-d0-9]+", match: func(i int) string {
			return fmt.Sprintf("~/[%c%c].*", "abcd0123456789"[i%14], "abcd0123456789"[(i+1)%14])
		}},
		"what has very many states":          {own: "~/[abc]*", match: func(i int) string { return fmt.Sprintf("~/[ab]*%c[ab]{%d}.*", "abc"[i%3], i) }, moves: true},
		"headers":                            {own: "/ H=~.*", match: func(i int) string { return fmt.Sprintf("/ H=~.{%d}", i) }, moves: true},
		"two headers":                        {own: "/ H=~.* I=~.*", match: func(i int) string { return fmt.Sprintf("/ H=~.{%d} I=~.{%d}", i, i) }, moves: true},
		"a header that all of them may have": {own: "/ H=~[ab]* I=~[ab]*", match: func(i int) string { return fmt.Sprintf("/ H=~[^a]{%d}a? I=~[abc]*", i) }, moves: true},
		"the same, and one takes all":        {own: "~/[ab]+", match: func(i int) string { return fmt.Sprintf("~/[ab]*b[ab]{%d}", i) }, also: "~/[ab]+"},
		"calls":                              {own: "~S.[ab]+", match: func(i int) string { return fmt.Sprintf("~S.[ab]{%d}", i+1) }, moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			kind := ""
			if name == "calls" {
				kind = "grpc"
			}
			var matches []string
			for i := range n {
				matches = append(matches, row.match(i))
			}
			if row.also != "" {
				matches = append(matches, row.also)
			}
			var rules []string
			for some := range slices.Chunk(matches, 8) {
				rules = append(rules, strings.Join(some, " ; "))
			}
			all := map[string]string{"": "/", "grpc": "."}[kind]
			before, routesBefore := routerOf(t, "http: HTTP 80", fmt.Sprintf("%sown 2: %s\n%sother 3: %s\n%smany 1: %s", kind, row.own, kind, all, kind, strings.Join(rules, " | ")))
			after := gateway.NewRouter(before.Listeners(), routes(routesBefore[1:]), gateway.Reading{})
			reading := gateway.Reading{Regex: gateway.RegexFirst}
			var want []string
			if row.moves {
				want = []string{kind + "own to " + kind + "other"}
			}
			toOther := gateway.MoveLimits{ // few matches are at stake
				Policies: func(s gateway.Served, _ bool) any { return s.Route.Name },
				AtStake:  func(_, to any) bool { return to == kind+"other" },
			}
			for _, limits := range []gateway.MoveLimits{{}, toOther} {
				var got []string
				for m := range gateway.Moves(before.With(reading), after.With(reading), routesBefore[:1], nil, limits) {
					assert.NotNil(t, m.Request)
					got = append(got, m.From.Route.Name+" to "+m.To.Route.Name)
				}
				assert.Equal(t, want, got)
			}
		})
	}
}

// Each rule of a full route is searched with each rule of another one, although each request is
// compared with all of their expressions.
func TestFullRoutesOfExpressionsAreSearched(t *testing.T) {
	const rules = 16
	var own, other []string
	for i := range rules {
		own, other = append(own, fmt.Sprintf("~/%02d.*", i)), append(other, fmt.Sprintf("~/.*x%02d", i))
	}
	before, all := routerOf(t, "http: HTTP 80", "own 1: "+strings.Join(own, " | ")+"\nother 2: "+strings.Join(other, " | "))
	after := gateway.NewRouter(before.Listeners(), routes(all[1:]), gateway.Reading{})
	reading := gateway.Reading{Regex: gateway.RegexFirst}
	moves := 0
	for m := range gateway.Moves(before.With(reading), after.With(reading), all[:1], nil, gateway.MoveLimits{}) {
		require.NotNil(t, m.Request)
		moves++
	}
	assert.Equal(t, rules*rules, moves)
}
