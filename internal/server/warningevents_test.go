package server

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// eventLog records Events.
type eventLog struct{ lines []string }

func (d *eventLog) Eventf(about, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	on := about.(*corev1.ObjectReference)
	d.lines = append(d.lines, fmt.Sprintf("%s %s/%s: %s %s %s: "+note, append([]any{on.Kind, on.Namespace, on.Name, eventtype, reason, action}, args...)...))
}

func TestLastingWarningIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		between := func(from, to time.Duration) func() error {
			return func() error {
				if at := time.Since(began); at >= from && at < to {
					return errors.New("it ends in " + (to - at).String())
				}
				return nil
			}
		}
		twice := between(0, 100*time.Second)
		again := between(200*time.Second, time.Hour)
		d := &eventLog{}
		reported := newWarningEvents(map[string]func() error{
			"certificate": func() error { return errors.Join(twice(), again()) },
			"webhooks":    between(0, 40*time.Second), // only at startup
			"callers":     between(0, 0),
		}, "infra", d)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		assert.NoError(t, reported.Start(ctx))
		on := "Pod infra/" + hostname() + ": Warning CertificateWarning Check: "
		assert.Equal(t, []string{on + "it ends in 40s", on + "it ends in 56m0s"}, d.lines)
	})
}
