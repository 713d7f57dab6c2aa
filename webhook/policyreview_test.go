package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/tools/events"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/test/tables"
)

// readers lets users get the objects of some namespaces, and records what it is asked.
type readers struct {
	namespaces []string // nil for all
	except     string   // a kind that no one may get
	err        error
	onAsked    func()

	mu    sync.Mutex
	users []authenticationv1.UserInfo
	asked []api.Ref
}

func (r *readers) MayGet(_ context.Context, user *authenticationv1.UserInfo, object api.Ref) (bool, error) {
	r.mu.Lock()
	r.users, r.asked = append(r.users, *user), append(r.asked, object)
	r.mu.Unlock()
	if r.onAsked != nil {
		r.onAsked()
	}
	if r.err != nil {
		return false, r.err
	}
	if object.Kind == r.except {
		return false, nil
	}
	return r.namespaces == nil || slices.Contains(r.namespaces, object.Namespace), nil
}

var developer = authenticationv1.UserInfo{
	Username: "dev", UID: "u1", Groups: []string{"devs"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"a"}},
}

// policyReview is a dry run of a review in namespace app, with the rest of its document.
func policyReview(t *testing.T, rest string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := create(t, "apiVersion: overrule.dev/v1alpha1\nkind: EffectivePolicyReview\nmetadata: {namespace: app, name: question}\n"+rest)
	r.DryRun, r.UserInfo = new(true), developer
	return r
}

const aboutRoute = "spec: {object: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}}\n"

// answered returns the status in the patch of an answer.
func answered(t *testing.T, a *admissionv1.AdmissionResponse) api.ReviewStatus {
	t.Helper()
	require.True(t, a.Allowed, "%v", a.Result)
	var patch []struct {
		Op, Path string
		Value    api.ReviewStatus
	}
	require.NoError(t, json.Unmarshal(a.Patch, &patch))
	require.Len(t, patch, 1)
	require.Equal(t, []string{"add", "/status"}, []string{patch[0].Op, patch[0].Path})
	return patch[0].Value
}

func (d *testServer) asked(t *testing.T, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return d.send(t, PathReview, r)
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

const onRule = `[{"kind":"GatewayClass","name":"demo"},{"kind":"Gateway","namespace":"infra","name":"edge"},{"kind":"Listener","namespace":"infra","name":"edge","section":"http"},
	{"kind":"HTTPRoute","namespace":"app","name":"toystore"},{"kind":"HTTPRouteRule","namespace":"app","name":"toystore","section":"toys","index":0}]`

func TestReviewLeavesOutValuesThatTheUserMayNotGet(t *testing.T) {
	r := &readers{namespaces: []string{"app"}}
	d := newTestServer(t, Options{Readers: r}, cluster, gatewayAuth, gatewayLimits, routeLimits(100),
		routeAuth("rules: {authentication: {sso: {issuer: mine}, key: {header: x}}}"))
	got := answered(t, d.asked(t, policyReview(t, `spec:
  object: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore, section: toys}
`)))
	gateway, route := `{"group":"kuadrant.io","kind":"AuthPolicy","namespace":"infra","name":"gw-auth"}`, `{"group":"kuadrant.io","kind":"AuthPolicy","namespace":"app","name":"toystore-auth"}`
	lost := `{"rule":"rules.authentication.sso","block":"bare","to":` + gateway + `,"toBlock":"overrides"}`
	require.Len(t, got.Items, 2)
	assert.JSONEq(t, `{"policyKind":{"group":"kuadrant.io","kind":"AuthPolicy"},"path":`+onRule+`,
		"spec":{"rules":{"authentication":{"key":{"header":"x"}}}},"redacted":true,
		"rules":[{"rule":"rules.authentication.key","from":`+route+`,"block":"bare"},{"rule":"rules.authentication.sso","from":`+gateway+`,"block":"overrides","redacted":true}],
		"policies":[{"policy":`+gateway+`,"state":"Enforced"},{"policy":`+route+`,"state":"PartiallyEnforced","lost":[`+lost+`]}]}`, jsonOf(t, got.Items[0]))
	assert.Equal(t, map[string]any{}, got.Items[1].Spec, "the limit of the gateway")

	require.Len(t, got.Explanations, 2)
	rules := got.Explanations[0].Rules
	require.Len(t, rules, 2)
	assert.JSONEq(t, `{"rule":"rules.authentication.sso","from":`+gateway+`,"block":"overrides","redacted":true,
		"lost":[{"policy":`+route+`,"block":"bare","value":{"issuer":"mine"},"to":`+gateway+`,"toBlock":"overrides"}]}`, jsonOf(t, rules[1]))
	conditional := got.Explanations[1].Policies[0].Blocks
	require.Len(t, conditional, 1)
	assert.Equal(t, api.ExplainedPart{Block: "overrides", Strategy: "merge", TookPart: true, Rules: []string{"limits.login"}, Redacted: true}, conditional[0])

	require.Len(t, got.Outcomes, 4)
	assert.JSONEq(t, `{"policy":`+gateway+`,"state":"Enforced","paths":{"total":1,"enforced":1,"partiallyEnforced":0,"overridden":0,"inactive":0},"targets":[],"redacted":true}`,
		jsonOf(t, got.Outcomes[1]), "it counts the path of the question, of two")
	assert.Equal(t, 2, got.Outcomes[0].Paths.Total, "the developer's own counts all of its paths")
	assert.True(t, got.Redacted)
	for _, secret := range []string{"ours", `"limit":50`, "exists"} {
		assert.NotContains(t, jsonOf(t, got), secret)
	}
	assert.Equal(t, developer, r.users[0])
}

func TestReviewWithAllRightsLeavesOutNothing(t *testing.T) {
	d := newTestServer(t, Options{Readers: &readers{}}, cluster, gatewayAuth, routeAuth("rules: {authentication: {sso: {issuer: ours}}}"))
	got := answered(t, d.asked(t, policyReview(t, aboutRoute)))
	assert.False(t, got.Redacted)
	assert.NotContains(t, jsonOf(t, got), "redacted")
	require.NotEmpty(t, got.Items)
	assert.Equal(t, map[string]any{"rules": map[string]any{"authentication": map[string]any{"sso": map[string]any{"issuer": "ours"}}}}, got.Items[0].Spec)
	assert.True(t, got.Items[0].Policies[1].Lost[0].Equal)
}

func TestReviewReplacesForgedStatus(t *testing.T) {
	d := newTestServer(t, Options{Readers: &readers{}}, cluster, gatewayAuth)
	want := answered(t, d.asked(t, policyReview(t, aboutRoute)))
	got := answered(t, d.asked(t, policyReview(t, aboutRoute+"status: {message: all is fine, items: []}\n")))
	assert.Equal(t, want, got)
	require.NotEmpty(t, got.Items)
}

func TestDeniedReviews(t *testing.T) {
	d := newTestServer(t, Options{Readers: &readers{}, Enforcement: guard.EnforceAudit}, cluster, gatewayAuth)
	denied := func(t *testing.T, r *admissionv1.AdmissionRequest, want ...string) {
		t.Helper()
		a := d.asked(t, r)
		assertNames(t, said(t, a), want)
		assert.EqualValues(t, http.StatusForbidden, a.Result.Code, "the message is shown, and nothing is retried")
		assert.Empty(t, a.Patch)
		assert.NotContains(t, a.Result.Message, "\x1b")
	}
	for name, c := range tables.Read[map[string]struct {
		Spec json.RawMessage
		Want []string // parts of the message
	}](t, "testdata/tables/denied-reviews.yaml") {
		t.Run(name, func(t *testing.T) { denied(t, policyReview(t, "spec: "+string(c.Spec)), c.Want...) })
	}
	for _, dryRun := range []*bool{nil, new(false)} {
		r := policyReview(t, aboutRoute)
		r.DryRun = dryRun
		denied(t, r, "kubectl create --dry-run=server")
	}
	r := policyReview(t, aboutRoute)
	r.Kind.Kind = "HTTPRoute"
	denied(t, r, "must be an EffectivePolicyReview")
}

// The API server validates the schema after mutating webhooks. A message that names what
// is supported for each of many items would take a gigabyte.
func TestReviewsThatAreTooLargeHaveShortDenials(t *testing.T) {
	d := newTestServer(t, Options{Readers: &readers{}}, cluster, gatewayAuth)
	in := func(rest string) string { return strings.TrimSuffix(aboutRoute, "}\n") + ", " + rest + "}\n" }
	for name, test := range map[string]struct{ rest, want string }{
		"a long rule":       {in("rule: " + strings.Repeat("x", 1<<20)), "must not have more than 65536 bytes"},
		"very many headers": {in("request: {url: 'http://shop/', headers: [" + strings.Repeat("'a: b',", 10_000) + "]}"), "must not have more than 65536 bytes"},
		"many policy kinds": {in("policyKinds: [" + strings.Repeat("{},", 10_000) + "]"), "spec.policyKinds[0]: Unsupported value"},
		"many parts":        {in("parts: [" + strings.Repeat("x,", 10_000) + "]"), "spec.parts[0]: Unsupported value"},
	} {
		t.Run(name, func(t *testing.T) {
			message := said(t, d.asked(t, policyReview(t, test.rest)))
			assert.Contains(t, message, test.want)
			assert.Less(t, len(message), 10_000)
		})
	}
}

func TestReviewDoesNotSayWhetherAHiddenObjectExists(t *testing.T) {
	r := &readers{namespaces: []string{"infra"}}
	d := newTestServer(t, Options{Readers: r}, cluster)
	hidden := d.asked(t, policyReview(t, aboutRoute))
	absent := d.asked(t, policyReview(t, strings.ReplaceAll(aboutRoute, "toystore", "nostore")))
	assert.Equal(t, strings.ReplaceAll(jsonOf(t, hidden), "toystore", "nostore"), jsonOf(t, absent))
	assert.Equal(t, "HTTPRoute app/toystore not found, or you are not allowed to get it", said(t, hidden))
	require.Len(t, r.asked, 6, "all of the kind, those of the namespace, the object")
	kind, inNamespace := api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute"}, api.Ref{Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "app"}
	assert.Equal(t, []api.Ref{kind, inNamespace}, r.asked[:2])
	assert.Equal(t, r.asked[:2], r.asked[3:5], "the same question is asked in both cases")

	r.namespaces = []string{"app"}
	absent = d.asked(t, policyReview(t, strings.ReplaceAll(aboutRoute, "toystore", "nostore")))
	assert.Equal(t, "HTTPRoute app/nostore not found, or you are not allowed to get it", said(t, absent), "nor to those who are allowed to get it")
}

func TestReviewWithoutKnownRights(t *testing.T) {
	r := &readers{err: errors.New("marked cause")}
	d := newTestServer(t, Options{Readers: r}, cluster, gatewayAuth)
	a := d.asked(t, policyReview(t, aboutRoute))
	assert.Equal(t, rightsMessage, said(t, a))
	assert.EqualValues(t, http.StatusTooManyRequests, a.Result.Code, "the client retries")
	assert.Contains(t, d.log.String(), "marked cause")

	r.err, r.onAsked = nil, func() {
		if len(r.asked) > 2 && r.asked[len(r.asked)-1].Kind == "AuthPolicy" { // the object is known, the policies are not
			r.err = errors.New("marked cause")
		}
	}
	logged := strings.Count(d.log.String(), "marked cause")
	a = d.asked(t, policyReview(t, aboutRoute))
	assert.Equal(t, rightsMessage, said(t, a))
	assert.Equal(t, logged+1, strings.Count(d.log.String(), "marked cause"), "the cause is logged then, too")

	assert.Contains(t, said(t, newTestServer(t, Options{}, cluster).asked(t, policyReview(t, aboutRoute))), "not supported")
}

func TestReviewOfManyPathsIsLimitedInSize(t *testing.T) {
	d := newTestServer(t, Options{Readers: &readers{}, Timeout: webhookconfig.MaxTimeout}, strings.ReplaceAll(cluster, "namespace: infra", "namespace: app"), strings.ReplaceAll(gatewayAuth, "namespace: infra", "namespace: app"))
	for i := range 5000 { // of two rules each
		addObjects(t, d.opts.Store, strings.ReplaceAll(strings.ReplaceAll(route, "toystore", fmt.Sprintf("store-%d", i)), "namespace: infra", "namespace: app"))
	}
	ask := func(rest string) api.ReviewStatus {
		a := d.asked(t, policyReview(t, "spec:\n  object: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}\n"+rest))
		assert.Less(t, len(a.Patch), 1200<<10)
		return answered(t, a)
	}
	got := ask("")
	require.NotNil(t, got.Truncated)
	assert.Equal(t, 10002, len(got.Items)+got.Truncated.Items, "those of the route of the cluster included")
	assert.Equal(t, 10002, len(got.Explanations)+got.Truncated.Explanations)
	assert.Greater(t, len(got.Items), 100)
	assertNames(t, got.Truncated.Message, []string{"spec.policyKinds", "spec.rule", "spec.object.section", "spec.parts"})
	require.Len(t, got.Outcomes, 1)
	assert.Equal(t, 10002, got.Outcomes[0].Paths.Total, "sums are complete")

	got = ask("  maxPaths: 3\n  parts: [Items]\n")
	assert.Len(t, got.Items, 3)
	assert.Equal(t, &api.ReviewTruncation{Items: 9999, Message: got.Truncated.Message}, got.Truncated)
	assert.Empty(t, got.Explanations)
}

func TestReviewOfARequestIsLimitedInSize(t *testing.T) {
	d := newTestServer(t, Options{Readers: &readers{}}, cluster, gatewayAuth)
	for i := range 1000 {
		addObjects(t, d.opts.Store, strings.ReplaceAll(otherRoute, "secret-shop", fmt.Sprintf("store-%d", i)))
	}
	a := d.asked(t, policyReview(t, strings.TrimSuffix(aboutRoute, "}\n")+", request: {url: 'http://shop/toys/cars'}}\n"))
	got := answered(t, a)
	require.Len(t, got.Request.At, 1)
	assert.True(t, got.Request.At[0].Served)
	assert.Less(t, len(jsonOf(t, got.Request)), 65<<10)
	require.NotNil(t, got.Truncated)
	assert.Equal(t, 1001, len(got.Request.At[0].Candidates)+got.Truncated.Request, "that of the object included")
	assert.Greater(t, len(got.Request.At[0].Candidates), 100)
}

func TestReviewAsksTheAPIServerAboutAFewObjectsOnly(t *testing.T) {
	r := &readers{namespaces: []string{"app"}}
	d := newTestServer(t, Options{Readers: r}, cluster)
	for i := range maxReviewedObjects + 10 {
		addObjects(t, d.opts.Store, strings.ReplaceAll(gatewayAuth, "gw-auth", fmt.Sprintf("gw-%d", i)))
	}
	got := answered(t, d.asked(t, policyReview(t, aboutRoute)))
	named := slices.DeleteFunc(r.asked, func(ref api.Ref) bool { return ref.Name == "" })
	assert.Len(t, named, maxReviewedObjects-1, "besides the route, which is in a namespace of which all may be read")
	assert.Contains(t, got.Message, "256")
	assert.NotContains(t, jsonOf(t, got), "ours")
}

func TestReviewByAUserWithWideRightsIsNotLimited(t *testing.T) {
	for name, r := range map[string]*readers{"of the cluster": {}, "of the namespace": {namespaces: []string{"app", "infra"}}} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{Readers: r}, cluster)
			for i := range maxReviewedObjects + 10 {
				addObjects(t, d.opts.Store, strings.ReplaceAll(gatewayAuth, "gw-auth", fmt.Sprintf("gw-%d", i)))
			}
			got := answered(t, d.asked(t, policyReview(t, aboutRoute)))
			assert.Empty(t, got.Message)
			assert.False(t, got.Redacted)
			assert.Less(t, len(r.asked), 10, "not about each object")
		})
	}
}

func TestDenialsOfReviewsRecordNoEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(10)
	d := newTestServer(t, Options{Readers: &readers{}, Events: recorder}, cluster)
	r := policyReview(t, aboutRoute)
	r.DryRun = nil
	said(t, d.asked(t, r))
	assert.Empty(t, recorder.Events)
}

const otherRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: shop, name: secret-shop}
spec:
  parentRefs: [{namespace: infra, name: edge}]
  rules:
  - {name: hidden-rule, matches: [{path: {type: PathPrefix, value: /hidden}}]}
  - {name: longer, matches: [{path: {type: PathPrefix, value: /toys/cars}}]}
`

// The outcome of a hidden policy has the paths of the question alone: of one that is in
// effect on another section, it would say that it is on no path.
func TestReviewOfASectionHasNoOutcomeOfHiddenPoliciesOfOthers(t *testing.T) {
	about := strings.ReplaceAll(aboutRoute, "name: toystore}", "name: toystore, section: toys}, parts: [Outcomes]")
	of := func(section string) string {
		return strings.NewReplacer("name: toystore}", "name: toystore, sectionName: "+section+"}", "toystore-auth", "auth-"+section).
			Replace(routeAuth("rules: {authentication: {a: {b: 1}}}"))
	}
	for want, r := range map[string]*readers{"auth-toys": {except: "AuthPolicy"}, "auth-admin auth-toys": {}} {
		d := newTestServer(t, Options{Readers: r}, cluster, of("toys"), of("admin"))
		var names []string
		for _, o := range answered(t, d.asked(t, policyReview(t, about))).Outcomes {
			names = append(names, o.Policy.Name)
			assert.Equal(t, api.Enforced, o.State)
		}
		assert.Equal(t, want, strings.Join(names, " "))
	}
}

// The message names routes that send requests to a backend.
func TestReviewOfABackendDoesNotNameHiddenRoutes(t *testing.T) {
	const service = "apiVersion: v1\nkind: Service\nmetadata: {namespace: app, name: cart}\nspec: {ports: [{port: 80}]}\n"
	sending := strings.ReplaceAll(otherRoute, "  rules:\n", "  rules:\n  - {backendRefs: [{namespace: app, name: cart, port: 80}]}\n")
	own := strings.NewReplacer("namespace: shop", "namespace: app", "secret-shop", "own-shop").Replace(sending)
	for want, r := range map[string]*readers{"HTTPRoute app/own-shop": {namespaces: []string{"app"}}, "HTTPRoute app/own-shop, HTTPRoute shop/secret-shop": {}} {
		d := newTestServer(t, Options{Readers: r}, cluster, service, sending, own)
		got := answered(t, d.asked(t, policyReview(t, "spec: {object: {kind: Service, name: cart}, parts: [Reaches]}\n")))
		assert.True(t, strings.HasSuffix(got.Message, "specify one of its routes: "+want), got.Message)
	}
}

// A policy on the gateway of a route is named as one on its paths is, without a command that the
// reader is not allowed to run.
func TestReviewOfARouteNamesPoliciesWhosePathsEndAboveIt(t *testing.T) {
	const tls = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: ClientTrafficPolicy\nmetadata: {namespace: infra, name: tls}\nspec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, timeout: {tcp: {idleTimeout: SECRET}}}\n"
	d := newTestServer(t, Options{Readers: &readers{namespaces: []string{"app"}}}, cluster, tls)
	answer := d.asked(t, policyReview(t, aboutRoute))
	assert.Equal(t, "the requests of HTTPRoute app/toystore are also subject to policies on Gateway infra/edge, whose paths end above routes: ClientTrafficPolicy infra/tls", answered(t, answer).Message)
	assert.NotContains(t, string(answer.Patch), "SECRET")
}

func TestReviewOfARequest(t *testing.T) {
	ask := func(d *testServer, request string) api.ReviewStatus {
		return answered(t, d.asked(t, policyReview(t, strings.TrimSuffix(aboutRoute, "}\n")+", request: "+request+"}\n")))
	}
	t.Run("the rule of the object serves it", func(t *testing.T) {
		d := newTestServer(t, Options{Readers: &readers{namespaces: []string{"app"}}}, cluster, gatewayAuth, otherRoute)
		got := ask(d, "{url: 'http://shop/toys/x'}")
		require.NotNil(t, got.Request)
		assert.True(t, got.Request.Served)
		require.Len(t, got.Items, 1)
		assert.JSONEq(t, onRule, jsonOf(t, got.Items[0].Path))
		require.Len(t, got.Request.At, 1)
		assert.Len(t, got.Request.At[0].Candidates, 1)
		assert.NotContains(t, jsonOf(t, got), "secret-shop")
	})
	t.Run("a hidden route serves it", func(t *testing.T) {
		d := newTestServer(t, Options{Readers: &readers{namespaces: []string{"app"}}}, cluster, gatewayAuth, otherRoute)
		for _, path := range []string{"/hidden", "/toys/cars"} {
			got := ask(d, "{url: 'http://shop"+path+"'}")
			assert.Empty(t, got.Items)
			require.Len(t, got.Request.At, 1)
			assert.Contains(t, got.Request.At[0].Message, "not allowed to get")
			for _, secret := range []string{"secret-shop", "hidden-rule", "PathPrefix /hidden", "PathPrefix /toys/cars"} {
				assert.NotContains(t, jsonOf(t, got), secret)
			}
		}
	})
	t.Run("nothing serves it", func(t *testing.T) {
		d := newTestServer(t, Options{Readers: &readers{namespaces: []string{"app"}}}, cluster, gatewayAuth, otherRoute)
		got := ask(d, "{url: 'http://shop/nothing'}")
		assert.False(t, got.Request.Served)
		assert.NotContains(t, jsonOf(t, got), "secret-shop")
		assert.Contains(t, got.Request.At[0].Message, "HTTPRoute app/toystore")
	})
	t.Run("a gateway that has nothing to do with the object is hidden", func(t *testing.T) {
		other := strings.ReplaceAll(strings.Split(cluster, "\n---\n")[1], "edge", "secret-edge")
		d := newTestServer(t, Options{Readers: &readers{namespaces: []string{"app"}}}, cluster, other)
		assert.NotContains(t, jsonOf(t, ask(d, "{url: 'http://shop/toys'}")), "secret-edge")
		rest := strings.TrimSuffix(aboutRoute, "}\n") + ", request: {url: 'http://shop/toys', gateway: infra/%s}}\n"
		hidden := said(t, d.asked(t, policyReview(t, fmt.Sprintf(rest, "secret-edge"))))
		absent := said(t, d.asked(t, policyReview(t, fmt.Sprintf(rest, "absent"))))
		assert.Equal(t, strings.ReplaceAll(hidden, "secret-edge", "absent"), absent)
	})
	t.Run("the listeners of a hidden gateway are not listed", func(t *testing.T) {
		d := newTestServer(t, Options{Readers: &readers{namespaces: []string{"app"}}}, strings.ReplaceAll(cluster, "port: 80,", "port: 80, hostname: secret.example.com,"))
		got := ask(d, "{url: 'http://other.example.com/toys'}")
		require.Len(t, got.Request.At, 1)
		assert.NotContains(t, jsonOf(t, got), "secret.example.com")
		assert.Contains(t, got.Request.At[0].Message, "HTTPRoute app/toystore")
	})
	t.Run("with all rights the whole answer is shown", func(t *testing.T) {
		d := newTestServer(t, Options{Readers: &readers{}}, cluster, gatewayAuth, otherRoute)
		got := ask(d, "{url: 'http://shop/toys/cars', method: POST}")
		require.Len(t, got.Request.At, 1)
		assert.Equal(t, "secret-shop", got.Request.At[0].Path[4].Name)
		assert.Len(t, got.Request.At[0].Candidates, 2)
	})
}
