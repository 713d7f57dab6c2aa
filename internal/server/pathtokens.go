package server

import (
	"errors"
	"maps"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/webhook"
)

// pathSecret is the Secret that holds the tokens of the webhook path.
const pathSecret = "overrule-path"

// secretPath is what a caller has to know. Its zero value lets anybody call.
type pathTokens struct {
	tokens   webhook.Tokens
	source   webhook.TokenSource // for the configurations that the server writes
	runnable manager.Runnable
	healthy  healthz.Checker
	warning  func() error
}

// newSecretPath returns that of the flags: tokens that the replicas share where
// they write the webhook configurations, and those of a file where others do.
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
		log.Info("anybody may call", "reason", errNoCallerAuth.Error())
		return &pathTokens{warning: func() error { return errNoCallerAuth }}, nil
	}
	return &pathTokens{}, nil
}

// errAnybody is a note, not a fault.
var errNoCallerAuth = errors.New("anybody who reaches the webhook port can learn names and limits of policies: " +
	"give --path-token-file or --client-ca-file")

// guard has the server check the path.
func (p *pathTokens) protect(server *httpsServer, health *probeServer) {
	if p.runnable != nil {
		server.runnables = append(server.runnables, p.runnable)
	}
	if p.healthy != nil {
		health.checks["path"] = p.healthy
	}
	if p.warning != nil {
		health.addCallerWarning(p.warning)
	}
}

// noteCallers adds what somebody should look at of who may call.
func (h *probeServer) addCallerWarning(note func() error) {
	notes := map[string]func() error{}
	maps.Copy(notes, h.warnings) // they are an identity's
	if before := notes["callers"]; before != nil {
		notes["callers"] = func() error { return errors.Join(before(), note()) }
	} else {
		notes["callers"] = note
	}
	h.warnings = notes
}
