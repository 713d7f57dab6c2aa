package replay

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/tables"
)

// manifests returns the objects of the histories by their short names.
func manifests(t testing.TB) map[string]string {
	t.Helper()
	return tables.Read[map[string]string](t, "testdata/objects.yaml")
}

// story is a history that a test writes.
type story struct {
	t         testing.TB
	manifests map[string]string
	version   int64
	objects   []*Object
	writes    []Write
	stored    map[string]*Object
	began     bool
}

// newStory returns a history whose initial state has the definitions of examples/crds,
// PolicyProfile, and these objects.
func newStory(t testing.TB, initial ...string) *story {
	t.Helper()
	s := &story{t: t, manifests: manifests(t), stored: make(map[string]*Object)}
	for _, pattern := range []string{"../../examples/crds/*.yaml", "../../deploy/crds/*.yaml"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			s.put(string(data) + "\nstatus: {conditions: [{type: Established, status: \"True\"}]}\n")
		}
	}
	for _, name := range initial {
		s.write(name)
	}
	s.began = true
	return s
}

// write does a write of testdata/histories.yaml.
func (s *story) write(what string) {
	s.t.Helper()
	verb, object, _ := strings.Cut(what, " ")
	switch verb {
	case "delete":
		require.Contains(s.t, s.stored, object)
		s.version++
		s.writes = append(s.writes, Write{Version: s.version, Ref: refOf(s.stored[object])})
		delete(s.stored, object)
	case "terminate":
		require.Contains(s.t, s.stored, object)
		o := s.stored[object].DeepCopy()
		o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1_800_000_000, 0).UTC()})
		s.store(o)
	default:
		require.Contains(s.t, s.manifests, what)
		s.put(s.manifests[what])
	}
}

// put creates or replaces the objects of a manifest, one after another.
func (s *story) put(manifest string) {
	s.t.Helper()
	for doc := range strings.SplitSeq(manifest, "\n---\n") {
		o := &Object{}
		require.NoError(s.t, yaml.Unmarshal([]byte(doc), &o.Object), doc)
		s.store(o)
	}
}

func (s *story) store(o *Object) {
	s.version++
	key := refOf(o).String()
	o.SetResourceVersion(strconv.FormatInt(s.version, 10))
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + o.GetResourceVersion()))
	}
	o.SetCreationTimestamp(metav1.NewTime(time.Unix(1_700_000_000+s.version, 0).UTC()))
	if old := s.stored[key]; old != nil {
		o.SetUID(old.GetUID())
		o.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	s.stored[key] = o
	if s.began {
		s.writes = append(s.writes, Write{s.version, refOf(o), o})
	} else {
		s.objects = append(s.objects, o)
	}
}

// replay replays the history.
func (s *story) replay() *Report {
	s.t.Helper()
	report, err := Replay(s.t.Context(), &History{Objects: s.objects, Writes: func(yield func(Write, error) bool) {
		for _, w := range s.writes {
			if !yield(w, nil) {
				return
			}
		}
	}})
	require.NoError(s.t, err)
	return report
}
