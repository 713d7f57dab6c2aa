package cache

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// The handler that is left out waits for a time since the last error, which may be one of another
// clock: of a test outside of a bubble.
func init() { utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] }

// Storage that was restored to an earlier state sends nothing to a watch that continues at a
// later one.
func TestRestoredStorageIsRelisted(t *testing.T) {
	for name, c := range map[string]struct {
		breaks bool
		after  time.Duration
	}{
		"when a watch is reopened": {true, 0},
		"beside an open watch":     {false, storageCheckInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, lines := newLogBuffer()
				s := &fakeAPI{watched: make(chan *watch.FakeWatcher)}
				s.answer(nil, *httpRoute("a"))
				w := watcherOf(s, log)
				during(t, w, func() {
					first := <-s.watched
					first.Add(routeAt("b", 9))
					synctest.Wait()
					require.Equal(t, uint64(9), w.definitions.health.reachedVersion())
					w.store.Reached("9")

					s.mu.Lock()
					s.version = "8"
					s.mu.Unlock()
					s.answer(nil, *httpRoute("c"))
					if c.breaks {
						first.Stop()
					}
					time.Sleep(c.after)
					synctest.Wait()
					var restored *RestoredError
					require.ErrorAs(t, w.StaleError(), &restored, "nothing is evaluated until all is listed again")
					assert.Equal(t, RestoredError{Source: "httproutes", Stored: 8, Reached: 9}, *restored)
					assert.True(t, first.IsStopped())

					<-s.watched
					time.Sleep(checkInterval)
					synctest.Wait()
					require.NoError(t, w.StaleError())
					assert.Equal(t, map[string][]string{"app/c": nil}, storedRoutes(w.store))
					assert.Equal(t, uint64(8), w.definitions.health.reachedVersion())
					v, _ := w.store.View()
					assert.Equal(t, uint64(8), v.Version(), "what was reached before is forgotten")
					assert.Equal(t, uint64(1), w.Restores())
					time.Sleep(2 * storageCheckInterval)
					assert.Equal(t, uint64(1), w.Restores())
					assert.Equal(t, uint64(2), w.definitions.health.get().Lists)
					assert.Equal(t, 1, strings.Count(lines.String(), "storage was restored to an earlier state; relisting everything"))
					assert.NotContains(t, lines.String(), "cannot watch resource")
				})
			})
		})
	}
}

// All sources find out at once, and each is listed again once.
func TestRestoreIsHandledOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAPI{}
		s.answer(nil)
		log, _ := newLogBuffer()
		w := watcherOf(s, log)
		w.definitions.health.recordList("1", 0)
		late := restore{time.Now(), &RestoredError{}}
		time.Sleep(time.Second)
		w.relistAll(late)
		require.ErrorIs(t, w.StaleError(), late.err, "at once, before the sources are checked")
		w.relistAll(late)
		assert.Equal(t, uint64(1), w.Restores())
		time.Sleep(time.Second)
		w.relistAll(restore{time.Now(), &RestoredError{}})
		assert.Equal(t, uint64(2), w.Restores())
	})
}

func TestVersionsThatAreNotComparable(t *testing.T) {
	s := &fakeAPI{version: "opaque"}
	s.answer(nil)
	log, _ := newLogBuffer()
	f := s.newReflector(nil, log)
	f.health.onRestore = func(restore) { t.Error("it is not restored") }
	for _, reached := range []string{"opaque", "", "9"} {
		assert.NoError(t, f.checkStorage(t.Context(), reached))
	}
	s.failCalls(errLost)
	assert.NoError(t, f.checkStorage(t.Context(), "opaque"))
	assert.ErrorIs(t, f.checkStorage(t.Context(), "9"), errLost)
}

// A resource may be listed again for another reason.
func TestListShowsThatStorageWasRestored(t *testing.T) {
	h := newHealthTracker("httproutes")
	now := time.Unix(100, 0)
	h.now = func() time.Time { return now }
	var got []restore
	h.onRestore = func(r restore) { got = append(got, r) }
	h.recordList("5", 0)
	h.recordEvent("9", 0)
	h.listRequested()
	h.recordList("9", 0)
	assert.Empty(t, got)
	h.recordList("8", 0)
	assert.Equal(t, []restore{{now, &RestoredError{Source: "httproutes", Stored: 8, Reached: 9}}}, got)
	assert.Equal(t, uint64(8), h.reachedVersion())
}
