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

// outcome is what became of a write, as its writer was told.
type outcome int

const (
	// stored is a write that the API server took.
	stored outcome = iota
	// denied is one that Overrule judged and rejected.
	denied
	// undecided is one that Overrule wants to see again in a second (429).
	undecided
	// lost is one that nobody could judge: failurePolicy rejected it.
	lost
	// cut is one whose writer did not reach the API server, or whom the API
	// server turned away for a reason of its own, as one that starts or ends does.
	cut
)

// denialPrefix begins a denial of Overrule's.
const denialPrefix = `admission webhook "validate.overrule.dev" denied the request: `

// outcomeOf says what an error of the API server's means, and the code of a denial.
func outcomeOf(err error) (outcome, string) {
	if err == nil {
		return stored, ""
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return cut, err.Error()
	}
	message := status.Status().Message
	text, judged := strings.CutPrefix(message, denialPrefix)
	switch {
	case judged && status.Status().Code == http.StatusTooManyRequests:
		return undecided, text
	case judged:
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
		"not yet":            {says(429, denialPrefix+"overrule is judging"), undecided, "overrule is judging"},
		"nobody answers":     {says(500, `Internal error occurred: failed calling webhook "x"`), lost, `Internal error occurred: failed calling webhook "x"`},
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
