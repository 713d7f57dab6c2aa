package certs

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// overlapDuration is how long an authority stays in the bundle after it was removed
// from the files: the kubelet updates the files of each replica within about two
// minutes, and until then a replica serves a certificate of the old authority.
const overlapDuration = time.Hour

// bundleOverlap is a bundle of the authorities of the files and, for a while, the
// former ones. Its methods are safe for concurrent use. Create it with
// newBundleOverlap.
type bundleOverlap struct {
	*bundlePublisher
	duration time.Duration // for former authorities; 0: they are not kept

	mu          sync.Mutex
	authorities []*x509.Certificate        // of the files; empty before they are read
	former      map[string]formerAuthority // by DER; kept after until, so that it is not extended
}

type formerAuthority struct {
	cert  *x509.Certificate
	until time.Time
}

func newBundleOverlap(lasts time.Duration) *bundleOverlap {
	return &bundleOverlap{bundlePublisher: newBundlePublisher(), duration: lasts, former: map[string]formerAuthority{}}
}

// setAuthorities sets the authorities of the files. Those that were removed become
// former ones.
func (o *bundleOverlap) setAuthorities(ca []*x509.Certificate, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, cert := range o.authorities {
		if !slices.ContainsFunc(ca, cert.Equal) {
			o.former[string(cert.Raw)] = formerAuthority{cert, now.Add(o.duration)}
		}
	}
	o.authorities = ca
	o.update(now)
}

// addFormerAuthorities adds authorities that another replica published. The time of
// those that are known already is not extended.
func (o *bundleOverlap) addFormerAuthorities(certs []*x509.Certificate, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, cert := range certs {
		if _, known := o.former[string(cert.Raw)]; !known && !slices.ContainsFunc(o.authorities, cert.Equal) {
			o.former[string(cert.Raw)] = formerAuthority{cert, now.Add(o.duration)}
		}
	}
	o.update(now)
}

// dropExpired removes former authorities whose time is over.
func (o *bundleOverlap) dropExpired(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.update(now)
}

// update publishes the bundle, unless the files have no authority: then another
// client writes the caBundle.
func (o *bundleOverlap) update(now time.Time) {
	maps.DeleteFunc(o.former, func(_ string, f formerAuthority) bool { return now.After(f.cert.NotAfter) })
	if len(o.authorities) == 0 {
		return
	}
	bundle := slices.Clone(o.authorities)
	for _, raw := range slices.Sorted(maps.Keys(o.former)) {
		if f := o.former[raw]; now.Before(f.until) && !slices.ContainsFunc(o.authorities, f.cert.Equal) {
			bundle = append(bundle, f.cert)
		}
	}
	o.publish(encodeChain(bundle))
}

// parseTrusted returns the certificates of a bundle as clients parse it: invalid
// ones are ignored.
func parseTrusted(bundle []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && !strings.HasSuffix(block.Type, pemKey) {
			out = append(out, cert)
		}
	}
	return out
}
