package server

import (
	"errors"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/webhook"
)

// pathSecret is the Secret that holds the tokens of the webhook path.
const pathSecret = "overrule-path"

// pathTokens are the tokens that the path of a webhook call must end with. The
// zero value accepts every path.
type pathTokens struct {
	tokens   webhook.Tokens
	source   webhook.TokenSource // for the configurations that the server writes
	runnable manager.Runnable
	healthy  healthz.Checker
	warning  func() error
}

// newPathTokens returns tokens that the replicas share in a Secret if they write the
// webhook configurations, else those of --path-token-file, if set.
func newPathTokens(client kubernetes.Interface, o options, log logr.Logger) (*pathTokens, error) {
	switch {
	case o.manageWebhooks:
		shared, err := certs.NewPathTokens(certs.PathTokensOptions{
			Secrets: client.CoreV1(), Namespace: o.namespace, SecretName: pathSecret, Log: log,
		})
		if err != nil {
			return nil, err
		}
		return &pathTokens{tokens: shared, source: shared, runnable: shared, healthy: shared.Healthy}, nil
	case o.pathTokens != "":
		file, err := certs.NewPathTokenFile(certs.PathTokenFileOptions{File: o.pathTokens, Log: log})
		if err != nil {
			return nil, err
		}
		return &pathTokens{tokens: file, runnable: file, healthy: file.Healthy, warning: file.Problem}, nil
	case o.clientCA == "":
		log.Info("webhook calls are not authenticated", "reason", errNoCallerAuth.Error())
		return &pathTokens{warning: func() error { return errNoCallerAuth }}, nil
	}
	return &pathTokens{}, nil
}

// errNoCallerAuth is a warning: the server works without caller authentication.
var errNoCallerAuth = errors.New("any client that reaches the webhook port can read names and limits of policies: " +
	"set --path-token-file or --client-ca-file")

// protect adds the tokens to the server and its probes.
func (p *pathTokens) protect(server *httpsServer, probes *probeServer) {
	if p.runnable != nil {
		server.runnables = append(server.runnables, p.runnable)
	}
	if p.healthy != nil {
		probes.checks["path"] = p.healthy
	}
	if p.warning != nil {
		probes.addCallerWarning(p.warning)
	}
}
