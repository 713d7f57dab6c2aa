package main

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlagsThatNothingWouldComeOfAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no room for any review":             {[]string{"--max-bytes=1"}, "--max-bytes=1 is less than one review may have: give 8Mi or more, or 0 for the default"},
		"room for small reviews alone":       {[]string{"--max-bytes=8191Ki"}, "--max-bytes=8191Ki is less than one review may have: give 8Mi or more, or 0 for the default"},
		"room for a part of a byte":          {[]string{"--max-bytes=1m"}, "--max-bytes=1m is less than one review may have: give 8Mi or more, or 0 for the default"},
		"authorities of an empty name":       {[]string{"--client-ca-file="}, "--client-ca-file is empty: name a file, or leave the flag out"},
		"tokens of an empty name":            {[]string{"--manage-webhooks=false", "--path-token-file="}, "--path-token-file is empty: name a file, or leave the flag out"},
		"a pod for no canary":                {[]string{"--canary-interval=0", "--pod-name=a"}, "--pod-name is for the canary, and --canary-interval=0 is none: give that a time, or leave --pod-name out"},
		"a namespace for no canary":          {[]string{"--canary-interval=0", "--canary-namespace=a"}, "--canary-namespace=a is for the canary, and --canary-interval=0 is none: give that a time, or leave --canary-namespace out"},
		"two listeners on one port":          {[]string{"--metrics-bind-address=:9443"}, `--metrics-bind-address=":9443" takes the port of --webhook-bind-address=":9443": give each its own`},
		"on one port of one host":            {[]string{"--health-bind-address=127.0.0.1:80", "--webhook-bind-address=127.0.0.1:80"}, `--health-bind-address="127.0.0.1:80" takes the port of --webhook-bind-address="127.0.0.1:80": give each its own`},
		"on one port, everywhere":            {[]string{"--health-bind-address=0.0.0.0:8080"}, `--metrics-bind-address=":8080" takes the port of --health-bind-address="0.0.0.0:8080": give each its own`},
		"on one port, of loopback, too":      {[]string{"--pprof-bind-address=127.0.0.1:8081"}, `--pprof-bind-address="127.0.0.1:8081" takes the port of --health-bind-address=":8081": give each its own`},
		"profiles where nothing can listen":  {[]string{"--pprof-bind-address=127.0.0.1:99999"}, `--pprof-bind-address="127.0.0.1:99999" is no address to listen on, give HOST:PORT or :PORT: address 99999: invalid port`},
		"a wait that is too short to see it": {[]string{"uninstall-webhooks", "--timeout=4s"}, "--timeout=4s is less than the 5s for which they have to stay away: give more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAME", "")
			cmd := command()
			cmd.SetArgs(append(c.args, "--kubeconfig=/nowhere"))
			cmd.SetOut(&bytes.Buffer{})
			assert.EqualError(t, cmd.ExecuteContext(t.Context()), c.want)
		})
	}
}

func TestFlagsThatGoTogetherAreTaken(t *testing.T) {
	t.Setenv("POD_NAME", "overrule-abc") // as each manifest has it, with a canary or without
	for name, args := range map[string][]string{
		"no canary":                       {"--canary-interval=0"},
		"no pod":                          {"--canary-interval=0", "--pod-name="},
		"room for one review":             {"--max-bytes=8Mi"},
		"one port of two hosts":           {"--health-bind-address=127.0.0.1:8080", "--metrics-bind-address=127.0.0.2:8080"},
		"any port that is free":           {"--health-bind-address=:0", "--metrics-bind-address=:0", "--webhook-bind-address=:0"},
		"no metrics beside no profiles":   {"--metrics-bind-address=0", "--pprof-bind-address=0"},
		"a file for who calls":            {"--client-ca-file=ca.crt"},
		"tokens for webhooks of another":  {"--manage-webhooks=false", "--path-token-file=tokens"},
		"the time to see that they stay":  {"uninstall-webhooks", "--timeout=5s"},
		"a namespace that a canary tries": {"--canary-namespace=app"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command()
			cmd.SetArgs(append(args, "--kubeconfig=/nowhere"))
			cmd.SetOut(&bytes.Buffer{})
			require.ErrorContains(t, cmd.ExecuteContext(t.Context()), `read kubeconfig "/nowhere": `, "it comes as far as that")
		})
	}
}

// What listening itself says is the measure: 0.0.0.0 takes the addresses of IPv6, too.
func TestAddressesCollideWhereTheSecondCannotListen(t *testing.T) {
	hosts := []string{"", "0.0.0.0", "[::]", "127.0.0.1", "[::1]", "[0:0::1]", "[::ffff:127.0.0.1]"}
	listen := func(address string) (net.Listener, error) {
		return new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	}
	for _, one := range hosts {
		first, err := listen(one + ":0")
		if err != nil {
			t.Logf("%q cannot be tried here: %v", one, err) // a machine without IPv6
			continue
		}
		_, port, err := net.SplitHostPort(first.Addr().String())
		require.NoError(t, err)
		for _, other := range hosts {
			second, err := listen(net.JoinHostPort(strings.Trim(other, "[]"), port))
			if err == nil {
				require.NoError(t, second.Close())
			} else if !errors.Is(err, syscall.EADDRINUSE) {
				continue
			}
			assert.Equal(t, err != nil, collide(one+":"+port, other+":"+port), "%q and %q", one, other)
		}
		require.NoError(t, first.Close())
	}
}
