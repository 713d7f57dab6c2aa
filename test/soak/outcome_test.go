//go:build soak

package soak

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// outcome is the result of a write for its writer.
type outcome int

const (
	// stored is a write that the API server stored.
	stored outcome = iota
	// denied is a write that Overrule evaluated and denied.
	denied
	// undecided is a write that Overrule asked to retry (429).
	undecided
	// lost is a write that no server evaluated: failurePolicy rejected it.
	lost
	// cut is a write that did not reach the API server, or that the API server
	// itself rejected, for example while it starts or stops.
	cut
)

// noLeader is the message to a write for which no replica was the leader in time.
const noLeader = "no replica of overrule evaluates writes"

// denialPrefix is the prefix of Overrule's denials.
const denialPrefix = `admission webhook "validate.overrule.dev" denied the request: `

// outcomeOf returns the outcome of an error of the API server, and the reason
// code of a denial.
func outcomeOf(err error) (outcome, string) {
	if err == nil {
		return stored, ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return cut, err.Error()
	}
	message := status.Status().Message
	text, ours := strings.CutPrefix(message, denialPrefix)
	switch {
	case ours && status.Status().Code == http.StatusTooManyRequests:
		return undecided, text
	case ours:
		code, _, _ := strings.Cut(text, ":")
		return denied, code
	case strings.Contains(message, "failed calling webhook"):
		return lost, message
	default:
		return cut, message
	}
}

func TestOutcomeOf(t *testing.T) {
	says := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	for name, c := range map[string]struct {
		err  error
		want outcome
		code string
	}{
		"none":               {nil, stored, ""},
		"a denial":           {says(403, denialPrefix+"UnsetOverride: unset a has no effect"), denied, "UnsetOverride"},
		"not yet":            {says(429, denialPrefix+"too many concurrent"), undecided, "too many concurrent"},
		"no server answers":  {says(500, `Internal error occurred: failed calling webhook "x"`), lost, `Internal error occurred: failed calling webhook "x"`},
		"the server starts":  {says(503, "apiserver not ready"), cut, "apiserver not ready"},
		"no connection":      {errors.New("connection refused"), cut, "connection refused"},
		"another's denial":   {says(403, "forbidden: not yet ready to handle request"), cut, "forbidden: not yet ready to handle request"},
		"a client's timeout": {apierrors.NewTimeoutError("timed out", 1), cut, "Timeout: timed out"},
	} {
		t.Run(name, func(t *testing.T) {
			got, code := outcomeOf(c.err)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.code, code)
		})
	}
}
