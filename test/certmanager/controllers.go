// Package certmanager runs cert-manager's real controllers and its cainjector in
// this process, on a test control plane. It is a separate module, so that
// Overrule does not depend on cert-manager.
package certmanager

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cert-manager/cert-manager/pkg/controller"
	crapprover "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	crca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	crselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // the issuer that signs with a Secret's key
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // the issuer that signs with the key itself
	"golang.org/x/sync/errgroup"

	"overrule.dev/overrule/test/env"
)

// module also contains the CRDs.
const module = "github.com/cert-manager/cert-manager"

// workers is the number of concurrent workers of each controller.
const workers = 2

// ErrUnknown means that cert-manager has no controller of that name.
var ErrUnknown = errors.New("cert-manager has no such controller")

// enabled are the controllers for an Issuer and a Certificate. ACME, Vault,
// Ingress and the others are disabled.
var enabled = []string{
	issuers.ControllerName,
	trigger.ControllerName,
	keymanager.ControllerName,
	requestmanager.ControllerName,
	issuing.ControllerName,
	readiness.ControllerName,
	revisionmanager.ControllerName,
	crapprover.ControllerName,
	crca.CRControllerName,
	crselfsigned.CRControllerName,
}

// Controllers are cert-manager's running controllers.
type Controllers struct {
	cancel context.CancelFunc
	group  *errgroup.Group
}

// Boot installs cert-manager's CRDs and starts its controllers and its cainjector
// as cluster admin; the caller calls Stop.
func Boot(ctx context.Context, e *env.Env) (*Controllers, error) {
	dir, err := env.ModuleFolder(ctx, module)
	if err != nil {
		return nil, err
	}
	if err := e.InstallCRDs(filepath.Join(dir, "deploy", "crds")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	c := &Controllers{cancel: cancel, group: group}
	if err := errors.Join(c.startIssuing(ctx, e, enabled), c.startInjecting(ctx, e.Config)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Stop stops what Boot started. It returns the first error with which a part of
// it ended before.
func (c *Controllers) Stop() error {
	c.cancel()
	return c.group.Wait()
}

// startIssuing starts the named controllers.
func (c *Controllers) startIssuing(ctx context.Context, e *env.Env, names []string) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    e.Kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
	})
	if err != nil {
		return fmt.Errorf("prepare cert-manager's controllers: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("prepare cert-manager's controllers: %w", err)
	}
	for _, name := range names {
		construct, known := controller.Known()[name]
		if !known {
			return fmt.Errorf("start %s: %w", name, ErrUnknown)
		}
		made, err := construct(factory)
		if err != nil {
			return fmt.Errorf("start cert-manager's controller %s: %w", name, err)
		}
		c.run(ctx, name, func(ctx context.Context) error { return made.Run(workers, ctx) })
	}
	// Informers start last: each controller has requested its own.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}

// run runs a part of cert-manager until Stop. Errors after Stop are ignored.
func (c *Controllers) run(ctx context.Context, name string, run func(context.Context) error) {
	c.group.Go(func() error {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("cert-manager's %s stopped: %w", name, err)
		}
		return nil
	})
}
