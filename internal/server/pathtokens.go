package server

import (
	"errors"

	"github.com/go-logr/logr"

	"overrule.dev/overrule/certs"
)

// pathSecret is the Secret that holds the tokens of the webhook path.
const pathSecret = "overrule-path"

// errNoCallerAuth is a warning: the server works without caller authentication.
var errNoCallerAuth = errors.New("any client that reaches the webhook port can read names and limits of policies: " +
	"set --require-path-token or --client-ca-file")

// addPathTokens makes the server require a token in the path of a webhook call. Without
// tokens, it warns unless clients need a certificate.
func addPathTokens(server *httpsServer, probes *probeServer, tokens *certs.PathTokens, o options, log logr.Logger) {
	switch {
	case tokens != nil:
		server.runnables = append(server.runnables, tokens)
		probes.checks["path"] = tokens.Healthy
		probes.addWarning("callers", tokens.Problem)
	case o.clientCA == "":
		log.Info("webhook calls are not authenticated", "reason", errNoCallerAuth.Error())
		probes.addWarning("callers", func() error { return errNoCallerAuth })
	}
}
