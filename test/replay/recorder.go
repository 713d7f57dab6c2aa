package replay

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/uuid"

	"overrule.dev/overrule/test/env"
)

// Recorder records what an API server stores.
type Recorder struct {
	etcd    etcd
	end     string // the key whose write ends the recording
	content []keyValue
	// changes are complete, unless err is set, once done is closed.
	changes []change
	err     error
	done    chan struct{}
}

// Record begins to record all writes of a control plane. Writes before it are not
// replayed: the objects are the initial state. It fails the test if etcd cannot be
// read. The recording ends with the test, or with the first call of a method.
func Record(t testing.TB, plane *env.Env) *Recorder {
	t.Helper()
	r := &Recorder{etcd: etcd{plane.Etcd()}, end: "overrule.dev/end-of-recording/" + string(uuid.NewUUID()), done: make(chan struct{})}
	var revision int64
	var err error
	r.content, revision, err = r.etcd.list(t.Context())
	require.NoError(t, err)
	go r.watch(t.Context(), revision+1)
	return r
}

// watch records until the key end is written. A watch delivers writes in the order of
// their revisions: then all writes before it were recorded.
func (r *Recorder) watch(ctx context.Context, from int64) {
	defer close(r.done)
	r.err = r.etcd.watch(ctx, from, func(c change) bool {
		if string(c.KeyValue.Key) == r.end {
			return false
		}
		if isRecorded(c.KeyValue.Key) {
			r.changes = append(r.changes, c)
		}
		return true
	})
}

// History ends the recording, if it has not ended, and returns it. The error is ErrGap
// if a write may be missing.
func (r *Recorder) History(ctx context.Context) (*History, error) {
	select {
	case <-r.done:
	default:
		if _, err := r.etcd.put(ctx, r.end); err != nil {
			return nil, err
		}
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.err != nil {
		return nil, r.err
	}
	return newHistory(r.content, r.changes)
}

// Check ends the recording and replays it.
func (r *Recorder) Check(ctx context.Context) (*Report, error) {
	h, err := r.History(ctx)
	if err != nil {
		return nil, err
	}
	return Replay(ctx, h)
}

// maxShown is the number of findings that a failed test shows.
const maxShown = 20

// RequireSound ends the recording, replays it, and fails the test for each finding.
func (r *Recorder) RequireSound(t testing.TB) {
	t.Helper()
	report, err := r.Check(t.Context())
	require.NoError(t, err)
	t.Log(report)
	for i, f := range report.Findings {
		if i == maxShown {
			break
		}
		assert.Fail(t, "a stored write would have been denied", f.String())
	}
}
