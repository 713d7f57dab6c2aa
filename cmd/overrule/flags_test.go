package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// parsed are the options that some arguments give.
func parsed(t *testing.T, args ...string) options {
	t.Helper()
	var o options
	f := pflag.NewFlagSet("overrule", pflag.ContinueOnError)
	o.bind(f)
	require.NoError(t, f.Parse(args))
	return o
}

func TestWithoutFlagsTheServerRunsInItsCluster(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("POD_NAME", "")
	o := parsed(t)
	require.NoError(t, o.check())
	want := options{
		namespace: "overrule-system", service: "overrule", servicePort: 443,
		webhookAddress: ":9443", metricsAddress: ":8080", healthAddress: ":8081", pprofAddress: "0",
		enforcement: "deny", failurePolicy: "Fail", manageWebhooks: true, leaderElect: true,
		logLevel: "info", logFormat: "json",
		certificates: "self", certDir: "/etc/overrule/certs", certificateName: "overrule-serving",
		caValidity: 8760 * time.Hour, certValidity: 720 * time.Hour, drainPeriod: 5 * time.Second,
		refresh:        refreshing{affected: true, qps: 10},
		canaryInterval: time.Minute,
	}
	_ = want.maxBytes.String() // a quantity keeps its text
	assert.Equal(t, want, o)
}

func TestTheNamespaceIsThatOfThePod(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "elsewhere")
	assert.Equal(t, "elsewhere", parsed(t).namespace)
	assert.Equal(t, "there", parsed(t, "--namespace=there").namespace)
}

func TestWhatIsWrongWithTheFlagsIsSaidAllAtOnce(t *testing.T) {
	o := parsed(t, "--enforcement=maybe", "--failure-policy=fail", "--log-level=loud", "--log-format=xml", "--drain-period=-1s", "--blast-radius-limit=-1", "--max-bytes=-1Mi", "--certificates=none")
	assert.EqualError(t, o.check(), `--enforcement="maybe" is none of [deny warn audit]
--failure-policy="fail" is none of [Fail Ignore]
--certificates="none" is none of [self files cert-manager]
--log-level="loud" is none of [error info debug]
--log-format="xml" is none of [json text]
--blast-radius-limit=-1 is negative: 0 is no limit
--max-bytes=-1Mi is negative: 0 is the default
--drain-period=-1s is negative`)
}

func TestBytesAreWrittenAsMemoryIs(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "8Mi": 8 << 20, "8388608": 8 << 20, "64Mi": 64 << 20, "1G": 1e9} {
		o := parsed(t, "--max-bytes="+text)
		require.NoError(t, o.check())
		assert.Equal(t, want, o.maxBytes.Value(), text)
	}
	var o options
	f := pflag.NewFlagSet("overrule", pflag.ContinueOnError)
	o.bind(f)
	assert.ErrorContains(t, f.Parse([]string{"--max-bytes=much"}), `invalid argument "much" for "--max-bytes" flag`)
}

func TestAuditIsAnEnforcementForShort(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"without it, writes are denied":              {want: "deny"},
		"it allows and tells no one":                 {[]string{"--audit"}, "audit"},
		"so does its long form":                      {[]string{"--enforcement=audit"}, "audit"},
		"both at once say the same":                  {[]string{"--enforcement=audit", "--audit"}, "audit"},
		"taken back, it changes no enforcement":      {[]string{"--audit=false", "--enforcement=warn"}, "warn"},
		"taken back, it does not change the default": {[]string{"--audit=false"}, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			f := pflag.NewFlagSet("overrule", pflag.ContinueOnError)
			o.bind(f)
			require.NoError(t, f.Parse(c.args))
			require.NoError(t, o.settle(f))
			require.NoError(t, o.check())
			assert.Equal(t, c.want, o.enforcement)
		})
	}
}

func TestTheCommandRefusesWhatItCannotRunWith(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an argument":                    {[]string{"serve"}, `unknown command "serve" for "overrule"`},
		"an unknown flag":                {[]string{"--port=1"}, "unknown flag: --port"},
		"a duration that is none":        {[]string{"--ca-validity=long"}, `invalid argument "long" for "--ca-validity" flag: time: invalid duration "long"`},
		"a bad flag, before any cluster": {[]string{"--enforcement=x", "--kubeconfig", missing}, `--enforcement="x" is none of [deny warn audit]`},
		"two enforcements":               {[]string{"--audit", "--enforcement=deny", "--kubeconfig", missing}, "--audit is short for --enforcement=audit and excludes --enforcement=deny: give one of the two"},
		"two ways to a certificate": {
			[]string{"--certificates=files", "--ca-validity=1h", "--cert-validity=1m", "--kubeconfig", missing},
			"--ca-validity is for --certificates=self and excludes --certificates=files: give one of the two\n" +
				"--cert-validity is for --certificates=self and excludes --certificates=files: give one of the two",
		},
		"a rate for nobody":              {[]string{"--refresh-qps=5", "--refresh-affected=false"}, "--refresh-affected is for --refresh: give that, too\n--refresh-qps is for --refresh: give that, too"},
		"a rate of nothing":              {[]string{"--refresh", "--refresh-qps=0"}, "--refresh-qps=0 is no number of requests a second: give one above 0"},
		"a rate that is no number":       {[]string{"--refresh", "--refresh-qps=NaN"}, "--refresh-qps=NaN is no number of requests a second: give one above 0"},
		"a rate without end":             {[]string{"--refresh", "--refresh-qps=Inf"}, "--refresh-qps=+Inf is no number of requests a second: give one above 0"},
		"files that are nowhere":         {[]string{"--certificates=files", "--cert-dir=", "--kubeconfig", missing}, "--certificates=files needs --cert-dir: name the directory of tls.crt and tls.key"},
		"a Certificate for files":        {[]string{"--certificates=files", "--certificate-name=x"}, "--certificate-name is for --certificates=cert-manager and excludes --certificates=files: give one of the two"},
		"a Certificate without a name":   {[]string{"--certificates=cert-manager", "--certificate-name=", "--kubeconfig", missing}, "--certificates=cert-manager needs --certificate-name: name the Certificate"},
		"subjects of nobody":             {[]string{"--client-subject=", "--kubeconfig", missing}, "--client-subject needs --client-ca-file: name the authorities that sign the certificates of callers\n--client-subject is empty: give a name, or leave the flag out"},
		"files for who needs none":       {[]string{"--cert-dir=/certs"}, "--cert-dir is for --certificates=files or cert-manager and excludes --certificates=self: give one of the two"},
		"a kubeconfig that is not there": {[]string{"--kubeconfig", missing}, "read kubeconfig \"" + missing + "\": stat " + missing + ": no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command()
			cmd.SetArgs(c.args)
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			assert.EqualError(t, cmd.ExecuteContext(t.Context()), c.want)
			assert.Empty(t, out.String(), "main says it, once")
		})
	}
}

func TestEveryFlagHasAnExplanation(t *testing.T) {
	command().Flags().VisitAll(func(f *pflag.Flag) {
		assert.NotEmpty(t, f.Usage, f.Name)
	})
}
