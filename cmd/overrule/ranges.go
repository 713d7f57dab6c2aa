package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"overrule.dev/overrule/certs"
)

// checkRanges returns which flags have values that only a running server would
// stumble over.
func (o *options) checkRanges(ctx context.Context) error {
	var errs []error
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	name := func(flag, value string) {
		if wrong := validation.IsDNS1123Label(value); len(wrong) > 0 {
			refuse("--%s=%q is no name: %s", flag, value, strings.Join(wrong, "; "))
		}
	}
	notNegative := func(flag string, value int) {
		if value < 0 {
			refuse("--%s=%d is negative: 0 is the default", flag, value)
		}
	}
	object := func(flag, value string) {
		if wrong := validation.IsDNS1123Subdomain(value); value != "" && len(wrong) > 0 {
			refuse("--%s=%q is no name: %s", flag, value, strings.Join(wrong, "; "))
		}
	}
	name("namespace", o.namespace)
	name("service", o.service)
	if wrong := validation.IsValidPortNum(int(o.servicePort)); len(wrong) > 0 {
		refuse("--service-port=%d is no port: give one from 1 to 65535", o.servicePort)
	}
	notNegative("max-concurrent", o.maxConcurrent)
	notNegative("max-queue", o.maxQueue)
	object("pod-name", o.podName)
	object("certificate-name", o.certificateName)
	errs = append(errs, o.checkLives())
	errs = append(errs, bindable(ctx, "webhook-bind-address", o.webhookAddress))
	if !none(o.metricsAddress) {
		errs = append(errs, bindable(ctx, "metrics-bind-address", o.metricsAddress))
	}
	errs = append(errs, bindable(ctx, "health-bind-address", o.healthAddress), o.checkAddresses())
	if !none(o.pprofAddress) && checkProfiling(o.pprofAddress) == nil {
		errs = append(errs, bindable(ctx, "pprof-bind-address", o.pprofAddress))
	}
	return errors.Join(errs...)
}

// checkLives refuses lives of certificates between which there is no renewing.
func (o *options) checkLives() error {
	var errs []error
	for _, life := range []struct {
		flag  string
		value time.Duration
	}{{"ca-validity", o.caValidity}, {"cert-validity", o.certValidity}} {
		if life.value <= 0 {
			errs = append(errs, fmt.Errorf("--%s=%s is no life of a certificate: give one above 0, or leave the flag out", life.flag, life.value))
		}
	}
	switch {
	case len(errs) > 0:
	case o.certValidity < certs.MinLeafValidity:
		errs = append(errs, fmt.Errorf("--cert-validity=%s is too short: give %s or more", o.certValidity, certs.MinLeafValidity))
	case o.caValidity/certs.MinCALives < o.certValidity:
		errs = append(errs, fmt.Errorf("--cert-validity=%s is more than a third of --ca-validity=%s: lower the one, or raise the other", o.certValidity, o.caValidity))
	}
	return errors.Join(errs...)
}

// bindable tells why nothing can listen on an address. Whether the host is one of
// this machine's shows when it is tried.
func bindable(ctx context.Context, flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.DefaultResolver.LookupPort(ctx, "tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--%s=%q is no address to listen on, give HOST:PORT or :PORT: %w", flag, address, err)
	}
	return nil
}
