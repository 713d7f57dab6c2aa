//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// writeInterval is the time between two writes of a writer: other tests need the CPU, too.
const writeInterval = 100 * time.Millisecond

// kubectlWriters write in a loop as kubectl does: the client retries after a 429.
// They repeat a write if the API server itself did not answer.
type kubectlWriters struct {
	end func()

	mu      sync.Mutex
	writes  int
	longest time.Duration
	lost    []string
}

func startKubectlWriters(t *testing.T, g testNamespaces, writers int) *kubectlWriters {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	w := &kubectlWriters{end: func() { cancel(); group.Wait() }}
	t.Cleanup(w.end)
	policies := unlimitedClient(t, g.c.Config).Resource(schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "ratelimitpolicies"}).Namespace(g.app)
	for i := range writers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				began := time.Now()
				err := persist(policies, g, fmt.Sprintf("stream-%d", i), n)
				w.record(time.Since(began), err)
				time.Sleep(writeInterval)
			}
		})
	}
	return w
}

// persist writes until the API server has answered.
func persist(policies dynamic.ResourceInterface, g testNamespaces, name string, n int) error {
	err := writeOne(policies, g, name, n)
	for range 600 {
		if err == nil || strings.Contains(err.Error(), "webhook") {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		err = writeOne(policies, g, name, n)
		if storedBefore(err) {
			return nil
		}
	}
	return err
}

// storedBefore reports whether a repeated write finds that it was stored before
// the connection was closed.
func storedBefore(err error) bool {
	var status apierrors.APIStatus
	named := errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
	return named && (apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err))
}

func (w *kubectlWriters) record(took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	w.longest = max(w.longest, took)
	if err != nil {
		w.lost = append(w.lost, err.Error())
	}
}

// take returns the number of writes, the time of the slowest one and the lost
// ones since the last call.
func (w *kubectlWriters) take() (writes int, longest time.Duration, lost []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	writes, longest, lost = w.writes, w.longest, w.lost
	w.writes, w.longest, w.lost = 0, 0, nil
	return writes, longest, lost
}
