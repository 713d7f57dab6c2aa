//go:build soak

package soak

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
)

var (
	limitPolicies = schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "ratelimitpolicies"}
	authPolicies  = schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "authpolicies"}
	routes        = schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}
)

// write is one write of a writer, and the reason code of its denial, "" if it
// must be stored. It may be repeated.
type write struct {
	what string
	want api.ReasonCode
	send func(context.Context, dynamic.Interface) error
}

func create(r schema.GroupVersionResource, manifest string, want api.ReasonCode) write {
	return write{"create " + r.Resource, want, func(ctx context.Context, c dynamic.Interface) error {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			return err
		}
		_, err := c.Resource(r).Namespace(object.GetNamespace()).Create(ctx, &object, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // it was stored before the connection was closed
		}
		return err
	}}
}

func patch(r schema.GroupVersionResource, namespace, name, with string, want api.ReasonCode) write {
	return write{"patch " + r.Resource + " with " + with, want, func(ctx context.Context, c dynamic.Interface) error {
		_, err := c.Resource(r).Namespace(namespace).Patch(ctx, name, types.MergePatchType, []byte(with), metav1.PatchOptions{})
		return err
	}}
}

func remove(r schema.GroupVersionResource, namespace, name string, want api.ReasonCode) write {
	return write{"delete " + r.Resource, want, func(ctx context.Context, c dynamic.Interface) error {
		err := c.Resource(r).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) && named(err) {
			return nil // as above
		}
		return err
	}}
}

// named reports whether an error is about an object: an API server that starts
// returns 404 for resources, too.
func named(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
}

// The kinds of writers: the writes that each of them repeats.

func limitsOf(w tenant) []write {
	rate := func(limit string) string {
		return `{"spec":{"limits":{"login":{"rates":[{"limit":` + limit + `,"window":"10s"}]}}}}`
	}
	return []write{
		create(limitPolicies, w.limits("20"), ""),
		patch(limitPolicies, w.app, "limits", rate("30"), ""),
		patch(limitPolicies, w.app, "limits", rate("100"), api.ReasonConstraintViolated),
		remove(limitPolicies, w.app, "limits", ""),
		create(limitPolicies, w.limits("100"), api.ReasonConstraintViolated),
	}
}

func authOf(w tenant) []write {
	return []write{
		create(authPolicies, w.expand(routeAuth), ""),
		patch(authPolicies, w.app, "auth", `{"spec":{"unset":["rules.authentication"]}}`, api.ReasonUnsetOverride),
		patch(authPolicies, w.app, "auth", `{"spec":{"rules":{"authorization":{"more":{}}}}}`, ""),
		patch(authPolicies, w.app, "auth", `{"spec":{"rules":{"authentication":{"guest":{}}}}}`, api.ReasonOverrideWeakened),
		remove(authPolicies, w.app, "auth", ""),
		create(authPolicies, w.expand(unsettingAuth), api.ReasonUnsetOverride),
	}
}

func routesOf(w tenant) []write {
	return []write{
		create(routes, w.expand(cart, "GATEWAY", "edge"), ""),
		patch(routes, w.app, "cart", `{"spec":{"hostnames":["cart.example.com"]}}`, ""),
		patch(routes, w.app, "cart", w.expand(`{"spec":{"parentRefs":[{"namespace":"INFRA","name":"edge"},{"namespace":"INFRA","name":"public"}]}}`), api.ReasonRequirementUnmet),
		remove(routes, w.app, "cart", ""),
		create(routes, w.expand(cart, "GATEWAY", "public"), api.ReasonRequirementUnmet),
	}
}

func platformOf(w tenant) []write {
	label := func(value string) string { return `{"metadata":{"labels":{"soak":"` + value + `"}}}` }
	return []write{
		remove(authPolicies, w.infra, "gw-auth", api.ReasonOverrideRemoved),
		patch(authPolicies, w.infra, "gw-auth", label("a"), ""),
		patch(authPolicies, w.infra, "gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":{"issuer":"mine"}}}}}}`, api.ReasonOverrideRemoved),
		patch(authPolicies, w.infra, "gw-auth", label("b"), ""),
		patch(routes, w.app, "toystore", w.expand(`{"spec":{"parentRefs":[{"namespace":"INFRA","name":"public"}]}}`), api.ReasonOverrideEvaded),
	}
}

// writerKinds are the writers of a stream, each with its own tenant.
var writerKinds = []func(tenant) []write{limitsOf, limitsOf, authOf, authOf, routesOf, routesOf, platformOf, platformOf}

// client returns a client without rate limit and retries: each response of the
// API server is counted.
func client(t *testing.T, u *env.User) dynamic.Interface {
	t.Helper()
	config := rest.CopyConfig(u.Config)
	config.RateLimiter = flowcontrol.NewFakeAlwaysRateLimiter()
	config.Timeout = 20 * time.Second
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRetry{next} })
	c, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return c
}

// noRetry removes the header that makes client-go retry a request.
type noRetry struct{ next http.RoundTripper }

func (o noRetry) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}
