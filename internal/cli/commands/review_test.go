package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/webhook"
)

// allRights allows everyone to get everything.
type allRights struct{}

func (allRights) MayGet(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return true, nil
}

// webhookOf returns a server that holds the objects of a view.
func webhookOf(v *snapshot.View) http.Handler {
	store := snapshot.New()
	for _, k := range v.Kinds() {
		store.AddKind(k)
		store.KindListed(k.Ref())
		for p := range v.Policies(k.Ref()) {
			store.Apply(snapshot.Put(p))
		}
	}
	for _, kind := range hierarchyKinds() {
		for o := range v.Objects(kind) {
			store.Apply(snapshot.Put(o))
		}
	}
	return webhook.New(webhook.Options{Store: store, Guard: &guard.Guard{Engine: effective.NewEngine()}, Readers: allRights{}}).Handler()
}

// answered returns the answer of a webhook to a review.
func answered(t *testing.T, h http.Handler, namespace string, spec api.ReviewSpec) api.ReviewStatus {
	t.Helper()
	object, err := json.Marshal(map[string]any{"apiVersion": api.APIVersion, "kind": api.KindEffectivePolicyReview, "spec": spec})
	require.NoError(t, err)
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Operation: admissionv1.Create, Namespace: namespace, DryRun: new(true), Object: runtime.RawExtension{Raw: object},
			Kind: metav1.GroupVersionKind{Group: api.Group, Version: "v1alpha1", Kind: api.KindEffectivePolicyReview},
		},
	})
	require.NoError(t, err)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, webhook.PathReview, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	answer := decode[admissionv1.AdmissionReview](t, w.Body.String())
	require.True(t, answer.Response.Allowed, "%v", answer.Response.Result)
	patch := decode[[]struct {
		Op, Path string
		Value    api.ReviewStatus
	}](t, string(answer.Response.Patch))
	return patch[0].Value
}

// reviewable returns the objects of a view that a review can be about.
func reviewable(v *snapshot.View) []api.Ref {
	var out []api.Ref
	for _, kind := range hierarchyKinds() {
		if gateway.ClusterScoped(kind) {
			continue
		}
		for o := range v.Objects(kind) {
			out = append(out, o.Ref())
		}
	}
	for _, k := range v.Kinds() {
		for p := range v.Policies(k.Ref()) {
			if p.Namespace != "" {
				out = append(out, p.Ref())
			}
		}
	}
	return out
}

// The plugin and the webhook give the same answers to one who is allowed to read all.
func TestReviewsAnswerAsThePluginDoes(t *testing.T) {
	questions := 0
	for _, files := range [][]string{
		{"-f", "testdata/shapes.yaml"}, {"-f", "testdata/losses.yaml"}, {"-f", "testdata/limits"}, {"-f", contract}, gep713("2"), gep713("3"),
	} {
		var paths []string
		for i := 1; i < len(files); i += 2 {
			paths = append(paths, files[i])
		}
		a := &app{IOStreams: genericiooptions.NewTestIOStreamsDiscard()}
		a.root() // sets the flags
		s, err := a.loadSource(t.Context(), paths)
		require.NoError(t, err)
		h := webhookOf(s.view)
		for _, ref := range reviewable(s.view) {
			got := answered(t, h, ref.Namespace, api.ReviewSpec{
				Object: api.ReviewObject{Group: ref.Group, Kind: ref.Kind, Name: ref.Name},
				Parts:  []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations, api.ReviewReaches},
			})
			assert.False(t, got.Redacted)
			require.Nil(t, got.Truncated)
			name := strings.ToLower(ref.PolicyKind().String()) + "/" + ref.Name
			ask := func(args ...string) string {
				out := run(t, "", append(append(args, "-n", ref.Namespace, "-o", "json", name), files...)...)
				require.Equal(t, exitOK, out.code, "%s: %s", name, out.stderr)
				return out.stdout
			}
			list := decode[api.EffectivePolicyList](t, ask("effective"))
			sameJSON(t, list.Items, got.Items, name)
			sameJSON(t, list.Outcomes, got.Outcomes, name)
			sameJSON(t, decode[api.ExplanationList](t, ask("explain")).Items, got.Explanations, name)
			reach := []string{"reach"}
			if s.kinds.Of(ref.PolicyKind()) == nil {
				reach = append(reach, "--affecting")
			}
			sameJSON(t, decode[api.ReachList](t, ask(reach...)).Items, got.Reaches, name)
			questions++
		}
	}
	assert.Greater(t, questions, 40)
}

// sameJSON compares lists by their JSON; an absent list is an empty one.
func sameJSON[T any](t *testing.T, want, got []T, about string) {
	t.Helper()
	data := func(list []T) string {
		out, err := json.Marshal(append([]T{}, list...))
		require.NoError(t, err)
		return string(out)
	}
	assert.JSONEq(t, data(want), data(got), about)
}
