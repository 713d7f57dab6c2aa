package conformance

import (
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/gateway-api/conformance"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"

	"overrule.dev/overrule/test/tables"
)

// TestConformance runs the conformance tests that are about routing, as they are: what
// they expect is in the module of Gateway API.
func TestConformance(t *testing.T) {
	s, server := newSuite(t)
	s.Setup(t, tests.ConformanceTests)
	all := readLists(t)
	run := slices.Concat(all.Routing, all.Attachment)
	for _, test := range tests.ConformanceTests {
		if !slices.Contains(run, test.ShortName) {
			continue
		}
		server.isolated.Store(slices.Contains(test.Features, features.SupportGatewayHTTPListenerIsolation))
		t.Run(test.ShortName, func(t *testing.T) {
			before, _ := server.requests()
			t.Cleanup(func() {
				assert.NoError(t, server.errors())
				after, _ := server.requests()
				assert.Equal(t, slices.Contains(all.Routing, test.ShortName), after > before, "a test of the list routing sends requests")
			})
			test.Run(t, s)
		})
	}
	routed, distinct := server.requests()
	t.Logf("%d tests run, %d requests routed (%d different ones, %d moves), %d tests not about routing",
		len(run), routed, distinct, server.moves(), len(tests.ConformanceTests)-len(run))
}

// lists are the names of the conformance tests: those that send requests, those that expect
// which routes attach to which listeners, and those that are not run.
type lists struct {
	Routing, Attachment []string
	Other               map[string][]string
}

func readLists(t *testing.T) lists {
	t.Helper()
	return tables.Read[lists](t, "testdata/lists.yaml")
}

func TestEachTestIsInOneList(t *testing.T) {
	in := readLists(t)
	listed := slices.Concat(in.Routing, in.Attachment, slices.Concat(slices.Collect(maps.Values(in.Other))...))
	var all []string
	for _, test := range tests.ConformanceTests {
		all = append(all, test.ShortName)
	}
	assert.ElementsMatch(t, all, listed, "a new conformance test goes to one of the lists in testdata/lists.yaml")
}

// TestVersion compares the release of the tests with that of the API.
func TestVersion(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/gateway-api", "sigs.k8s.io/gateway-api/conformance")
	out, err := command.Output()
	require.NoError(t, err)
	versions := strings.Fields(string(out))
	require.Len(t, versions, 2)
	assert.Equal(t, versions[0], versions[1], "pin the same release of both modules in go.mod")
}

// newSuite returns a suite with a cluster of its own. It supports all features, so that
// no test is skipped.
func newSuite(t *testing.T) (*suite.ConformanceTestSuite, *server) {
	t.Helper()
	c, err := newCluster()
	require.NoError(t, err)
	s := newServer(c)
	t.Cleanup(func() { assert.NoError(t, c.net.close()) })
	config, clients, err := serveExec(t, s)
	require.NoError(t, err)
	out, err := suite.NewConformanceTestSuite(suite.ConformanceOptions{
		ConfigurableOptions: suite.ConfigurableOptions{
			GatewayClassName: className, CleanupTestResources: true, EnableAllSupportedFeatures: true,
			TimeoutConfig: limits(), AllowCRDsMismatch: true, DisableParallelTests: true,
		},
		Client: c, RestConfig: config, Clientset: clients, RoundTripper: s, GRPCClient: grpcClient{s}, ManifestFS: []fs.FS{conformance.Manifests},
	})
	require.NoError(t, err)
	return out, s
}

// limits lets a test fail soon: nothing has to converge here.
func limits() config.TimeoutConfig {
	out := config.DefaultTimeoutConfig()
	out.RequiredConsecutiveSuccesses = 1
	for _, limit := range []*time.Duration{
		&out.MaxTimeToConsistency, &out.DefaultTestTimeout, &out.NamespacesMustBeReady, &out.LatestObservedGenerationSet,
		&out.GatewayMustHaveAddress, &out.GatewayMustHaveCondition, &out.GatewayStatusMustHaveListeners,
		&out.GatewayListenersMustHaveConditions, &out.ListenerSetMustHaveCondition, &out.ListenerSetListenersMustHaveConditions,
		&out.RouteMustHaveParents, &out.HTTPRouteMustNotHaveParents, &out.HTTPRouteMustHaveCondition,
		&out.TLSRouteMustHaveCondition, &out.TCPRouteMustHaveCondition, &out.UDPRouteMustHaveCondition,
	} {
		*limit = 3 * time.Second
	}
	return out
}
