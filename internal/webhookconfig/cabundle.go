package webhookconfig

import (
	"context"
	"fmt"
	"slices"
)

// carry has the bundles that we wrote written again, where a caBundle is
// another's to write by now.
//
// One that they wrote is not in what we apply, and so stays. One that we wrote
// has to be applied again until they have: left out, it would be taken away, and
// every call fail meanwhile. The resourceVersion of an apply keeps us from putting
// it back over theirs.
//
// A webhook that a version of ours adds is one that they may not know of: it gets
// what they wrote to the first, and follows that until they write to it, too.
func keepCABundles(d configClient) error {
	if d.live == nil {
		return nil
	}
	ours, err := d.live.applied()
	if err != nil {
		return err
	}
	first := bundleOf(d.live.Webhooks, d.want.Webhooks[0].Name)
	for i := range d.want.Webhooks {
		w := &d.want.Webhooks[i]
		isThere := slices.ContainsFunc(d.live.Webhooks, func(h webhook) bool { return h.Name == w.Name })
		w.ClientConfig.CABundle = bundleOf(ours.Webhooks, w.Name)
		if len(first) > 0 && (!isThere || len(w.ClientConfig.CABundle) > 0) {
			w.ClientConfig.CABundle = first
		}
	}
	return nil
}

// bundleOf is the caBundle of the webhook of a name, nil for none.
func bundleOf(hooks []webhook, name string) []byte {
	for _, h := range hooks {
		if h.Name == name {
			return h.ClientConfig.CABundle
		}
	}
	return nil
}

// untrusted tells that a caBundle is empty which is another's to write: then the
// API server can verify nobody, and every call fails.
func (r *Reconciler) checkExternalCABundle(ctx context.Context) error {
	if !r.externalCABundle() {
		return nil
	}
	both, err := readConfigs(ctx, r.Client, r.Configuration)
	if err != nil {
		return err
	}
	for _, d := range both {
		for _, h := range d.webhooks() {
			if len(h.ClientConfig.CABundle) == 0 {
				return d.wrap(fmt.Errorf("caBundle of %s is empty, so calls of it fail: %s", h.Name, r.EmptyBundleAdvice))
			}
		}
	}
	return nil
}
