package server

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

// parseOptions returns the options of arguments.
func parseOptions(t *testing.T, args ...string) options {
	t.Helper()
	var o options
	f := pflag.NewFlagSet("overrule", pflag.ContinueOnError)
	o.bind(f)
	require.NoError(t, f.Parse(args))
	return o
}

func TestFlagDefaults(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	o := parseOptions(t)
	want := options{
		namespace: "overrule-system", service: "overrule", servicePort: 443,
		webhookAddress: ":9443", metricsAddress: ":8080", healthAddress: ":8081", pprofAddress: "0",
		enforcement: "deny", maxMatches: 2000, failurePolicy: "Fail", manageWebhooks: true, coordination: "leader", webhookTimeout: 3 * time.Second, peerBindAddress: ":9444",
		logLevel: "info", logFormat: "json",
		certificates: "self", certDir: "/etc/overrule/certs", certificateName: "overrule-serving",
		caValidity: 8760 * time.Hour, certValidity: 720 * time.Hour, drainPeriod: 5 * time.Second,
		refresh: refreshOptions{affected: true, qps: 10},
	}
	_, _ = want.maxBytes.String(), want.maxObjectBytes.String() // a quantity keeps its text
	assert.Equal(t, want, o)
}

func TestNamespaceDefaultsToTheEnvironment(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "elsewhere")
	assert.Equal(t, "elsewhere", parseOptions(t).namespace)
	assert.Equal(t, "other", parseOptions(t, "--namespace=other").namespace)
}

func TestBytesAreQuantities(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "8Mi": 8 << 20, "8388608": 8 << 20, "64Mi": 64 << 20, "1G": 1e9} {
		o := parseOptions(t, "--max-bytes="+text)
		assert.Equal(t, want, o.maxBytes.Value(), text)
	}
	assert.ErrorContains(t, runCommand(t, "--max-bytes=much"), `invalid value "much" for --max-bytes: `)
}

func TestAuditFlag(t *testing.T) {
	for arg, want := range map[string]guard.Enforcement{"--audit=false": "deny", "--audit": "audit", "--enforcement=audit": "audit"} {
		o := parseOptions(t, arg)
		o.complete()
		assert.Equal(t, want, o.enforcement, arg)
	}
}

func TestInvalidArgumentsAreReported(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Args []string
		Want string
	}](t, "testdata/tables/invalid-arguments.yaml") {
		t.Run(name, func(t *testing.T) {
			err := runCommand(t, c.Args...)
			require.ErrorContains(t, err, c.Want)
			messages.Golden(t, err.Error())
		})
	}
}

func TestEveryFlagHasHelp(t *testing.T) {
	NewCommand().Flags().VisitAll(func(f *pflag.Flag) {
		assert.NotEmpty(t, f.Usage, f.Name)
	})
}

// The timeout of the webhooks is one value: registered, expected by the handler, and the
// bound of the coordination.
func TestWebhookTimeoutReachesAllThatDependOnIt(t *testing.T) {
	o := parseOptions(t, "--webhook-timeout=10s")
	a := &app{options: o, certificates: &certProvider{}}
	assert.Equal(t, 10*time.Second, a.webhookConfiguration().Timeout)
	assert.Equal(t, 10*time.Second, o.webhookOptions().Timeout)
	assert.Equal(t, coordination.NewBounds(10*time.Second, 14*time.Second), o.bounds())
	o = parseOptions(t, "--webhook-timeout=10s", "--lease-duration=60s")
	assert.Equal(t, coordination.NewBounds(10*time.Second, time.Minute), o.bounds())
	assert.Equal(t, coordination.NewBounds(3*time.Second, 7*time.Second), new(parseOptions(t)).bounds())
	assert.Equal(t, 57*time.Second, o.webhookOptions().MaxTimeout, "the longest one that fits into the Lease")
	assert.Equal(t, 4*time.Second, new(parseOptions(t)).webhookOptions().MaxTimeout)
	assert.Zero(t, new(parseOptions(t, "--coordination=none")).webhookOptions().MaxTimeout)
	assert.Greater(t, writeTimeout, webhookconfig.MaxTimeout, "the longest one, which a caller may send")
}

func TestHandlerKnowsThatFailuresAreIgnored(t *testing.T) {
	assert.False(t, new(parseOptions(t)).webhookOptions().IgnoreFailures)
	assert.True(t, new(parseOptions(t, "--failure-policy=Ignore")).webhookOptions().IgnoreFailures)
}
