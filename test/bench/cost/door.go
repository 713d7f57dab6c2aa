package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/flight"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/webhook"
)

// door is the webhook's handler over a world, without a wire.
type door struct {
	*world
	http.Handler
}

func (w *world) door() *door {
	return &door{w, webhook.New(webhook.Options{
		Store: w.Store, Guard: &guard.Guard{Engine: effective.NewEngine(), Rights: owner{}},
		Flight: flight.New(w.Store, flight.Options{}), Enforcement: guard.EnforceDeny, Log: logr.Discard(),
	}).Handler()}
}

// owner may change overrides: whoever writes a gateway's policy mostly may.
type owner struct{}

func (owner) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return true, nil
}

func (owner) Check(api.Ref) string { return "" }

// update returns the AdmissionReview of an UPDATE, as the API server sends it.
func update(kind api.PolicyKind, namespace, name, is, was string) []byte {
	gvk := fmt.Sprintf(`{"group":"%s","version":"v1","kind":"%s"}`, kind.Group, kind.Kind)
	gvr := fmt.Sprintf(`{"group":"%s","version":"v1","resource":"%ss"}`, kind.Group, strings.ToLower(kind.Kind))
	return fmt.Appendf(nil, `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"%s","kind":%s,"resource":%s,`+
		`"requestKind":%[2]s,"requestResource":%[3]s,"name":"%s","namespace":"%s","operation":"UPDATE",`+
		`"userInfo":{"username":"alice","uid":"7","groups":["developers","system:authenticated"]},"object":%s,"oldObject":%s,"dryRun":false,`+
		`"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply"}}}`,
		uid, gvk, gvr, name, namespace, is, was)
}

// ask posts a review to a path, and fails unless it is allowed.
func (d *door) ask(path string, review []byte) error {
	r := httptest.NewRequest(http.MethodPost, path+"?timeout=3s", bytes.NewReader(review))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, r)
	if !bytes.Contains(answer.Body.Bytes(), []byte(`"allowed":true`)) {
		return fmt.Errorf("the write was not allowed: %s", answer.Body)
	}
	return nil
}

// write is the operation of a write that is judged, and seen in the watch before
// the next.
func (d *door) write(kind api.PolicyKind, namespace, name, is, was string) func() error {
	review := update(kind, namespace, name, is, was)
	seen := store.Seen{
		Ref: api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name},
		UID: uid, Version: "2",
	}
	return func() error {
		err := d.ask(webhook.PathValidate, review)
		d.Saw(seen)
		return err
	}
}
