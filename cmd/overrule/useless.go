package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"overrule.dev/overrule/webhook"
)

// checkGiven returns which flags are given that nothing would come of, or less
// than they promise.
func (o *options) checkGiven(f *pflag.FlagSet) error {
	var errs []error
	// A file whose name came out empty, and anybody may call: nobody meant that.
	for _, name := range []string{"client-ca-file", "path-token-file"} {
		if f.Changed(name) && f.Lookup(name).Value.String() == "" {
			errs = append(errs, fmt.Errorf("--%s is empty: name a file, or leave the flag out", name))
		}
	}
	if f.Changed("pod-name") && o.podName != "" && o.canaryInterval == 0 {
		errs = append(errs, errors.New("--pod-name is for the canary, and --canary-interval=0 is none: give that a time, or leave --pod-name out"))
	}
	return errors.Join(errs...)
}

// checkRoom refuses a room that not every review fits into: the bound would be
// broken, or one large review wait for ever.
func (o *options) checkRoom() error {
	switch {
	case o.maxBytes.Sign() < 0:
		return fmt.Errorf("--max-bytes=%s is negative: 0 is the default", o.maxBytes.String())
	case o.maxBytes.Sign() > 0 && o.maxBytes.Value() < webhook.DefaultBodyLimit:
		return fmt.Errorf("--max-bytes=%s is less than one review may have: give %s or more, or 0 for the default",
			o.maxBytes.String(), resource.NewQuantity(webhook.DefaultBodyLimit, resource.BinarySI))
	}
	return nil
}

// checkCanaryNamespace refuses what no namespace is called.
func checkCanaryNamespace(name string) error {
	if name == "" {
		return nil
	}
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("--canary-namespace=%q is no name: %s", name, strings.Join(wrong, "; "))
	}
	return nil
}

// checkAddresses refuses that two listeners have one port: the second to listen
// would end the server.
func (o *options) checkAddresses() error {
	type listener struct{ flag, address string }
	listeners := []listener{{"webhook-bind-address", o.webhookAddress}, {"health-bind-address", o.healthAddress}}
	if !none(o.metricsAddress) {
		listeners = append(listeners, listener{"metrics-bind-address", o.metricsAddress})
	}
	if !none(o.pprofAddress) {
		listeners = append(listeners, listener{"pprof-bind-address", o.pprofAddress})
	}
	var errs []error
	for i, one := range listeners {
		for _, other := range listeners[:i] {
			if collide(one.address, other.address) {
				errs = append(errs, fmt.Errorf("--%s=%q takes the port of --%s=%q: give each its own", one.flag, one.address, other.flag, other.address))
			}
		}
	}
	return errors.Join(errs...)
}

// collide reports whether nothing can listen on both addresses. A port of 0 is
// any that is free.
func collide(one, other string) bool {
	host, port, err := net.SplitHostPort(one)
	otherHost, otherPort, otherErr := net.SplitHostPort(other)
	if err != nil || otherErr != nil || port != otherPort || port == "0" {
		return false
	}
	ip, otherIP := net.ParseIP(host), net.ParseIP(otherHost)
	return host == otherHost || everywhere(host, ip) || everywhere(otherHost, otherIP) || ip != nil && ip.Equal(otherIP)
}

// everywhere reports whether a host stands for all addresses of the machine: to
// net.Listen 0.0.0.0 is those of both families, as [::] is.
func everywhere(host string, ip net.IP) bool { return host == "" || ip.IsUnspecified() }

// none reports whether an address says that nothing is to listen.
func none(address string) bool { return address == "" || address == "0" }
