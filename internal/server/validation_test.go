package server

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

func TestInvalidFlagsAreReported(t *testing.T) {
	const (
		address  = "must be HOST:PORT or :PORT"
		metrics  = address + `, or "0" for none`
		label    = "must be an RFC 1123 label"
		negative = "must not be negative"
		loopback = "must be a loopback address such as 127.0.0.1:6060; use kubectl port-forward to reach it"
		canary   = "must be 0 or at least 5s"
	)
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("POD_NAME", "")
	for flag, c := range map[string]struct {
		values []string
		want   string
	}{
		"--service-port":         {[]string{"0", "-1", "65536"}, "must be in 1-65535"},
		"--namespace":            {[]string{"Bad_Name", "", "a.b"}, label},
		"--service":              {[]string{"Bad_Name", "", "a.b"}, label},
		"--webhook-bind-address": {[]string{"", "99999", "[::1:443"}, address},
		"--health-bind-address":  {[]string{"", "0"}, address},
		"--metrics-bind-address": {[]string{"", "x"}, metrics},
		"--pprof-bind-address":   {[]string{"6060", ":6060", "0.0.0.0:6060", "[::]:6060", "10.0.0.1:6060", "example.com:6060", "localhost.x.y:606"}, loopback},
		"--blast-radius-limit":   {[]string{"-1"}, negative},
		"--max-concurrent":       {[]string{"-1"}, negative},
		"--max-queue":            {[]string{"-3"}, negative},
		"--max-bytes":            {[]string{"-1Mi", "1", "20479Ki", "1m"}, "must be 0 or at least 20Mi"},
		"--cert-validity":        {[]string{"0s", "-1h", "4s"}, "must be at least 5s"},
		"--drain-period":         {[]string{"-1s"}, negative},
		"--canary-interval":      {[]string{"4s", "-1m"}, canary},
		"--canary-namespace":     {[]string{"App", "a.b"}, label},
		"--path-token-file":      {[]string{"x"}, "requires --manage-webhooks=false"},
		"--certificate-name":     {[]string{"x"}, "requires --certificates=cert-manager"},
		"--cert-dir":             {[]string{"/certs"}, "requires --certificates=files or --certificates=cert-manager"},
		"--client-subject":       {[]string{"x"}, "requires --client-ca-file"},
		"--client-ca-file":       {[]string{""}, "must not be empty"},
		"--refresh-affected":     {[]string{"true", "false"}, "requires --refresh"},
	} {
		for _, value := range c.values {
			arg := flag + "=" + value
			assert.EqualError(t, runCommand(t, arg), "invalid "+flag+": "+c.want, arg)
		}
	}
}

func TestInvalidCombinationsAreReported(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"every error":                   {[]string{"--service-port=0", "--max-queue=-1", "--client-subject=x"}, "invalid --service-port: must be in 1-65535\ninvalid --max-queue: must not be negative\ninvalid --client-subject: requires --client-ca-file"},
		"audit twice":                   {[]string{"--audit", "--enforcement=deny"}, "if any flags in the group [audit enforcement] are set none of the others can be; [audit enforcement] were all set"},
		"leaf outlives a third":         {[]string{"--cert-validity=4000h"}, "invalid --cert-validity: must be at most 1/3 of --ca-validity"},
		"authority is too short":        {[]string{"--ca-validity=2159h"}, "invalid --cert-validity: must be at most 1/3 of --ca-validity"},
		"authority without life":        {[]string{"--ca-validity=0s"}, "invalid --cert-validity: must be at most 1/3 of --ca-validity"},
		"validity of files":             {[]string{"--certificates=files", "--ca-validity=1h", "--cert-validity=1m"}, "invalid --ca-validity: requires --certificates=self\ninvalid --cert-validity: requires --certificates=self"},
		"Certificate of files":          {[]string{"--certificates=files", "--certificate-name=x"}, "invalid --certificate-name: requires --certificates=cert-manager"},
		"empty directory":               {[]string{"--certificates=files", "--cert-dir="}, "invalid --cert-dir: must not be empty"},
		"empty Certificate":             {[]string{"--certificates=cert-manager", "--certificate-name="}, "invalid --certificate-name: must not be empty"},
		"empty tokens":                  {[]string{"--manage-webhooks=false", "--path-token-file="}, "invalid --path-token-file: must not be empty"},
		"empty subject":                 {[]string{"--client-subject=", "--client-ca-file=ca.crt"}, "invalid --client-subject: must not be empty"},
		"no rate":                       {[]string{"--refresh", "--refresh-qps=0"}, "invalid --refresh-qps: must be a number above 0"},
		"rate that is no number":        {[]string{"--refresh", "--refresh-qps=NaN"}, "invalid --refresh-qps: must be a number above 0"},
		"infinite rate":                 {[]string{"--refresh", "--refresh-qps=Inf"}, "invalid --refresh-qps: must be a number above 0"},
		"canary in its own namespace":   {[]string{"--canary-namespace=overrule-system"}, "invalid --canary-namespace: must not be --namespace, which is exempt from evaluation"},
		"arm without canary":            {[]string{"--arm", "--canary-interval=0"}, "invalid --arm: requires a --canary-interval above 0"},
		"arm without configurations":    {[]string{"--arm", "--manage-webhooks=false"}, "invalid --arm: requires --manage-webhooks"},
		"arm with Ignore":               {[]string{"--arm", "--failure-policy=Ignore"}, "invalid --arm: requires --failure-policy=Fail"},
		"arm with audit":                {[]string{"--arm", "--enforcement=audit"}, "invalid --arm: requires --enforcement=deny or --enforcement=warn: with audit the canary does not see whether writes are evaluated"},
		"arm with audit for short":      {[]string{"--arm", "--audit"}, "invalid --arm: requires --enforcement=deny or --enforcement=warn: with audit the canary does not see whether writes are evaluated"},
		"uninstall in too short a time": {[]string{"uninstall-webhooks", "--timeout=4s"}, "invalid --timeout: must be at least 5s"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.EqualError(t, runCommand(t, c.args...), c.want)
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
