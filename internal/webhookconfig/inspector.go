package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// Tokens verify the last element of paths: PathValidate + "/" + token.
type Tokens interface {
	// Accepts reports whether a token is valid. known is false as long as there is no
	// valid token at all.
	Accepts(token string) (ok, known bool)
}

// Inspector checks static webhook configurations, which users apply, and reports how they
// differ from what a Reconciler would write. It runs on every replica and writes nothing.
type Inspector struct {
	Client kubernetes.Interface
	// Configuration, Authority and PolicyResources are those of a Reconciler.
	Configuration   Configuration
	Authority       Authority
	PolicyResources func() (resources PolicyResources, known bool)
	// Tokens, if set, accept the last element of the paths.
	Tokens Tokens
	// Interval is the time between two checks.
	Interval time.Duration
	Log      logr.Logger

	mu      sync.Mutex
	problem error
}

// NeedLeaderElection runs the Inspector on every replica.
func (i *Inspector) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it checks until ctx ends.
func (i *Inspector) Start(ctx context.Context) error {
	ticker := time.NewTicker(i.Interval)
	defer ticker.Stop()
	for {
		changed := i.Authority.Changed()
		if err := i.check(ctx); ctx.Err() == nil && !errors.Is(err, errNotReady) {
			i.setProblem(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-ticker.C:
		}
	}
}

// Problem returns how the configurations differ from what they should be, nil if no
// difference is known.
func (i *Inspector) Problem() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.problem
}

func (i *Inspector) setProblem(problem error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if was := i.problem; problem != nil && (was == nil || was.Error() != problem.Error()) {
		i.Log.Error(problem, "webhook configurations are incorrect")
	} else if problem == nil && was != nil {
		i.Log.Info("webhook configurations are correct")
	}
	i.problem = problem
}

// check returns the differences of both configurations, or errNotReady before these can
// be known.
func (i *Inspector) check(ctx context.Context) error {
	c := i.Configuration
	resources, known := i.PolicyResources()
	if !known {
		return fmt.Errorf("policy kinds are not discovered: %w", errNotReady)
	}
	c.PolicyResources, c.CABundle = resources, i.Authority.CABundle()
	both, err := newConfigClients(i.Client, c)
	if err != nil {
		return err
	}
	var errs []error
	for _, config := range both {
		if err := i.checkConfig(ctx, config); err != nil {
			errs = append(errs, config.wrap(err))
		}
	}
	return errors.Join(errs...)
}

// checkConfig returns how a configuration falls short of the wanted one. It may have
// more: rules for kinds that this cluster does not have, additional CAs, and a
// failurePolicy of its own.
func (i *Inspector) checkConfig(ctx context.Context, config configClient) error {
	if err := config.read(ctx); err != nil {
		return err
	}
	if config.live == nil {
		return errors.New("not found, so no write is evaluated: apply it (docs/install.md, Static webhook configurations)")
	}
	live := slices.Clone(config.live.Webhooks)
	for k := range live {
		if at := slices.IndexFunc(config.want.Webhooks, func(w webhook) bool { return w.Name == live[k].Name }); at >= 0 {
			ignoreAllowed(&live[k], config.want.Webhooks[at])
			i.trimToken(&live[k])
		}
	}
	// A webhook without rules is not required.
	want := slices.DeleteFunc(slices.Clone(config.want.Webhooks), func(w webhook) bool { return len(w.Rules) == 0 })
	if found := differences(want, live, true); len(found) > 0 {
		return fmt.Errorf("%s: apply it again (docs/install.md, Static webhook configurations)", strings.Join(found, "; "))
	}
	return nil
}

// ignoreAllowed sets the fields of a webhook h that are allowed to differ to those of the
// wanted w.
func ignoreAllowed(h *webhook, w webhook) {
	if diffRules(w.Rules, h.Rules) == rulesDiffer {
		h.Rules = w.Rules
	}
	if containsCAs(h.ClientConfig.CABundle, w.ClientConfig.CABundle) {
		h.ClientConfig.CABundle = w.ClientConfig.CABundle
	}
	if w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Fail && w.Name != reviewWebhook {
		h.FailurePolicy = w.FailurePolicy
	}
	h.TimeoutSeconds = w.TimeoutSeconds
	for i, c := range w.MatchConditions {
		if (c.Name == conditionKnown || c.Name == conditionVersion) && i < len(h.MatchConditions) && h.MatchConditions[i].Name == c.Name && containsNames(h.MatchConditions[i].Expression, c.Expression) {
			h.MatchConditions = slices.Clone(h.MatchConditions)
			h.MatchConditions[i] = c
		}
	}
}

// trimToken removes a valid token from the path of a webhook. If there are tokens, a path
// without a valid one is removed.
func (i *Inspector) trimToken(h *webhook) {
	s := h.ClientConfig.Service
	if i.Tokens == nil || s == nil || s.Path == nil {
		return
	}
	trimmed := *s
	path, token := "", ""
	if last := strings.LastIndexByte(*s.Path, '/'); last > 0 {
		path, token = (*s.Path)[:last], (*s.Path)[last+1:]
	}
	if accepted, _ := i.Tokens.Accepts(token); accepted {
		trimmed.Path = &path
	} else {
		trimmed.Path = nil
	}
	h.ClientConfig.Service = &trimmed
}

// containsCAs reports whether a bundle has all the CAs of ours.
func containsCAs(bundle, ours []byte) bool {
	want, err := cert.ParseCertsPEM(ours)
	if err != nil {
		return false
	}
	have, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return false
	}
	for _, w := range want {
		if !slices.ContainsFunc(have, w.Equal) {
			return false
		}
	}
	return true
}

// containsNames reports whether an expression has all the string literals of another.
func containsNames(expression, other string) bool {
	for i, part := range strings.Split(other, "'") {
		if i%2 == 1 && !strings.Contains(expression, "'"+part+"'") {
			return false
		}
	}
	return true
}
