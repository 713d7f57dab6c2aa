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

// Tokens know what a path has to end with: PathValidate + "/" + token.
type Tokens interface {
	// Accepts reports whether a token is good. known is false as long as no token is.
	Accepts(token string) (ok, known bool)
}

// Inspector looks after webhook configurations that somebody else keeps, and
// says in what they are not what a Registrar would write. It runs on every
// replica, and writes nothing.
type Inspector struct {
	Client kubernetes.Interface
	// Configuration, Authority and Judged are those of a Registrar.
	Configuration   Configuration
	Authority       Authority
	PolicyResources func() (judged PolicyResources, known bool)
	// Tokens, if set, are what paths have to end with.
	Tokens Tokens
	// Every is the time between two looks.
	Interval time.Duration
	Log      logr.Logger

	mu      sync.Mutex
	problem error
}

// NeedLeaderElection lets every replica look.
func (i *Inspector) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it looks until ctx ends.
func (i *Inspector) Start(ctx context.Context) error {
	ticker := time.NewTicker(i.Interval)
	defer ticker.Stop()
	for {
		renewed := i.Authority.Changed()
		if err := i.check(ctx); ctx.Err() == nil && !errors.Is(err, errNotReady) {
			i.setProblem(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-renewed:
		case <-ticker.C:
		}
	}
}

// Problem returns in what the configurations are not what they should be, nil
// for nothing that is known.
func (i *Inspector) Problem() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.problem
}

func (i *Inspector) setProblem(problem error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if was := i.problem; problem != nil && (was == nil || was.Error() != problem.Error()) {
		i.Log.Error(problem, "look at the webhook configurations")
	} else if problem == nil && was != nil {
		i.Log.Info("the webhook configurations are what they should be")
	}
	i.problem = problem
}

// inspect returns what is wrong, or errNotYet before that can be told.
func (i *Inspector) check(ctx context.Context) error {
	c := i.Configuration
	judged, known := i.PolicyResources()
	if !known {
		return fmt.Errorf("the policy kinds are not known: %w", errNotReady)
	}
	c.PolicyResources, c.CABundle = judged, i.Authority.CABundle()
	both, err := newConfigClients(i.Client, c)
	if err != nil {
		return err
	}
	var errs []error
	for _, d := range both {
		if err := i.checkConfig(ctx, d); err != nil {
			errs = append(errs, d.wrap(err))
		}
	}
	return errors.Join(errs...)
}

// drift returns in what a configuration falls short of what is wanted. It may
// hold more: rules for kinds that this cluster does not have, an authority that
// is another's, and a failurePolicy of its keeper's.
func (i *Inspector) checkConfig(ctx context.Context, d configClient) error {
	if err := d.read(ctx); err != nil {
		return err
	}
	if d.live == nil {
		return errors.New("it is not there, so nothing is judged: apply it (docs/install.md, Static webhook configurations)")
	}
	hooks := slices.Clone(d.live.Webhooks)
	for k := range hooks {
		if at := slices.IndexFunc(d.want.Webhooks, func(w webhook) bool { return w.Name == hooks[k].Name }); at >= 0 {
			ignoreAllowed(&hooks[k], d.want.Webhooks[at])
			i.trimToken(&hooks[k])
		}
	}
	// What is to be called for nothing is lacking nothing.
	want := slices.DeleteFunc(slices.Clone(d.want.Webhooks), func(w webhook) bool { return len(w.Rules) == 0 })
	if found := differences(want, hooks, true); len(found) > 0 {
		return fmt.Errorf("%s: apply it anew (docs/install.md, Static webhook configurations)", strings.Join(found, "; "))
	}
	return nil
}

// excuse makes equal what may differ.
func ignoreAllowed(h *webhook, w webhook) {
	if lacking := diffRules(w.Rules, h.Rules); lacking == rulesDiffer {
		h.Rules = w.Rules
	}
	if containsCAs(h.ClientConfig.CABundle, w.ClientConfig.CABundle) {
		h.ClientConfig.CABundle = w.ClientConfig.CABundle
	}
	if w.FailurePolicy != nil && *w.FailurePolicy == admissionregistrationv1.Fail {
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

// excusePath makes equal a path that the server takes: it ends with a token, if
// there are any.
func (i *Inspector) trimToken(h *webhook) {
	s := h.ClientConfig.Service
	if i.Tokens == nil || s == nil || s.Path == nil {
		return
	}
	short := *s
	path, token := "", ""
	if last := strings.LastIndexByte(*s.Path, '/'); last > 0 {
		path, token = (*s.Path)[:last], (*s.Path)[last+1:]
	}
	if accepted, _ := i.Tokens.Accepts(token); accepted {
		short.Path = &path
	} else {
		short.Path = nil
	}
	h.ClientConfig.Service = &short
}

// trusts reports whether a bundle has all the authorities of ours.
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

// namesAll reports whether an expression has all the texts of another in it.
func containsNames(expression, other string) bool {
	for i, part := range strings.Split(other, "'") {
		if i%2 == 1 && !strings.Contains(expression, "'"+part+"'") {
			return false
		}
	}
	return true
}
