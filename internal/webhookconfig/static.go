package webhookconfig

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/cert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// checkStatic returns what static configurations lack, which users apply.
func (r *Reconciler) checkStatic(ctx context.Context, c Configuration) error {
	both, err := readBoth(ctx, r.Client, c)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range both {
		if lacks := one.lacks(); len(lacks) > 0 {
			errs = append(errs, one.wrap(fmt.Errorf("%s: apply it again (docs/install.md, Static webhook configurations)", strings.Join(lacks, "; "))))
		}
	}
	return errors.Join(errs...)
}

// lacks describes what the existing configuration lacks. It may have more: rules for kinds
// that this cluster does not have, and additional CAs.
func (r *registration) lacks() []string {
	if r.live == nil {
		return []string{"not found, so no write is evaluated"}
	}
	var out []string
	for _, w := range r.want.Webhooks {
		h := r.live.webhook(w.Name)
		switch {
		case len(w.Rules) == 0: // not required
		case h == nil:
			out = append(out, w.Name+" is missing")
		default:
			if missing := uncovered(w.Rules, h.Rules); missing != "" {
				out = append(out, w.Name+": rules do not cover "+missing)
			}
			if !containsCAs(h.ClientConfig.CABundle, w.ClientConfig.CABundle) {
				out = append(out, w.Name+": caBundle lacks the CA of the server")
			}
		}
	}
	return out
}

// uncovered names the resources that rules do not cover, each with its operation, "" for
// none: writes of these are not evaluated.
func uncovered(want, live []admissionregistrationv1.RuleWithOperations) string {
	missing := sets.List(coverage(want).Difference(coverage(live)))
	const maxNamed = 5
	return strings.Join(missing[:min(len(missing), maxNamed)], ", ") + api.More(", and ", len(missing)-maxNamed, "")
}

// coverage returns what rules of ours cover: "CREATE httproutes.gateway.networking.k8s.io".
func coverage(rules []admissionregistrationv1.RuleWithOperations) sets.Set[string] {
	out := sets.New[string]()
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, operation := range rule.Operations {
					out.Insert(strings.TrimSuffix(string(operation)+" "+resource+"."+group, "."))
				}
			}
		}
	}
	return out
}

// containsCAs reports whether a bundle has all the CAs of ours, which may be empty.
func containsCAs(bundle, ours []byte) bool {
	if len(ours) == 0 {
		return len(bundle) > 0
	}
	want, err := cert.ParseCertsPEM(ours)
	if err != nil {
		return false
	}
	have, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(want, func(w *x509.Certificate) bool { return !slices.ContainsFunc(have, w.Equal) })
}
