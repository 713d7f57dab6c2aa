package server

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/webhook"
)

// flagCheck is a requirement on the value of a flag.
type flagCheck struct {
	flag        string
	ok          bool
	requirement string // reported unless ok
}

const (
	mustNotBeNegative = "must not be negative"
	mustBeLabel       = "must be an RFC 1123 label"
	mustBeAddress     = "must be HOST:PORT or :PORT"

	requiresCoordination = "requires --coordination=leader"
)

// flagErrors returns an error for each check that is not ok.
func flagErrors(checks []flagCheck) error {
	var errs []error
	for _, c := range checks {
		if !c.ok {
			errs = append(errs, fmt.Errorf("invalid --%s: %s", c.flag, c.requirement))
		}
	}
	return errors.Join(errs...)
}

// validate returns all errors of the options, which were parsed from f.
func (o *options) validate(f *pflag.FlagSet) error {
	return flagErrors(append(o.valueChecks(), o.combinationChecks(f)...))
}

// valueChecks are the checks of single flags. What a listener or the API server
// validates is not checked here.
func (o *options) valueChecks() []flagCheck {
	least := resource.NewQuantity(webhook.DefaultBodyLimit, resource.BinarySI)
	leastLease := coordination.LeaseDuration(o.webhookTimeout)
	return []flagCheck{
		{"namespace", isLabel(o.namespace), mustBeLabel},
		{"service", isLabel(o.service), mustBeLabel},
		{"service-port", o.servicePort >= 1 && o.servicePort <= math.MaxUint16, "must be in 1-65535"},
		{"webhook-bind-address", isHostPort(o.webhookAddress), mustBeAddress},
		{"metrics-bind-address", o.metricsAddress == "0" || isHostPort(o.metricsAddress), mustBeAddress + `, or "0" for none`},
		{"health-bind-address", isHostPort(o.healthAddress), mustBeAddress},
		{"peer-bind-address", isHostPort(o.peerBindAddress), mustBeAddress},
		{"peer-address", o.peerAddress == "" || isHostPort(o.peerAddress), "must be HOST:PORT"},
		{"webhook-timeout", isTimeout(o.webhookTimeout), fmt.Sprintf("must be a whole number of seconds from %s to %s, the limits of timeoutSeconds", webhookconfig.MinTimeout, webhookconfig.MaxTimeout)},
		{"lease-duration", o.leaseDuration == 0 || o.leaseDuration >= leastLease && o.leaseDuration <= coordination.MaxLease && o.leaseDuration%time.Second == 0, fmt.Sprintf("must be a whole number of seconds, at least %s with --webhook-timeout=%s, and at most %s; change it, or decrease --webhook-timeout", leastLease, o.webhookTimeout, coordination.MaxLease)},
		// Profiles contain data from memory.
		{"pprof-bind-address", isDisabled(o.pprofAddress) || isLoopback(o.pprofAddress), "must be a loopback address such as 127.0.0.1:6060; use kubectl port-forward to reach it"},
		{"blast-radius-limit", o.blastRadius >= 0, mustNotBeNegative},
		{"max-matches", o.maxMatches >= 0, mustNotBeNegative},
		{"max-concurrent", o.maxConcurrent >= 0, mustNotBeNegative},
		{"max-queue", o.maxQueue >= 0, mustNotBeNegative},
		// A review larger than the limit would wait forever, or exceed it.
		{"max-bytes", o.maxBytes.IsZero() || o.maxBytes.Cmp(*least) >= 0, fmt.Sprintf("must be 0 or at least %s", least)},
		{"max-object-bytes", o.maxObjectBytes.Sign() >= 0, mustNotBeNegative},
		{"cert-validity", o.certValidity >= certs.MinLeafValidity, fmt.Sprintf("must be at least %s", certs.MinLeafValidity)},
		{"cert-validity", o.certValidity <= o.caValidity/certs.MinCALives, fmt.Sprintf("must be at most 1/%d of --ca-validity", certs.MinCALives)},
		{"client-subject", !slices.Contains(o.clientSubjects, ""), "must not be empty"},
		{"drain-period", o.drainPeriod >= 0, mustNotBeNegative},
		{"refresh-qps", o.refresh.qps > 0 && o.refresh.qps <= math.MaxFloat32, "must be a number above 0"}, // NaN is none
	}
}

// combinationChecks reject flags that other flags would make ineffective: the
// server would be less strict than its flags, serve another certificate, or leave
// annotations in place.
func (o *options) combinationChecks(f *pflag.FlagSet) []flagCheck {
	checks := []flagCheck{
		{"client-subject", len(o.clientSubjects) == 0 || o.clientCA != "", "requires --client-ca-file"},
		{"require-path-token", !o.requirePathToken || !o.manageWebhooks, "requires --manage-webhooks=false"},
		{"cert-dir", !f.Changed("cert-dir") || o.certificates != certificatesSelf, "requires --certificates=files or --certificates=cert-manager"},
		{"certificate-name", !f.Changed("certificate-name") || o.certificates == certificatesCertManager, "requires --certificates=cert-manager"},
		{"ca-validity", !f.Changed("ca-validity") || o.certificates == certificatesSelf, "requires --certificates=self"},
		{"cert-validity", !f.Changed("cert-validity") || o.certificates == certificatesSelf, "requires --certificates=self"},
		{"lease-duration", !f.Changed("lease-duration") || o.coordinated(), requiresCoordination},
		{"peer-bind-address", !f.Changed("peer-bind-address") || o.coordinated(), requiresCoordination},
		{"peer-address", !f.Changed("peer-address") || o.coordinated(), requiresCoordination},
		{"refresh-affected", !f.Changed("refresh-affected") || o.refresh.enabled, "requires --refresh"},
	}
	// An empty value, such as that of an unset variable, must not admit every
	// caller.
	for _, name := range []string{"client-ca-file", "cert-dir", "certificate-name"} {
		checks = append(checks, flagCheck{name, !f.Changed(name) || f.Lookup(name).Value.String() != "", "must not be empty"})
	}
	return checks
}

// isTimeout reports whether a duration can be the timeoutSeconds of a webhook.
func isTimeout(d time.Duration) bool {
	return d >= webhookconfig.MinTimeout && d <= webhookconfig.MaxTimeout && d%time.Second == 0
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func isHostPort(address string) bool {
	_, _, err := net.SplitHostPort(address)
	return err == nil
}

// isLoopback reports whether address is HOST:PORT on the loopback interface.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// isDisabled reports whether an address disables its listener.
func isDisabled(address string) bool { return address == "" || address == "0" }
