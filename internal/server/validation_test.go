package server

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
)

// runCommand returns the error of the command. With valid flags it is that of the
// kubeconfig, which does not exist.
func runCommand(t *testing.T, args ...string) error {
	t.Helper()
	cmd := NewCommand()
	cmd.SetArgs(append(args, "--kubeconfig=/nowhere"))
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(t.Context())
	assert.Empty(t, out.String(), "main reports the error, once")
	return err
}

// flagsIn returns the flags that each line of an error names, and compares its text with
// the golden file.
func flagsIn(t *testing.T, err error) []string {
	t.Helper()
	require.Error(t, err)
	var out []string
	for line := range strings.Lines(err.Error()) {
		messages.Golden(t, strings.TrimSuffix(line, "\n"))
		out = append(out, strings.Join(namedFlag.FindAllString(line, -1), " "))
	}
	return out
}

var namedFlag = regexp.MustCompile(`--[a-z-]+(=[A-Za-z-]+)?`)

func TestInvalidFlagsAreReported(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("POD_NAME", "")
	for flag, c := range map[string]struct {
		values []string
		others string // flags that the error names after it
	}{
		"--service-port":         {[]string{"0", "-1", "65536"}, ""},
		"--namespace":            {[]string{"Bad_Name", "", "a.b"}, ""},
		"--service":              {[]string{"Bad_Name", "", "a.b"}, ""},
		"--webhook-bind-address": {[]string{"", "99999", "[::1:443"}, ""},
		"--health-bind-address":  {[]string{"", "0"}, ""},
		"--metrics-bind-address": {[]string{"", "x"}, ""},
		"--pprof-bind-address":   {[]string{"6060", ":6060", "0.0.0.0:6060", "[::]:6060", "10.0.0.1:6060", "example.com:6060", "localhost.x.y:606"}, ""},
		"--webhook-timeout":      {[]string{"0s", "-1s", "500ms", "1500ms", "31s"}, ""},
		"--lease-duration":       {[]string{"6s", "-1s", "7500ms"}, "--webhook-timeout --webhook-timeout"},
		"--blast-radius-limit":   {[]string{"-1"}, ""},
		"--max-concurrent":       {[]string{"-1"}, ""},
		"--max-queue":            {[]string{"-3"}, ""},
		"--max-matches":          {[]string{"-1"}, ""},
		"--max-bytes":            {[]string{"-1Mi", "1", "20479Ki", "1m"}, ""},
		"--cert-validity":        {[]string{"0s", "-1h", "4s"}, ""},
		"--drain-period":         {[]string{"-1s"}, ""},
		"--canary-interval":      {[]string{"4s", "-1m"}, ""},
		"--canary-namespace":     {[]string{"App", "a.b"}, ""},
		"--path-token-file":      {[]string{"x"}, "--manage-webhooks=false"},
		"--certificate-name":     {[]string{"x"}, "--certificates=cert-manager"},
		"--cert-dir":             {[]string{"/certs"}, "--certificates=files --certificates=cert-manager"},
		"--client-subject":       {[]string{"x"}, "--client-ca-file"},
		"--client-ca-file":       {[]string{""}, ""},
		"--refresh-affected":     {[]string{"true", "false"}, "--refresh"},
	} {
		for _, value := range c.values {
			arg := flag + "=" + value
			t.Run(arg, func(t *testing.T) {
				assert.Equal(t, []string{strings.TrimSpace(flag + " " + c.others)}, flagsIn(t, runCommand(t, arg)))
			})
		}
	}
}

func TestInvalidCombinationsAreReported(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for name, c := range map[string]struct {
		args []string
		want []string // flags that each line names
	}{
		"every error":                   {[]string{"--service-port=0", "--max-queue=-1", "--client-subject=x"}, []string{"--service-port", "--max-queue", "--client-subject --client-ca-file"}},
		"audit twice":                   {[]string{"--audit", "--enforcement=deny"}, []string{""}},
		"leaf outlives a third":         {[]string{"--cert-validity=4000h"}, []string{"--cert-validity --ca-validity"}},
		"authority is too short":        {[]string{"--ca-validity=2159h"}, []string{"--cert-validity --ca-validity"}},
		"authority without life":        {[]string{"--ca-validity=0s"}, []string{"--cert-validity --ca-validity"}},
		"validity of files":             {[]string{"--certificates=files", "--ca-validity=1h", "--cert-validity=1m"}, []string{"--ca-validity --certificates=self", "--cert-validity --certificates=self"}},
		"Certificate of files":          {[]string{"--certificates=files", "--certificate-name=x"}, []string{"--certificate-name --certificates=cert-manager"}},
		"empty directory":               {[]string{"--certificates=files", "--cert-dir="}, []string{"--cert-dir"}},
		"empty Certificate":             {[]string{"--certificates=cert-manager", "--certificate-name="}, []string{"--certificate-name"}},
		"empty tokens":                  {[]string{"--manage-webhooks=false", "--path-token-file="}, []string{"--path-token-file"}},
		"empty subject":                 {[]string{"--client-subject=", "--client-ca-file=ca.crt"}, []string{"--client-subject"}},
		"lease shorter than a call":     {[]string{"--webhook-timeout=10s", "--lease-duration=13s"}, []string{"--lease-duration --webhook-timeout --webhook-timeout"}},
		"lease without a leader":        {[]string{"--coordination=none", "--lease-duration=60s"}, []string{"--lease-duration --coordination=leader"}},
		"no rate":                       {[]string{"--refresh", "--refresh-qps=0"}, []string{"--refresh-qps"}},
		"rate that is no number":        {[]string{"--refresh", "--refresh-qps=NaN"}, []string{"--refresh-qps"}},
		"infinite rate":                 {[]string{"--refresh", "--refresh-qps=Inf"}, []string{"--refresh-qps"}},
		"canary in its own namespace":   {[]string{"--canary-namespace=overrule-system"}, []string{"--canary-namespace --namespace"}},
		"arm without canary":            {[]string{"--arm", "--canary-interval=0"}, []string{"--arm --canary-interval"}},
		"arm without configurations":    {[]string{"--arm", "--manage-webhooks=false"}, []string{"--arm --manage-webhooks"}},
		"arm with Ignore":               {[]string{"--arm", "--failure-policy=Ignore"}, []string{"--arm --failure-policy=Fail"}},
		"arm with audit":                {[]string{"--arm", "--enforcement=audit"}, []string{"--arm --enforcement=deny --enforcement=warn"}},
		"arm with audit for short":      {[]string{"--arm", "--audit"}, []string{"--arm --enforcement=deny --enforcement=warn"}},
		"uninstall in too short a time": {[]string{"uninstall-webhooks", "--timeout=4s"}, []string{"--timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, flagsIn(t, runCommand(t, c.args...)))
		})
	}
}

func TestValidFlagsAreAccepted(t *testing.T) {
	t.Setenv("POD_NAME", "overrule-abc") // as each manifest sets it
	for name, args := range map[string][]string{
		"no flags":                   nil,
		"the lowest port":            {"--service-port=1"},
		"the highest port":           {"--service-port=65535"},
		"defaults of limits":         {"--max-concurrent=0", "--max-queue=0", "--max-bytes=0", "--blast-radius-limit=0", "--drain-period=0"},
		"one review at a time":       {"--max-bytes=20Mi"},
		"no metrics and no profiles": {"--metrics-bind-address=0", "--pprof-bind-address=0"},
		"empty profile address":      {"--pprof-bind-address="},
		"profiles on loopback":       {"--pprof-bind-address=127.0.0.1:6060"},
		"profiles on 127.0.0.0/8":    {"--pprof-bind-address=127.8.8.8:6060"},
		"profiles on IPv6":           {"--pprof-bind-address=[::1]:6060"},
		"profiles on localhost":      {"--pprof-bind-address=localhost:6060"},
		"hosts":                      {"--metrics-bind-address=127.0.0.1:0", "--health-bind-address=[::1]:8081", "--webhook-bind-address=localhost:65535"},
		"authority of three leaves":  {"--ca-validity=2160h"},
		"shortest lives":             {"--ca-validity=15s", "--cert-validity=5s"},
		"files":                      {"--certificates=files", "--cert-dir=/certs"},
		"Certificate":                {"--certificates=cert-manager", "--cert-dir=/certs", "--certificate-name=x"},
		"authorities of callers":     {"--client-ca-file=ca.crt", "--client-subject=x"},
		"tokens of a file":           {"--manage-webhooks=false", "--path-token-file=tokens"},
		"refresh":                    {"--refresh", "--refresh-affected=false", "--refresh-qps=0.5"},
		"no canary":                  {"--canary-interval=0"},
		"shortest timeout":           {"--webhook-timeout=1s", "--lease-duration=5s"},
		"longest timeout":            {"--webhook-timeout=30s", "--lease-duration=34s"},
		"a lease that is computed":   {"--webhook-timeout=30s", "--lease-duration=0"},
		"a timeout without a leader": {"--webhook-timeout=10s", "--coordination=none"},
		"most frequent canary":       {"--canary-interval=5s", "--canary-namespace=app"},
		"arm":                        {"--arm"},
		"arm and warn":               {"--arm", "--enforcement=warn"},
		"time to see that they stay": {"uninstall-webhooks", "--timeout=5s"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, runCommand(t, args...), `read kubeconfig "/nowhere": `)
		})
	}
}
