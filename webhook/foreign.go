package webhook

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
func carry(d desk) error {
	if d.there == nil {
		return nil
	}
	ours, err := d.there.ours()
	if err != nil {
		return err
	}
	for _, h := range ours.Hooks {
		if at := slices.IndexFunc(d.want.Hooks, func(w hook) bool { return w.Name == h.Name }); at >= 0 {
			d.want.Hooks[at].ClientConfig.CABundle = h.ClientConfig.CABundle
		}
	}
	return nil
}

// untrusted tells that a caBundle is empty which is another's to write: then the
// API server can verify nobody, and every call fails.
func (r *Registrar) untrusted(ctx context.Context) error {
	if !r.foreign() {
		return nil
	}
	both, err := lookAt(ctx, r.Client, r.Configuration)
	if err != nil {
		return err
	}
	for _, d := range both {
		for _, h := range d.hooks() {
			if len(h.ClientConfig.CABundle) == 0 {
				return d.failed(fmt.Errorf("caBundle of %s is empty, so calls of it fail: %s", h.Name, r.Untrusted))
			}
		}
	}
	return nil
}
