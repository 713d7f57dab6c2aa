package certs

import (
	"crypto/x509"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// twoThirds is when two thirds of a lifetime are over: MinCALives assumes it.
func twoThirds(issued, end time.Time) time.Time { return issued.Add(end.Sub(issued) * 2 / 3) }

// publishTimeout is after how much of its lifetime an authority signs although its bundle is not
// known to be published: people copy bundles by hand.
func publishTimeout(lifetime time.Duration) time.Duration { return lifetime / 12 }

// renewalTime is when an authority is renewed.
func renewalTime(cert *x509.Certificate) time.Time { return twoThirds(issueTime(cert), cert.NotAfter) }

// jitteredRenewal is when a leaf is renewed: up to a thirtieth of its lifetime earlier, so that
// replicas that started together do not renew together.
func jitteredRenewal(issued, end time.Time) time.Time {
	spread := end.Sub(issued) / 30
	if spread <= 0 {
		return issued
	}
	return twoThirds(issued, end).Add(spread - wait.Jitter(spread, 1))
}
