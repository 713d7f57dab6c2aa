//go:build long

package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/commands"
	"overrule.dev/overrule/test/env"
)

// TestEnvoyGateway compares effective policies with Envoy Gateway's translator, in the
// worlds of its golden inputs and in random ones. Each difference must have a class.
func TestEnvoyGateway(t *testing.T) {
	dir, err := env.PinnedModule(t.Context(), "envoygateway", "github.com/envoyproxy/gateway")
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "internal", "gatewayapi", "testdata", "*.in.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	peer, known := startTranslator(t), readClasses(t)
	golden := &agreement{What: "golden inputs", Worlds: len(files)}
	for _, file := range files {
		w := readWorld(t, file)
		w.addFixtures(t)
		golden.compare(t, peer, known, strings.TrimSuffix(filepath.Base(file), ".in.yaml"), w)
	}
	random := &agreement{What: "random worlds", Worlds: rounds(t)}
	for seed := range uint64(random.Worlds) {
		random.compare(t, peer, known, fmt.Sprint("random-", seed), randomWorld(t, seed))
	}
	if random.Worlds == boundedRounds {
		known.checkUsed(t)
		checkTable(t, tableOf(filepath.Base(dir), known, golden, random))
	}
}

// boundedRounds is the number of random worlds, more by hand: OVERRULE_WORLDS=10000.
const boundedRounds = 1000

func rounds(t *testing.T) int {
	t.Helper()
	value := os.Getenv("OVERRULE_WORLDS")
	if value == "" {
		return boundedRounds
	}
	n, err := strconv.Atoi(value)
	require.NoError(t, err, "OVERRULE_WORLDS")
	return n
}

// agreement counts the fields that were compared.
type agreement struct {
	What                   string
	Worlds, Fields, Agreed int
	// ByClass are the differences by their class.
	ByClass map[string]int
}

// compare compares a world. A difference without a class is an error.
func (a *agreement) compare(t *testing.T, peer *translator, known *classes, name string, w world) {
	t.Helper()
	w.complete()
	w.shareReferences(t)
	fields, differences := compareWorld(t, peer, w)
	a.Fields += fields
	a.Agreed += fields - len(differences)
	if a.ByClass == nil {
		a.ByClass = map[string]int{}
	}
	for _, d := range differences {
		if c := known.of(name, d); c != nil {
			a.ByClass[c.Name]++
			continue
		}
		t.Errorf("%s: a difference without a class: %s", name, d)
	}
}

// compareWorld compares all listeners of a world, and the states of its policies.
func compareWorld(t *testing.T, peer *translator, w world) (fields int, out []difference) {
	t.Helper()
	effective := effectivePolicies(t, w)
	theirs := peer.translate(t, w)
	fields, out = compareStates(theirs, effective)
	for l, settings := range theirs.listeners {
		ours := peer.translate(t, w.flatten(t, effective, l)).listeners[l]
		if ours == nil {
			ours = &translated{}
		}
		n, differences := compare(l, settings, ours)
		fields, out = fields+n, append(out, differences...)
	}
	return fields, out
}

// effectivePolicies returns the output of "kubectl overrule effective".
func effectivePolicies(t *testing.T, w world) *api.EffectivePolicyList {
	t.Helper()
	var out, stderr bytes.Buffer
	code := commands.Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(w.manifests(t)), Out: &out, ErrOut: &stderr},
		[]string{"effective", "-f", "-", "-o", "json"})
	require.Zero(t, code, stderr.String())
	var list api.EffectivePolicyList
	require.NoError(t, json.Unmarshal(out.Bytes(), &list))
	return &list
}
