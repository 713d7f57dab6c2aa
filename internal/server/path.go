package server

import (
	"errors"
	"maps"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/webhook"
)

// pathSecret is the Secret that holds the tokens of the webhook path.
const pathSecret = "overrule-path"

// secretPath is what a caller has to know. Its zero value lets anybody call.
type secretPath struct {
	tokens webhook.Tokens
	source webhookconfig.TokenSource // for the configurations that the server writes
	feeder manager.Runnable
	check  healthz.Checker
	note   func() error
}

// newSecretPath returns that of the flags: tokens that the replicas share where
// they write the webhook configurations, and those of a file where others do.
func newSecretPath(client kubernetes.Interface, o options, log logr.Logger) (*secretPath, error) {
	switch {
	case o.manageWebhooks:
		shared, err := certs.NewPathTokens(certs.PathTokensOptions{
			Secrets: client.CoreV1(), Namespace: o.namespace, SecretName: pathSecret, Log: log,
		})
		if err != nil {
			return nil, err
		}
		return &secretPath{tokens: shared, source: shared, feeder: shared, check: shared.Healthy}, nil
	case o.pathTokens != "":
		file, err := certs.NewPathFile(certs.PathFileOptions{File: o.pathTokens, Log: log})
		if err != nil {
			return nil, err
		}
		return &secretPath{tokens: file, feeder: file, check: file.Healthy, note: file.Problem}, nil
	case o.clientCA == "":
		log.Info("anybody may call", "reason", errAnybody.Error())
		return &secretPath{note: func() error { return errAnybody }}, nil
	}
	return &secretPath{}, nil
}

// errAnybody is a note, not a fault.
var errAnybody = errors.New("anybody who reaches the webhook port can learn names and limits of policies: " +
	"give --path-token-file or --client-ca-file")

// guard has the server check the path.
func (p *secretPath) guard(server *httpsServer, health *health) {
	if p.feeder != nil {
		server.feeders = append(server.feeders, p.feeder)
	}
	if p.check != nil {
		health.checks["path"] = p.check
	}
	if p.note != nil {
		health.noteCallers(p.note)
	}
}

// noteCallers adds what somebody should look at of who may call.
func (h *health) noteCallers(note func() error) {
	notes := map[string]func() error{}
	maps.Copy(notes, h.notes) // they are an identity's
	if before := notes["callers"]; before != nil {
		notes["callers"] = func() error { return errors.Join(before(), note()) }
	} else {
		notes["callers"] = note
	}
	h.notes = notes
}
