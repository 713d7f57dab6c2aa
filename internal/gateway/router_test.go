package gateway_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// routes is a gateway.Routes without an index.
type routes []*gateway.Route

func (rs routes) RoutesAt(parent api.Ref, hostname, _ string) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for _, r := range rs {
			has := slices.Contains(r.Hostnames, hostname) || hostname == "" && len(r.Hostnames) == 0
			if has && slices.ContainsFunc(r.Parents, func(p gateway.Parent) bool { return p.Ref() == parent }) && !yield(r) {
				return
			}
		}
	}
}

func (rs routes) RoutesOf(parent api.Ref) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for _, r := range rs {
			if slices.ContainsFunc(r.Parents, func(p gateway.Parent) bool { return p.Ref() == parent }) && !yield(r) {
				return
			}
		}
	}
}

func (rs routes) NamespaceLabels(string) labels.Set { return nil }

func request(t testing.TB, text string, headers ...string) *gateway.Request {
	t.Helper()
	q, err := gateway.ParseRequest(text, headers)
	require.NoError(t, err)
	return q
}

// routerOf returns the router of a gateway with listeners, one per line as
// "name: protocol port hostname", and routes, one per line as
// "name age hostname,...: match; match | next rule".
func routerOf(t testing.TB, listeners, text string) (*gateway.Router, []*gateway.Route) {
	t.Helper()
	g := &gateway.Gateway{Namespace: "infra", Name: "g"}
	web := []string{gateway.KindHTTPRoute, gateway.KindGRPCRoute}
	for line := range strings.Lines(strings.TrimSpace(listeners)) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		f := append(strings.Fields(rest), "")
		var port int32
		_, err := fmt.Sscan(f[1], &port)
		require.NoError(t, err)
		g.Listeners = append(g.Listeners, gateway.Listener{
			Name: name, Protocol: f[0], Port: port, Hostname: f[2], Namespaces: gateway.NamespaceRule{All: true}, Kinds: map[string][]string{"HTTP": web, "HTTPS": web, "TLS": {gateway.KindTLSRoute}}[f[0]],
		})
	}
	var all routes
	for line := range strings.Lines(strings.TrimSpace(text)) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, routeOf(t, line))
		}
	}
	return gateway.NewRouter(gateway.OwnListeners(g), all, gateway.Reading{}), all
}

func routeOf(t testing.TB, line string) *gateway.Route {
	t.Helper()
	head, rules, _ := strings.Cut(line, ": ")
	f := append(strings.Fields(head), "")
	name, section, _ := strings.Cut(f[0], "@")
	doc := "metadata: {namespace: app, name: " + name + ", creationTimestamp: '2026-01-" + fmt.Sprintf("%02s", f[1]) + "T00:00:00Z'}\n" +
		"spec:\n  parentRefs: [{kind: Gateway, namespace: infra, name: g"
	if section != "" {
		doc += ", sectionName: " + section
	}
	doc += "}]\n"
	if f[2] != "" {
		doc += "  hostnames: ['" + strings.ReplaceAll(f[2], ",", "','") + "']\n"
	}
	kind := gateway.KindHTTPRoute
	if strings.HasPrefix(name, "grpc") {
		kind = gateway.KindGRPCRoute
	}
	if strings.HasPrefix(name, "tls") {
		return route(t, gateway.KindTLSRoute, doc+"  rules: [{}]")
	}
	doc += "  rules:\n"
	for rule := range strings.SplitSeq(rules, "|") {
		doc += "  - matches:\n"
		for m := range strings.SplitSeq(rule, ";") {
			doc += "    - " + matchOf(kind, m) + "\n"
		}
	}
	return route(t, kind, doc)
}

// matchOf writes a match such as "GET /a H=1 ?q=2", where =/a is an exact path and ~/a a
// regular expression; of GRPCRoutes "Service.Method", both by regular expressions after ~.
func matchOf(kind, text string) string {
	var parts, headers, params []string
	for f := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(f, "=")
		switch {
		case kind == gateway.KindGRPCRoute && strings.Contains(f, "."):
			service, method, _ := strings.Cut(f, ".")
			part := "method: {"
			if service, _ = strings.CutPrefix(service, "~"); f[0] == '~' {
				part += "type: RegularExpression, "
			}
			if service != "" {
				part += "service: '" + service + "', "
			}
			if method != "" {
				part += "method: '" + method + "'"
			}
			parts = append(parts, part+"}")
		case strings.HasPrefix(f, "/"):
			parts = append(parts, "path: {type: PathPrefix, value: '"+f+"'}")
		case strings.HasPrefix(f, "=/"):
			parts = append(parts, "path: {type: Exact, value: '"+f[1:]+"'}")
		case strings.HasPrefix(f, "~"):
			parts = append(parts, "path: {type: RegularExpression, value: '"+f[1:]+"'}")
		case strings.HasPrefix(f, "?"):
			params = append(params, "{name: '"+name[1:]+"', value: '"+value+"'}")
		case strings.HasPrefix(value, "~"):
			headers = append(headers, "{name: '"+name+"', type: RegularExpression, value: '"+value[1:]+"'}")
		case strings.Contains(f, "="):
			headers = append(headers, "{name: '"+name+"', value: '"+value+"'}")
		default:
			parts = append(parts, "method: "+f)
		}
	}
	if len(headers) > 0 {
		parts = append(parts, "headers: ["+strings.Join(headers, ", ")+"]")
	}
	if len(params) > 0 {
		parts = append(parts, "queryParams: ["+strings.Join(params, ", ")+"]")
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// servedText is where a request goes, as "listener route/rule".
func servedText(s gateway.Served) string {
	switch {
	case s.Listener == nil:
		return "no listener"
	case s.Route == nil:
		return s.Listener.Listener.Name + ": nothing"
	default:
		return fmt.Sprintf("%s %s/%d", s.Listener.Listener.Name, s.Route.Name, s.Rule+1)
	}
}

// Gateway API's precedence, as its specification has it: SEMANTICS section 9.
func TestRouterPrecedence(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Listeners, Routes string
		Rows              []struct{ Request, Want string }
	}](t, "testdata/tables/precedence.yaml") {
		t.Run(name, func(t *testing.T) {
			r, _ := routerOf(t, c.Listeners, c.Routes)
			for _, row := range c.Rows {
				assert.Equal(t, row.Want, servedText(r.Route(request(t, row.Request))), row.Request)
			}
		})
	}
}

func TestRouterHeaders(t *testing.T) {
	r, _ := routerOf(t, "http: HTTP 80", "a 1: / | / X=1 | POST / X=1 | / X=1 Y=2 | / X=1,3 | / Z=~[0-9]+")
	for _, c := range []struct {
		method  string
		headers []string
		want    string
	}{
		{"GET", nil, "http a/1"}, {"GET", []string{"x: 1"}, "http a/2"}, {"POST", []string{"X: 1", "Y: 2"}, "http a/3"},
		{"GET", []string{"y: 2", "X:1"}, "http a/4"}, {"GET", []string{"X: 1", "x: 3"}, "http a/5"}, {"GET", []string{"Z: 12"}, "http a/6"}, {"GET", []string{"Z: x1"}, "http a/1"},
	} {
		assert.Equal(t, c.want, servedText(r.Route(request(t, c.method+" http://h/", c.headers...))), c)
	}
}

// What implementations may read in two ways.
func TestRouterReadings(t *testing.T) {
	r, _ := routerOf(t, "a: HTTP 80 shop.example.com\nb: HTTP 80", "r@b 1 shop.example.com: /x\ns@a 2: /y | ~/y/.+\ngrpc@b 1: .")
	shared := r.With(gateway.Reading{Shared: true})
	assert.Equal(t, "a: nothing", servedText(r.Route(request(t, "http://shop.example.com/x"))))
	assert.Equal(t, "b r/1", servedText(shared.Route(request(t, "http://shop.example.com/x"))))
	assert.Equal(t, "a s/1", servedText(shared.Route(request(t, "http://shop.example.com/y/z"))))
	assert.Equal(t, "a s/2", servedText(r.With(gateway.Reading{Regex: gateway.RegexFirst}).Route(request(t, "http://shop.example.com/y/z"))))
	assert.Equal(t, "b grpc/1", servedText(r.Route(request(t, "grpc://other/A/B"))))
}

func TestParseRequest(t *testing.T) {
	for text, want := range map[string]string{
		"http://Shop.Example.com.":                "GET http://shop.example.com/",
		"POST https://h:8443/a%20b//c/../d?y=1&x": "POST https://h:8443/a%20b//c/../d?y=1&x=",
		"grpc://h/pkg.Shop/Buy":                   "gRPC http://h/pkg.Shop/Buy",
		"tls://db.example.com":                    "tls://db.example.com",
		"tcp://:5432":                             "TCP port 5432",
		"http://[2001:db8::1]:8080/":              "GET http://[2001:db8::1]:8080/",
		" GET   http://h/cart?q=a+b ":             "GET http://h/cart?q=a+b",
	} {
		assert.Equal(t, want, request(t, text).String(), text)
	}
	assert.Equal(t, "GET http://h/ with X-Team: a and Y: b:c", request(t, "http://h", "X-Team:a", "Y: b:c").String())
	for text, want := range map[string]string{
		"shop.example.com/cart": "has no scheme", "ftp://h": "not supported", "GET http://": "no host", "http://*.example.com": "without wildcards",
		"http://h:99999/": "port", "http://h:0/": "port", "tcp://h": "port", "GET tcp://:1": "no method", "http://h/%zz": "%zz", "grpc://h/x": "/SERVICE/METHOD", "http://h/?a=%zz": "%zz",
		"http://a_b/": "DNS name", "": "no scheme", "GET": "no scheme", "http://-a": "DNS name",
	} {
		_, err := gateway.ParseRequest(text, nil)
		assert.ErrorContains(t, err, want, text)
	}
	for _, h := range []string{"X-Team", ": a", "a b: c", ""} {
		_, err := gateway.ParseRequest("http://h", []string{h})
		assert.ErrorContains(t, err, "invalid header", h)
	}
}

// naiveServed decides where a request goes by comparing all matches of all routes with
// each other, one criterion after another.
func naiveServed(listeners []gateway.Listener, all []naiveRoute, q *gateway.Request) string {
	best := -1
	for i, l := range listeners {
		if naiveHost(l.Hostname, q.Host) && (best < 0 || naiveSpecific(l.Hostname) > naiveSpecific(listeners[best].Hostname)) {
			best = i
		}
	}
	if best < 0 {
		return "no listener"
	}
	l := listeners[best]
	type candidate struct {
		r    naiveRoute
		rule int
		m    naiveMatch
	}
	top := -1
	for _, r := range all {
		if s := naiveCommon(l.Hostname, r.hostname, q.Host); s > top {
			top = s
		}
	}
	var met []candidate
	for _, r := range all {
		if s := naiveCommon(l.Hostname, r.hostname, q.Host); s < 0 || s < top {
			continue
		}
		for i, m := range r.rules {
			if m.takes(q) {
				met = append(met, candidate{r, i, m})
			}
		}
	}
	if len(met) == 0 {
		return l.Name + ": nothing"
	}
	slices.SortStableFunc(met, func(a, b candidate) int {
		for _, d := range []int{
			naiveBool(b.m.exact) - naiveBool(a.m.exact),
			len(strings.TrimSuffix(b.m.path, "/")) - len(strings.TrimSuffix(a.m.path, "/")),
			naiveBool(b.m.verb != "") - naiveBool(a.m.verb != ""),
			naiveBool(b.m.header != "") - naiveBool(a.m.header != ""),
			a.r.age - b.r.age, strings.Compare(a.r.name, b.r.name), a.rule - b.rule,
		} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	return fmt.Sprintf("%s %s/%d", l.Name, met[0].r.name, met[0].rule+1)
}

type naiveRoute struct {
	name, hostname string
	age            int
	rules          []naiveMatch
}

type naiveMatch struct {
	exact              bool
	path, verb, header string
}

func (m naiveMatch) takes(q *gateway.Request) bool {
	under := m.path == "/" || q.Path == m.path || strings.HasPrefix(q.Path+"/", strings.TrimSuffix(m.path, "/")+"/")
	header, _ := q.Header("H")
	return (m.exact && q.Path == m.path || !m.exact && under) && (m.verb == "" || m.verb == q.Method) && (m.header == "" || m.header == header)
}

func (m naiveMatch) String() string {
	out := m.verb + " "
	if m.exact {
		out += "="
	}
	out += m.path
	if m.header != "" {
		out += " H=" + m.header
	}
	return out
}

func naiveBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

func naiveHost(hostname, host string) bool {
	return hostname == "" || hostname == host || hostname[0] == '*' && strings.HasSuffix(host, hostname[1:]) && host != hostname[2:]
}

func naiveSpecific(hostname string) int {
	switch {
	case hostname == "":
		return 0
	case hostname[0] == '*':
		return len(hostname)
	default:
		return 1000 + len(hostname)
	}
}

// naiveCommon returns how specific the hostname is that a listener and a route have in
// common, -1 if the request does not match it.
func naiveCommon(listener, route, host string) int {
	if !naiveHost(listener, host) || !naiveHost(route, host) {
		return -1
	}
	return max(naiveSpecific(listener), naiveSpecific(route))
}

// naiveWorld is a gateway with routes, for the naive router and for the real one.
type naiveWorld struct {
	listeners []gateway.Listener
	routes    []naiveRoute
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func randomHostname(r *rand.Rand) string {
	return pick(r, "", "", "*.example.com", "*.com", "a.example.com", "b.example.com", "*.a.example.com")
}

func randomRoute(r *rand.Rand, name string) naiveRoute {
	out := naiveRoute{name: name, hostname: randomHostname(r), age: 1 + r.IntN(3)}
	for range 1 + r.IntN(3) {
		out.rules = append(out.rules, naiveMatch{
			exact: r.IntN(3) == 0, path: pick(r, "/", "/", "/a", "/a/", "/a/b", "/ab", "/b"), verb: pick(r, "", "", "GET", "POST"), header: pick(r, "", "", "1", "2"),
		})
	}
	return out
}

func randomListeners(r *rand.Rand) []gateway.Listener {
	var out []gateway.Listener
	for range 1 + r.IntN(3) {
		l := gateway.Listener{Hostname: randomHostname(r)}
		l.Name = "l-" + strings.ReplaceAll(strings.ReplaceAll(l.Hostname, "*", "any"), ".", "-")
		if !slices.ContainsFunc(out, func(o gateway.Listener) bool { return o.Name == l.Name }) {
			out = append(out, l)
		}
	}
	return out
}

func randomWorld(r *rand.Rand) naiveWorld {
	out := naiveWorld{listeners: randomListeners(r)}
	for i := range 1 + r.IntN(4) {
		out.routes = append(out.routes, randomRoute(r, fmt.Sprintf("r%d", i)))
	}
	return out
}

// change returns the world after a random change of a route or of the listeners.
func (w naiveWorld) change(r *rand.Rand) naiveWorld {
	out := naiveWorld{w.listeners, slices.Clone(w.routes)}
	i := r.IntN(len(w.routes))
	switch r.IntN(6) {
	case 0:
		out.listeners = randomListeners(r)
	case 1:
		out.routes = slices.Delete(out.routes, i, i+1)
	case 2:
		out.routes = append(out.routes, randomRoute(r, "new"))
	case 3:
		out.routes[i].rules = randomRoute(r, "").rules
	case 4:
		out.routes[i].hostname = randomHostname(r)
	default:
		out.routes[i].rules = slices.Clone(out.routes[i].rules)
		slices.Reverse(out.routes[i].rules)
	}
	return out
}

func (w naiveWorld) String() string {
	listeners, routes := w.text()
	return listeners + routes
}

func (w naiveWorld) text() (listeners, routes string) {
	for _, l := range w.listeners {
		listeners += fmt.Sprintf("%s: HTTP 80 %s\n", l.Name, l.Hostname)
	}
	for _, n := range w.routes {
		var rules []string
		for _, m := range n.rules {
			rules = append(rules, m.String())
		}
		routes += fmt.Sprintf("%s %d %s: %s\n", n.name, n.age, n.hostname, strings.Join(rules, " | "))
	}
	return listeners, routes
}

func (w naiveWorld) router(t testing.TB) (*gateway.Router, []*gateway.Route) {
	t.Helper()
	listeners, text := w.text()
	return routerOf(t, listeners, text)
}

// requests are all that the conditions of the random routes tell apart.
func requests() []*gateway.Request {
	var out []*gateway.Request
	for _, host := range []string{"a.example.com", "b.example.com", "c.example.com", "x.a.example.com", "d.com", "e.org"} {
		for _, path := range []string{"/", "/a", "/a/", "/a/b", "/a/b/c", "/a/c", "/ab", "/ab/c", "/b", "/b/c", "/c"} {
			for _, verb := range []string{"GET", "POST", "PUT"} {
				for _, h := range []string{"", "1", "2"} {
					q := &gateway.Request{Transport: gateway.TransportHTTP, Port: 80, Method: verb, Host: host, Path: path}
					if h != "" {
						q.Headers = []gateway.Field{{Name: "h", Value: h}}
					}
					out = append(out, q)
				}
			}
		}
	}
	return out
}

func TestRouterAgreesWithNaiveOne(t *testing.T) {
	served := map[bool]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 18))
		w := randomWorld(r)
		router, _ := w.router(t)
		for _, q := range requests() {
			if r.IntN(8) > 0 {
				continue
			}
			want := naiveServed(w.listeners, w.routes, q)
			require.Equal(t, want, servedText(router.Route(q)), "%s\n%s", q, w)
			served[!strings.Contains(want, "no")]++
		}
	}
	t.Logf("%d requests are served, %d are not", served[true], served[false])
	assert.Positive(t, min(served[true], served[false]))
}

// Moves finds exactly the pairs of rules between which some request moves.
func TestMovesAgreeWithAllRequests(t *testing.T) {
	var changes, moving, pairs int
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 19))
		w := randomWorld(r)
		x := w.change(r)
		before, routesBefore := w.router(t)
		after, routesAfter := x.router(t)
		want := make(map[string]bool)
		for _, q := range requests() {
			from, to := naiveServed(w.listeners, w.routes, q), naiveServed(x.listeners, x.routes, q)
			if !strings.Contains(from+to, "no") && from != to {
				want[from+" to "+to] = true
			}
		}
		got := make(map[string]bool)
		for m := range gateway.Moves(before, after, routesBefore, routesAfter, gateway.MoveLimits{}) {
			require.NotNil(t, m.Request)
			if !m.From.Same(m.To) {
				got[servedText(m.From)+" to "+servedText(m.To)] = true
			}
			require.Equal(t, servedText(m.From), naiveServed(w.listeners, w.routes, m.Request), m.Request)
			require.Equal(t, servedText(m.To), naiveServed(x.listeners, x.routes, m.Request), m.Request)
		}
		require.Equal(t, want, got, "seed %d\n%s\n%s", seed, w, x)
		changes++
		pairs += len(want)
		moving += min(len(want), 1)
	}
	t.Logf("%d changes, %d move requests, between %d pairs of rules", changes, moving, pairs)
	assert.Greater(t, moving, changes/4)
}

// Where one kind of route per hostname counts, the deletion of the oldest route changes which:
// of many routes, those that are returned are bounded.
func TestOtherKind(t *testing.T) {
	listeners := "http: HTTP 80\nmore: HTTP 81"
	for name, row := range map[string]struct {
		others, want int
		deleted      string
	}{
		"the oldest":        {others: 3, deleted: "old 1: /x", want: 4},
		"beside very many":  {others: 3000, deleted: "old 1: /x", want: 1366},
		"a younger one":     {others: 3, deleted: "old 4: /x"},
		"on other hostname": {others: 3, deleted: "old 1 other.example.com: /x"},
	} {
		t.Run(name, func(t *testing.T) {
			rest := "grpc 2: x.\nhttp 3: /x\n"
			for i := range row.others - 1 {
				rest += fmt.Sprintf("h%d 5 h%d.example.com: /x\n", i, i)
			}
			before, all := routerOf(t, listeners, row.deleted+"\n"+rest)
			after, _ := routerOf(t, listeners, rest)
			reading := gateway.Reading{OneKind: true}
			found := before.With(reading).OtherKind(after.With(reading), all[:1], routes(all).RoutesOf)
			assert.Len(t, found, row.want)
		})
	}
}
