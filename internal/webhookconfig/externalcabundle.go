package webhookconfig

import (
	"context"
	"fmt"
	"slices"
)

// keepCABundles adds the caBundles that we wrote to the wanted configuration, for the
// time until another client, which owns the caBundle now, has written its own.
//
// A bundle that the other client wrote is not among our applied fields, and so stays. One
// that we wrote has to be applied again until then: left out, it would be removed, and
// every call would fail meanwhile. The resourceVersion of the apply prevents that it
// overwrites theirs.
//
// A webhook that a new version of ours adds may be unknown to the other client: it gets
// the bundle of the first webhook, and follows that until they write to it, too.
func keepCABundles(config configClient) error {
	if config.live == nil {
		return nil
	}
	applied, err := config.live.applied()
	if err != nil {
		return err
	}
	first := bundleOf(config.live.Webhooks, config.want.Webhooks[0].Name)
	for i := range config.want.Webhooks {
		w := &config.want.Webhooks[i]
		exists := slices.ContainsFunc(config.live.Webhooks, func(h webhook) bool { return h.Name == w.Name })
		w.ClientConfig.CABundle = bundleOf(applied.Webhooks, w.Name)
		if len(first) > 0 && (!exists || len(w.ClientConfig.CABundle) > 0) {
			w.ClientConfig.CABundle = first
		}
	}
	return nil
}

// bundleOf returns the caBundle of the webhook of a name, nil for none.
func bundleOf(webhooks []webhook, name string) []byte {
	for _, h := range webhooks {
		if h.Name == name {
			return h.ClientConfig.CABundle
		}
	}
	return nil
}

// checkExternalCABundle returns an error if a caBundle that another client writes is
// empty: then the API server cannot verify the server, and every call fails.
func (r *Reconciler) checkExternalCABundle(ctx context.Context) error {
	if !r.externalCABundle() {
		return nil
	}
	both, err := readConfigs(ctx, r.Client, r.Configuration)
	if err != nil {
		return err
	}
	for _, config := range both {
		for _, h := range config.webhooks() {
			if len(h.ClientConfig.CABundle) == 0 {
				return config.wrap(fmt.Errorf("caBundle of %s is empty, so calls to it fail: %s", h.Name, r.EmptyBundleAdvice))
			}
		}
	}
	return nil
}
