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

// overlapping is how long clients are told an authority that the files do not
// have any more: a kubelet brings new files to a replica within two minutes or
// so, and what the old authority signed is served until then.
const overlapDuration = time.Hour

// overlap is what clients are to trust: the authorities of the files and, for a
// while, those before them. Its methods are safe for concurrent use. Make one
// with newOverlap.
type bundleOverlap struct {
	*bundlePublisher
	duration time.Duration // how long after, 0 for not at all

	mu          sync.Mutex
	authorities []*x509.Certificate        // of the files, none before they are known
	former      map[string]formerAuthority // by DER; it stays when it has lapsed, so that it does not begin anew
}

type formerAuthority struct {
	cert  *x509.Certificate
	until time.Time
}

func newBundleOverlap(lasts time.Duration) *bundleOverlap {
	return &bundleOverlap{bundlePublisher: newBundlePublisher(), duration: lasts, former: map[string]formerAuthority{}}
}

// trust tells the authorities of the files, and from now on those that they have
// no more as former ones.
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

// adopt tells as former ones what clients were told by others, a leader before
// this one. What it knows of already ends when it would have.
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

// lapse takes away those whose time is over.
func (o *bundleOverlap) dropExpired(now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.update(now)
}

// tell shows the bundle: without authorities in the files it is another's to
// write.
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

// trustedIn are the certificates of a bundle as a client reads it: what is none
// is passed over.
func parseTrusted(bundle []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil && !strings.HasSuffix(block.Type, pemKey) {
			out = append(out, cert)
		}
	}
	return out
}
